# SPDX-License-Identifier: Apache-2.0
"""Gangs that go on with fewer hosts when some are lost, and with more when those are back: PyTorch's
DistributedDataParallel over Gloo."""
import re
import time
import unittest

import grid

LOST_AFTER = 8  # seconds
SAVE_EVERY = 10
STEPS = 500
PACE = 0.25


def setUpModule():
    global laptop
    the_grid = grid.up(4)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


def ddp(name, nodes="2..4", **envs):
    envs = {"STEPS": STEPS, "PACE": PACE, "SAVE_EVERY": SAVE_EVERY, **envs}
    return {"name": name, "image": "localhost/torch:cpu", "workdir": grid.WORKLOADS, "run": "python3 elastic_ddp.py",
            "num_nodes": nodes, "ranks_per_node": 1, "launcher": "torchrun", "class": "federated",
            "envs": {key: str(value) for key, value in envs.items()}, "resources": {"cpus": 0.25},
            "checkpoint": {"path": "out", "interval": "1s"}, "recovery": {"lost_after": f"{LOST_AFTER}s"}}


def steps(output):
    """(step, loss, time) in the order in which they were told."""
    return [(int(step), float(loss), float(at))
            for step, loss, at in re.findall(r"step (\d+) loss ([\d.]+) at ([\d.]+)$", output, re.MULTILINE)]


class Elastic(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    @staticmethod
    def members(job):
        return [member["provider"] for member in job.attempts()[-1]["members"]]

    @staticmethod
    def sizes(job):
        return [len(attempt["members"]) for attempt in job.attempts()]

    def lose(self, job, host, attempt):
        """Power off; returns when the next attempt computes."""
        self.grid.kill(int(host[1:]))
        killed = time.time()
        job.wait_attempt(attempt, deadline=LOST_AFTER + 60)
        before = len(job.events("placed"))
        self.assertEqual(before, attempt, job.evidence())
        first = grid.wait_until("the next step", 40, lambda: [one for one in steps(job.logs("--attempt", str(attempt)))],
                                job.evidence)[0]
        grid.figure(f"power loss until the next training step, with {len(self.members(job))} members, beyond lost_after",
                    f"{first[2] - killed - LOST_AFTER:.2f} s")
        return first

    def assert_lost_at_most(self, job, attempt, first):
        """What is computed again is less than one interval between checkpoints, and what came while one was fetched."""
        told = steps(job.logs("--attempt", str(attempt - 1)))
        again = told[-1][0] - first[0] + 1
        grid.figure("steps computed again", again)
        self.assertGreaterEqual(again, 0)
        self.assertLessEqual(again, 2 * SAVE_EVERY, job.evidence())

    def test_two_losses_and_one_return(self):
        truth = laptop.submit(ddp("undisturbed", PACE=0))
        truth.wait_success(deadline=150)
        self.assertEqual(self.sizes(truth), [4])
        wanted = {step: loss for step, loss, _ in steps(truth.logs())}
        self.grid.wait_clean()

        job = laptop.submit(ddp("elastic"))
        job.wait_checkpoint(2, deadline=90)
        lost = self.members(job)
        self.assert_lost_at_most(job, 2, self.lose(job, lost[3], 2))
        self.assertEqual(self.sizes(job), [4, 3])
        self.assertIn("has 3 of 2..4 hosts", laptop.run("job", "explain", job.id).out)
        job.wait_checkpoint(len(job.checkpoints()) + 1, deadline=60)
        self.assert_lost_at_most(job, 3, self.lose(job, lost[0], 3))
        self.assertEqual(self.sizes(job), [4, 3, 2])
        self.assertIn("2 of 2..4", laptop.run("job", "show", job.id).out)

        self.grid.start(int(lost[3][1:]))
        back = time.time()
        job.wait_attempt(4, deadline=120)
        self.assertEqual(self.sizes(job), [4, 3, 2, 3], job.evidence())
        self.assertEqual(job.attempts()[2]["reason"], "grown", job.evidence())
        first = grid.wait_until("the next step", 40, lambda: steps(job.logs("--attempt", "4")), job.evidence)[0]
        grid.figure("a host is back until the gang computes with it", f"{first[2] - back:.1f} s")
        last = steps(job.logs("--attempt", "3"))[-1]
        grid.figure("pause of the computing for growing", f"{first[2] - last[2]:.2f} s")
        self.assert_lost_at_most(job, 4, first)
        job.wait_success(deadline=200, hurry=True)
        self.assertEqual(job.show()["recoveries"], 3)
        told = {step: loss for step, loss, _ in steps(job.logs())}
        self.assertEqual(sorted(told), sorted(wanted), job.evidence())
        apart = max(abs(told[step] - wanted[step]) for step in wanted)
        grid.figure("greatest difference of a loss to the undisturbed run", f"{apart:.6f}")
        self.assertLess(apart, 1e-4, job.evidence())
        self.grid.start(int(lost[0][1:]))
        self.grid.wait_clean()

    def test_a_spare_takes_the_place_of_a_lost_host(self):
        job = laptop.submit({**ddp("spare", nodes=3, STEPS=200), "spares": 1})
        ready = job.wait_event("standby", deadline=90)
        before = self.members(job)
        spare = ({f"h{host}" for host in self.grid.hosts} - set(before)).pop()
        self.assertIn(f"{spare} keeps the newest checkpoint ready", ready["text"])
        job.wait_checkpoint(len(job.checkpoints()) + 1, deadline=60)
        first = self.lose(job, before[1], 2)
        self.assertEqual(sorted(self.members(job)), sorted({*before, spare} - {before[1]}), job.evidence())
        self.assertIn("a spare takes the place of a member", job.events("placed")[-1]["text"], job.evidence())
        self.assert_lost_at_most(job, 2, first)
        job.wait_success(deadline=150, hurry=True)
        self.grid.start(int(before[1][1:]))
        self.grid.wait_clean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
