# SPDX-License-Identifier: Apache-2.0
"""Hosts of which one is lent and one is the relay, and what the two people type."""
import os
import shutil
import stat
import time

import grid
from grid import wait_until

RELAY, LENT = 1, 2
IMAGE = "localhost/busybox:1"
PROGRAM = "/home/worker/gridctl"
IMAGES = "--registries docker.io,localhost"  # these hosts reach no registry


def set_up(count=3):
    the_grid = grid.up(count)
    grid.Laptop.image_constraints = {"images": "tags"}  # IMAGE is of no registry: nobody can say its digest
    # The server forwards nothing; the lent machine takes no connection.
    the_grid.enter(RELAY, "sed -i '1i AllowTcpForwarding no\\nAllowStreamLocalForwarding no' /etc/ssh/sshd_config")
    the_grid.reboot(RELAY)
    put_program(the_grid, RELAY)
    for host in (LENT, 3):
        the_grid.enter(host, "iptables -w -A INPUT -i lo -j ACCEPT; "
                             "iptables -w -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT; "
                             "iptables -w -A INPUT -j DROP")
        put_program(the_grid, host)


def put_program(the_grid, host):
    to = the_grid.disk(host, PROGRAM.lstrip("/"))
    shutil.copy(grid.GRIDCTL, to)
    os.chmod(to, os.stat(to).st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


class LenderCase(grid.Case):
    def setUp(self):
        super().setUp()
        self.laptop = self.grid.laptop(self._testMethodName)
        self.addCleanup(self.laptop.close)
        self.relay = self.grid.facts[RELAY]

    def invite(self, name="bob", *more, laptop=None, code=None):
        return (laptop or self.laptop).run("provider", "invite", name, "--via", f"worker@{self.relay['address']}:{self.relay['port']}",
                               "--host-key", self.relay["host_key"], "-i", self.grid.key, *more, code=code)

    def token(self, name="bob", *more, laptop=None):
        return self.invite(name, "--json", *more, laptop=laptop).json["token"]

    def owner(self, words, host=LENT, check=True, timeout=120):
        """What the owner types; (exit code, output)."""
        told = self.grid.as_worker(host, f"{PROGRAM} {words} 2>&1; echo; echo exit $?", check=check, timeout=timeout)
        text, _, code = told.rpartition("exit ")
        return text, code.strip()

    def owners(self, words, host=LENT, code=0, timeout=120):
        told = self.grid.as_worker(host, f"{PROGRAM} {words} > /tmp/told 2>&1; code=$?; cat /tmp/told; echo; echo exit $code",
                                   timeout=timeout)
        text, _, got = told.rpartition("exit ")
        self.assertEqual(int(got), code, text)
        return text

    def joined(self, name="bob", *more, host=LENT):
        token = self.token(name)
        began = time.monotonic()
        told = self.owners(f"provider join {token} --yes {IMAGES} {' '.join(more)}", host)
        grid.figure("provider join", f"{time.monotonic() - began:.1f} s")
        self.addCleanup(self.owners, "lend leave --grace 1s || true", host)
        self.wait_provider(name, host)
        return told

    def wait_provider(self, name, host=LENT, deadline=60, laptop=None):
        def answers():
            shown = (laptop or self.laptop).run("provider", "show", name, "--json").json
            return shown["state"] == "answering" and shown["inventory"]["cpus"] > 0
        return wait_until(f"{name} to answer", deadline, answers, lambda: self.laptop.evidence() + self.owner(
            "lend status; cat ~/.gridctl/lend/*/log", host)[0])

    @staticmethod
    def wait_again(job):
        """An attempt that the host has refused while it was paused may come between."""
        wait_until("the job to run again", 60, lambda: len(job.attempts()) > 1 and job.attempts()[-1]["state"] == "running", job.evidence)
