# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that its program cannot load gives way to the one before."""
import os
import unittest

import grid

PROGRAMS = os.path.join(grid.SOURCE, "tests", "programs")


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, engine="process")


class GoingBack(grid.Case):
    def tearDown(self):
        super().tearDown()
        for host in self.grid.hosts:
            self.grid.start(host)

    def poisoned(self, name, *more):
        job = laptop.submit({"name": name, "workdir": PROGRAMS, "run": "exec python3 poisoned.py", "resources": {"cpus": 0.2},
                             "envs": {"STEPS": "6", "POISON": "3", "PACE": "3"}, "recovery": {"lost_after": "3s"},
                             "checkpoint": {"path": "out", "whole_when": "state.json", "keep": 2}}, *more)
        job.wait_checkpoint(3, deadline=60)
        return job

    def assert_went_back_once(self, job):
        job.wait_success(deadline=120)
        told = [one["text"] for one in job.events("checkpoint_suspect")]
        self.assertEqual(len(told), 1, told)
        self.assertIn("going back to checkpoint 2", told[0])
        starts = [one["resumed_from"] for one in job.attempts()]
        self.assertEqual([start and start.split("@")[-1] for start in starts], [None, "3", "3", "2"])
        listed = {one["checkpoint_id"].split("@")[-1]: one for one in laptop.run("checkpoint", "ls", job.id, "--json").json}
        self.assertTrue(listed["3"]["suspect"])
        self.assertEqual([number for number, one in listed.items() if one["suspect"]], ["3"])
        self.assertIn("suspect", laptop.run("checkpoint", "ls", job.id).out)
        self.assertEqual(job.logs("--attempt", "4").count("restored"), 1)

    def test_a_job_goes_back_when_it_fails_on_two_hosts(self):
        job = self.poisoned("twohosts")
        self.grid.kill(job.host())
        self.assert_went_back_once(job)

    def test_a_job_goes_back_when_it_fails_twice_in_the_same_way_on_its_only_host(self):
        job = self.poisoned("onehost", "--provider", f"h{self.grid.hosts[0]}")
        self.grid.reboot(job.host())
        self.assert_went_back_once(job)

    def test_a_suspect_checkpoint_is_restored_when_it_is_asked_for(self):
        job = self.poisoned("asked")
        self.grid.kill(job.host())
        self.assert_went_back_once(job)
        laptop.run("job", "resume", job.id, "--from", f"{job.id}@3")
        job.wait_state("FAILED", deadline=60)
        self.assertEqual(len(job.events("checkpoint_suspect")), 1)


if __name__ == "__main__":
    unittest.main()
