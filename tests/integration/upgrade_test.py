# SPDX-License-Identifier: Apache-2.0
"""Two versions meet: a job that an older gridctl began goes on under this one, and laptops of both share a host.
GRIDCTL_OLD=PATH names the older program (gridctl built at an earlier commit); without it there is nothing to try."""
import contextlib
import os
import unittest

import grid

OLD = os.environ.get("GRIDCTL_OLD", "")


@contextlib.contextmanager
def older():
    """Commands within are the older program's."""
    ours, grid.GRIDCTL = grid.GRIDCTL, OLD
    try:
        yield
    finally:
        grid.GRIDCTL = ours


def setUpModule():
    global laptop
    if not os.access(OLD, os.X_OK):
        raise unittest.SkipTest("GRIDCTL_OLD=PATH runs it: needs a gridctl of an earlier version")
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    with older():
        for host in the_grid.hosts:
            laptop.register(host, engine="process")


class Upgrade(grid.Case):
    def tearDown(self):
        super().tearDown()
        for host in self.grid.hosts:
            self.grid.start(host)

    def test_a_job_of_the_older_gridctl_goes_on_under_this_one(self):
        with older():
            job = laptop.submit(grid.plain("upgraded", envs={"STEPS": 250}))
            job.wait_checkpoint(1)
            host = job.host()
            laptop.run("daemon", "stop")
        laptop.need_daemon()
        before = len(job.checkpoints())
        grid.wait_until("a checkpoint that this version committed", 60, lambda: len(job.checkpoints()) > before or
                        job.checkpoints()[-1]["checkpoint_id"] != f"{job.id}@{before}", job.evidence)
        self.assertEqual(len(job.attempts()), 1, "the change of versions cost the job its attempt")
        self.grid.kill(host)
        job.wait_success(deadline=120)
        self.assertEqual(len(job.attempts()), 2)
        self.assert_steps_once(job, 250)

    def test_laptops_of_both_versions_share_a_host(self):
        host = self.grid.hosts[0]
        ours = laptop.submit(grid.plain("ours", envs={"STEPS": 150}), "--provider", f"h{host}")
        ours.wait_output("step 5 ")
        theirs = self.grid.laptop("theirs")
        with older():
            theirs.register(host, engine="process")
            job = theirs.submit(grid.plain("theirs", envs={"STEPS": 20}))
            job.wait_success(deadline=60)
            theirs.run("daemon", "stop")
        ours.wait_success(deadline=60)
        self.assertEqual(len(ours.attempts()), 1)
        self.assert_steps_once(ours, 150)
        theirs.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
