# SPDX-License-Identifier: Apache-2.0
"""The newest checkpoint lies ready as files where the job would go next, and a failover puts those very files in place."""
import unittest

import grid
from grid import plain, wait_until

STANDBYS = ".gridctl/standby"
RUN = """
mkdir -p out
if [ -f out/weights ]; then echo with what was saved; else head -c 20000000 /dev/urandom > out/weights; : > out/.commit; fi
until [ -e enough ]; do sleep 0.1; done
"""


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, None, "process", "--price", f"0.{host}")


class Standby(grid.Case):
    def lies_on(self, host):
        return self.grid.as_worker(host, f"ls {STANDBYS} 2>/dev/null || true").split()

    def inode(self, host, path):
        return self.grid.as_worker(host, f"stat -c %i {path} 2>/dev/null || true").strip()

    def test_a_failover_goes_on_with_the_files_that_lay_ready_and_nothing_is_left(self):
        job = laptop.submit(dict(plain("warm", checkpoint={"standby": True}), run=RUN))
        self.assertIn("h2 keeps the newest checkpoint ready", job.wait_event("standby")["text"])
        self.assertEqual(job.host(), 1)
        self.assertEqual(self.lies_on(3), [])
        laid = self.inode(2, f"{STANDBYS}/*/tree/weights")
        self.assertTrue(laid, job.evidence())
        self.grid.kill(1)
        job.wait_attempt(2)
        self.assertEqual(job.host(), 2)
        job.wait_output("with what was saved")
        self.assertEqual(self.inode(2, ".gridctl/jobs/*/*/*/work/out/weights"), laid, "the files were written once more")
        # Now h3 is next; what lay on h2 was used up.
        wait_until("the next standby", 40, lambda: self.lies_on(3), job.evidence)
        self.assertEqual(self.lies_on(2), [])
        self.grid.as_worker(2, "cd .gridctl/jobs/*/*/*/work && touch enough")
        job.wait_success()
        wait_until("h3 to forget it", 30, lambda: not self.lies_on(3), job.evidence)
        self.grid.start(1)
        self.grid.wait_clean()

    def test_a_host_that_is_back_at_once_does_not_get_the_job_again(self):
        """It is the cheapest, and answers again before the job is placed."""
        job = laptop.submit(dict(plain("back", checkpoint={"standby": True}), run=RUN))
        job.wait_event("standby")
        self.assertEqual(job.host(), 1)
        laid = self.inode(2, f"{STANDBYS}/*/tree/weights")
        self.grid.reboot(1)
        job.wait_attempt(2)
        self.assertEqual(job.attempts()[0]["reason"], "host_rebooted", job.evidence())
        self.assertEqual(job.host(), 2, job.evidence())
        self.assertIn("lies ready there", job.events("placed")[1]["text"])
        job.wait_output("with what was saved")
        self.assertEqual(self.inode(2, ".gridctl/jobs/*/*/*/work/out/weights"), laid, "the files were written once more")
        wait_until("the next standby", 40, lambda: self.lies_on(1), job.evidence)
        self.grid.as_worker(2, "cd .gridctl/jobs/*/*/*/work && touch enough")
        job.wait_success()
        self.grid.wait_clean()

    def test_without_the_key_nothing_is_sent_ahead(self):
        job = laptop.submit(plain("cold", envs={"STEPS": 100}))
        job.wait_success()
        self.assertEqual(job.events("standby"), [])
        self.assertEqual([self.lies_on(host) for host in self.grid.hosts], [[], [], []])


if __name__ == "__main__":
    unittest.main()
