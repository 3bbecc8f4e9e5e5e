# SPDX-License-Identifier: Apache-2.0
"""The same core scenarios over every engine and both transports."""
import subprocess
import time
import unittest

import grid
from grid import plain

LOST_AFTER = 5  # seconds
IMAGE = "localhost/busybox:1"


def setUpModule():
    global the_grid
    the_grid = grid.up(3)


class Core:
    """What every pair of engine and transport must do."""
    engine = transport = None

    @classmethod
    def setUpClass(cls):
        for host in the_grid.hosts:
            if cls.transport == "ssh":  # something that libssh2 cannot speak
                the_grid.enter(host, "grep -q ^Ciphers /etc/ssh/sshd_config || "
                                     "sed -i '1i Ciphers aes256-gcm@openssh.com' /etc/ssh/sshd_config")
                the_grid.reboot(host)
            if cls.engine == "docker":
                the_grid.start_docker(host)
        cls.laptop = the_grid.laptop(cls.__name__)
        for host in the_grid.hosts:
            registered = cls.laptop.register(host, None, cls.engine, "--json").json
            assert registered["transport"] == cls.transport, registered["transport"]
            assert registered["engine"] == cls.engine, registered["engine"]

    @classmethod
    def tearDownClass(cls):
        cls.laptop.close()
        if cls.transport == "ssh":
            for host in the_grid.hosts:
                the_grid.enter(host, "sed -i /^Ciphers/d /etc/ssh/sshd_config")
                the_grid.reboot(host)

    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def submit(self, name, **options):
        if self.engine != "process":
            options.setdefault("image", IMAGE)
        return self.laptop.submit(plain(name, **options))

    def test_it_succeeds_and_leaves_nothing(self):
        job = self.submit("succeeds", envs={"STEPS": 20})
        job.wait_success()
        self.assert_steps_once(job, 20, attempts=1)
        self.assertEqual(grid.steps_of(job.logs()), list(range(1, 21)))
        self.grid.wait_clean()

    def test_the_temporary_files_of_a_container_are_limited(self):
        if self.engine == "process":
            return  # it has the host's /tmp
        job = self.submit("temporary", container={"root": "read-only"},  # /tmp lies in memory then
                          run="df -k /tmp | tail -1 | awk '{print \"size\", $(NF-4)}'; "
                              "awk '/MemTotal/ {print \"memory\", $2}' /proc/meminfo")
        job.wait_success()
        told = dict(line.split() for line in job.logs().splitlines())
        self.assertGreater(int(told["size"]), 0)
        self.assertLess(int(told["size"]), 0.26 * int(told["memory"]))

    def test_it_outlives_its_host(self):
        job = self.submit("outlives", envs={"STEPS": 60})
        job.wait_checkpoint(2)
        host = job.host()
        killed = time.time()
        self.grid.kill(host)
        job.wait_attempt(2, deadline=LOST_AFTER + 20)
        lost, moved = job.events("host_lost")[0], job.events("attempt_started")[1]
        grid.figure(f"{self.engine}/{self.transport}: given up until the program runs again",
                    f"{grid.iso(moved['at']) - grid.iso(lost['at']):.2f} s")
        silence = grid.iso(lost["at"]) - killed
        grid.figure(f"{self.engine}/{self.transport}: given up beyond lost_after", f"{silence - LOST_AFTER:.2f} s")
        self.assertLess(silence, grid.bound(LOST_AFTER + 3), job.evidence())
        job.wait_success()
        self.assert_continues(job, 10)
        self.assert_steps_once(job, 60, attempts=2)
        self.grid.start(host)
        self.grid.wait_clean()

    def test_a_short_cut_changes_nothing_and_a_dead_connection_neither(self):
        job = self.submit("short-cut", envs={"STEPS": 50})
        job.wait_checkpoint(1)
        host = job.host()
        self.grid.partition(host)
        time.sleep(LOST_AFTER / 2)  # the length of the cut
        self.grid.heal(host)
        made = len(job.events("checkpoint"))
        job.wait_checkpoint(made + 1)  # heard of again
        self.grid.enter(host, "pkill -9 -u worker -f 'gridctl-agent connect' || true")
        job.wait_success()
        self.assert_steps_once(job, 50, attempts=1)
        self.assertEqual(grid.steps_of(job.logs()), list(range(1, 51)))

    def test_cancel_gives_it_time_to_save(self):
        job = self.submit("graceful", envs={"STEPS": 1000},
                          run="trap 'mkdir -p out; echo saved > out/last; echo goodbye; exit 0' TERM\n"
                              "echo ready; while true; do sleep 0.1; done")
        job.wait_output("ready")
        self.laptop.run("job", "cancel", job.id, "--grace", "10s", "--wait", timeout=40)
        self.assertEqual(job.state, "CANCELLED", job.evidence())
        self.assertIn("goodbye", job.logs())
        self.grid.wait_clean()

    def test_its_exit_code_is_the_programs(self):
        job = self.submit("exits", run="exit 7", recovery={"max_failures": 1})
        job.wait_state("FAILED")
        self.assertEqual(job.show()["exit_code"], 7)
        self.grid.wait_clean()


class Podman(Core, grid.Case):
    engine, transport = "podman", "libssh2"

    def test_what_a_killed_podman_has_begun_is_ended(self):
        # Its monitor makes the container all the same; of that podman knows nothing.
        strike = ("rm -f /tmp/enough; until pgrep -u worker -f 'conmon .* -n gridctl-.*-e1 '; do [ ! -e /tmp/enough ] || exit 3; "
                  "done; pkill -9 -u worker -f '^podman run '")
        for _ in range(8):  # on a loaded machine podman may have done its work when the strike comes
            waiting = [subprocess.Popen([grid.TESTGRID, "enter", str(host), "sh", "-c", strike], stdout=subprocess.DEVNULL,
                                        env=the_grid.environment) for host in the_grid.hosts]
            try:
                job = self.submit("struck", envs={"STEPS": 20})
                job.wait_success()
            finally:
                for host in the_grid.hosts:
                    the_grid.enter(host, "touch /tmp/enough")
            struck = 0 in [one.wait(20) for one in waiting]
            self.grid.wait_clean()
            # A strike that comes when the program runs already strikes nothing: the attempt ends well.
            if struck and job.attempts()[0]["reason"] == "start_failed":
                break
        else:
            self.fail(f"podman was always quicker: {job.evidence()}")


class PodmanOverSsh(Core, grid.Case):
    engine, transport = "podman", "ssh"


class Docker(Core, grid.Case):
    engine, transport = "docker", "libssh2"


class DockerOverSsh(Core, grid.Case):
    engine, transport = "docker", "ssh"


class Process(Core, grid.Case):
    engine, transport = "process", "libssh2"


class ProcessOverSsh(Core, grid.Case):
    engine, transport = "process", "ssh"


if __name__ == "__main__":
    unittest.main(verbosity=2)
