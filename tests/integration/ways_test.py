# SPDX-License-Identifier: Apache-2.0
"""A host that is reached at several addresses: one is cut, or is another machine's now."""
import unittest

import grid
from grid import plain

SECOND = "200"  # last part of the other one of host 1


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


class Ways(grid.Case):
    def setUp(self):
        super().setUp()
        facts = self.grid.facts[1]
        self.first = f"worker@{facts['address']}:{facts['port']}"
        self.second = f"worker@{facts['address'].rpartition('.')[0]}.{SECOND}:{facts['port']}"
        self.part = facts["address"].rpartition(".")[2]
        laptop.run("provider", "drain", "h2")  # the job begins on h1, and could move
        self.grid.take_address(1, SECOND)
        laptop.run("provider", "way", "h1", self.second, "--host-key", facts["host_key"])
        self.addCleanup(self.restore)

    def restore(self):
        for shown in laptop.run("job", "ls", "--json").json:
            if shown["state"] not in grid.FINAL:
                laptop.run("job", "cancel", shown["job_id"], "--now", "--wait")
        laptop.run("provider", "way", "h1", self.second, "--rm")
        for host in self.grid.hosts:
            self.grid.reboot(host)  # with its own address alone

    def started(self, name):
        job = laptop.submit(plain(name, envs={"STEPS": 300}, recovery={"lost_after": "60s"}))
        job.wait_checkpoint(1)
        laptop.run("provider", "undrain", "h2")
        self.assertEqual(job.host(), 1)
        self.assertEqual(self.in_use(), self.first)
        return job

    @staticmethod
    def in_use():
        used = [way["address"] for way in laptop.run("provider", "show", "h1", "--json").json["ways"] if way["in_use"]]
        return used[0] if used else None

    def goes_on_by_the_second(self, job):
        grid.wait_until("the second address to be in use", 60, lambda: self.in_use() == self.second, job.evidence)
        saved = len(job.events("checkpoint"))
        job.wait_checkpoint(saved + 1)
        job.wait_success()
        self.assert_steps_once(job, 300, attempts=1)
        self.assertFalse(job.events("move_requested") + job.events("host_lost"), job.evidence())

    def test_a_job_goes_on_by_the_second_when_the_first_is_cut(self):
        job = self.started("cut")
        self.grid.lose_address(1, self.part)
        self.goes_on_by_the_second(job)
        shown = laptop.run("provider", "show", "h1").out
        self.assertIn(f"{self.second} (in use)", shown)

    def test_another_machine_at_the_first_is_refused_and_the_second_is_used(self):
        job = self.started("hotel")
        self.grid.lose_address(1, self.part)
        self.grid.take_address(2, self.part)
        self.goes_on_by_the_second(job)
        # To the user it is named, by each command that tries that address alone.
        refused = laptop.run("provider", "set", "h2", "--address", self.second,
                             "--host-key", self.grid.facts[1]["host_key"], check=False)
        self.assertNotEqual(refused.code, 0, refused)
        self.assertIn("another machine answers at", refused.err)


class Adding(grid.Case):
    def test_a_way_that_leads_nowhere_or_elsewhere_is_not_added(self):
        facts = self.grid.facts[2]
        other = f"worker@{facts['address']}:{facts['port']}"
        refused = laptop.run("provider", "way", "h1", other, "--host-key", facts["host_key"], check=False)
        self.assertIn("another machine answers at", refused.err)
        self.assertIn("gridctl provider register", refused.err)
        self.assertEqual(len(laptop.run("provider", "show", "h1", "--json").json["ways"]), 1)
        lost = laptop.run("provider", "way", "h1", "worker@127.0.0.1:9", check=False)
        self.assertEqual(lost.code, 5, lost)
        only = laptop.run("provider", "way", "h1", laptop.run("provider", "show", "h1", "--json").json["address"], "--rm",
                          check=False)
        self.assertIn("is the only way to h1", only.err)


class Identity(grid.Case):
    def test_a_host_with_another_identity_is_refused_until_it_is_accepted(self):
        job = laptop.submit(plain("replaced", envs={"STEPS": 300}))
        job.wait_checkpoint(1)
        left = job.host()
        name = f"h{left}"
        self.assertEqual(self.grid.enter(left, "stat -c %a /home/worker/.gridctl/identity").strip(), "600")
        known = laptop.run("provider", "show", name, "--json").json["identity"]
        self.assertEqual(len(known), 64)
        self.grid.enter(left, "rm /home/worker/.gridctl/identity")
        self.grid.signal(left, self.grid.pids(left, r"gridctl-agent connect"), 9)
        job.wait_attempt(2)
        self.assertNotEqual(job.host(), left)
        self.assertTrue(self.grid.pids(left, r"plain\.sh"), "its attempt should have been left alone")
        refused = laptop.run("provider", "check", name, check=False)
        self.assertNotEqual(refused.code, 0)
        self.assertIn(f"another host answers at worker@{self.grid.facts[left]['address']}", refused.err)
        self.assertIn(f"that of {name} is {known}", refused.err)
        words = refused.err.partition("if it was reinstalled: gridctl ")[2].splitlines()[0].split()
        self.assertEqual(words[:4], ["provider", "check", name, "--accept-identity"])
        laptop.run(*words)
        self.assertEqual(laptop.run("provider", "show", name, "--json").json["identity"], words[4])
        job.wait_success(deadline=120)
        self.assert_steps_once(job, 300, attempts=2)
        self.assert_continues(job, 10)
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main()
