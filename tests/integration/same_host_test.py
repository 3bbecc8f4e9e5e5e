# SPDX-License-Identifier: Apache-2.0
"""A checkpoint does not travel to a host that has it: a restart there is restored from the host's own snapshots, and so
is one on a host that lost power or that the job had left before. GRIDCTL_LONG=1: 1 GB over a line of 50 Mbit/s."""
import os
import time
import unittest

import grid
from grid import figure, wait_until

LONG = bool(os.environ.get("GRIDCTL_LONG"))
SIZE = 1_000_000_000 if LONG else 60_000_000
BEYOND_MAX = 3  # seconds that a restart may take longer than a copy of the same bytes; on a machine that is idle
# Bytes that a restart may cost, its own conversation included; beside a small file also what a measurement of the link
# has sent when it gives way, which is much where nothing limits the line.
LINE_MAX = 1_000_000 if LONG else SIZE * 4 // 5
RUN = f"""
mkdir -p out
if [ -f out/weights ]; then echo restored $(sha256sum < out/weights); else
  head -c {SIZE} /dev/urandom > out/new; echo saved $(sha256sum < out/new); mv out/new out/weights; : > out/.commit
fi
until [ -e enough ] || [ -e again ]; do sleep 0.1; done
[ ! -e again ] || {{ rm again; exit 33; }}
"""


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, None, "process", "--price", f"0.{host}")
        if LONG:
            the_grid.command("shape", host, "50mbit", "20ms")


class SameHost(grid.Case):
    def submit(self, name):
        job = laptop.submit({"name": name, "run": RUN, "resources": {"cpus": 0.5}, "checkpoint": {"path": "out"},
                             "recovery": {"on_exit": {"restart": [33]}, "lost_after": "30s" if LONG else "5s",
                                          "max_failures": 9}})
        job.wait_checkpoint(1, 400 if LONG else 60)
        return job

    def tell(self, host, word):
        self.grid.as_worker(host, f"cd .gridctl/jobs/*/*/*/work && touch {word}")

    def received(self, host):
        """Bytes that have come to the host since it booted, whatever the device is called."""
        text = self.grid.enter(host, "cat /proc/net/dev")
        return sum(int(line.split(":")[1].split()[0]) for line in text.splitlines() if ":" in line and " lo:" not in line)

    def copying(self, host):
        """Seconds that a plain copy of the same bytes takes there, and its program's look at them."""
        self.grid.as_worker(host, f"head -c {SIZE} /dev/urandom > .copied && sync -d .copied")
        began = time.monotonic()
        self.grid.as_worker(host, "cp .copied .again; sha256sum < .again; rm .copied .again")
        return time.monotonic() - began

    def check_restored(self, job, attempt, host, before, began):
        job.wait_attempt(attempt, 200)
        job.wait_output("restored", 200)
        took = time.monotonic() - began
        came = self.received(host) - before
        self.assertEqual(job.host(attempt), host, job.evidence())
        self.assertLess(came, LINE_MAX, job.evidence())
        words = [line.split()[1] for line in job.logs().splitlines() if line.startswith(("saved", "restored"))]
        self.assertEqual(len(set(words)), 1, "the file is the one that was saved")
        figure(f"bytes over the line, {job.show()['name']}", came)
        if LONG:
            beyond = took - self.copying(host)
            figure(f"seconds beyond the copy, {job.show()['name']}", beyond)
            self.assertLess(beyond, grid.bound(BEYOND_MAX), job.evidence())

    def end(self, job, host):
        self.tell(host, "enough")
        job.wait_success()
        self.grid.wait_clean()

    def test_a_program_that_asks_for_a_restart_gets_its_files_back_from_the_host(self):
        job = self.submit("restart")
        host = job.host()
        before, began = self.received(host), time.monotonic()
        self.tell(host, "again")
        self.check_restored(job, 2, host, before, began)
        # What the first attempt had saved lies apart from it now.
        before, began = self.received(host), time.monotonic()
        self.tell(host, "again")
        job.wait_attempt(3, 200)
        wait_until("the third attempt", 200, lambda: job.logs().count("restored") == 2, job.evidence)
        self.assertLess(self.received(host) - before, LINE_MAX, job.evidence())
        self.end(job, host)
        self.assertEqual(self.grid.as_worker(host, "ls .gridctl/snapshots 2>/dev/null || true").split(), [])

    def test_a_host_that_lost_power_has_its_checkpoint_still(self):
        job = self.submit("power")
        host = job.host()
        other = 3 - host
        laptop.run("provider", "drain", f"h{other}")
        try:
            self.grid.reboot(host)
            self.check_restored(job, 2, host, 0, time.monotonic())
            self.end(job, host)
        finally:
            laptop.run("provider", "undrain", f"h{other}")

    def test_a_job_that_was_cancelled_is_resumed_where_it_was(self):
        job = self.submit("resumed")
        host = job.host()
        laptop.run("job", "cancel", job.id)
        job.wait_state("CANCELLED")
        self.grid.wait_clean()
        before, began = self.received(host), time.monotonic()
        laptop.run("job", "resume", job.id)
        self.check_restored(job, 2, host, before, began)
        self.end(job, host)


if __name__ == "__main__":
    unittest.main()
