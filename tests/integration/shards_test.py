# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in shards of several ranks, restored on other hosts, on fewer hosts, in part, and when one is missing or
damaged. Needs today's torch: GRIDCTL_FRAMEWORKS=VENV/lib/python3.11/site-packages."""
import glob
import os
import re
import subprocess
import time
import unittest

import grid

LOST_AFTER = 8  # seconds
STEPS = 60


def setUpModule():
    global laptop
    laptop = grid.up_with_frameworks("torch")


def sharded(name, nodes=2, ranks=2, shards="all", **envs):
    envs = {"STEPS": STEPS, "PACE": 0.4, "SAVE_EVERY": 10, "PYTHONPATH": grid.SITE, "OMP_NUM_THREADS": 1,
            "CUDA_VISIBLE_DEVICES": "", **envs}
    return {"name": name, "workdir": grid.WORKLOADS, "run": "python3 sharded.py", "num_nodes": nodes,
            "ranks_per_node": ranks, "launcher": "torchrun", "class": "federated", "resources": {"cpus": 0.2},
            "envs": {key: str(value) for key, value in envs.items()},
            "checkpoint": {"path": "out", "interval": "1s", "shards": shards, "keep": 10},
            "recovery": {"lost_after": f"{LOST_AFTER}s"}}


def losses(output):
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss ([\d.]+)$", output, re.MULTILINE)}


class Shards(grid.Case):
    truths = {}  # by WIDTH

    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def truth(self, width):
        if width not in self.truths:
            job = laptop.submit(sharded(f"undisturbed-{width}", PACE=0, WIDTH=width))
            job.wait_success(deadline=150)
            self.truths[width] = losses(job.logs())
            self.assertEqual(sorted(self.truths[width]), list(range(1, STEPS + 1)))
        return self.truths[width]

    def assert_same_losses(self, job, width=48):
        told, truth = losses(job.logs()), self.truth(width)
        self.assertEqual(sorted(told), sorted(truth), job.evidence())
        for step, loss in truth.items():
            self.assertAlmostEqual(told[step], loss, delta=2e-5, msg=f"step {step}\n{job.evidence()}")

    @staticmethod
    def members(job):
        return [member["provider"] for member in job.attempts()[-1]["members"]]

    def received(self, host):
        """Bytes that its network has taken in since it booted."""
        return int(self.grid.enter(host, "cat /sys/class/net/eth0/statistics/rx_bytes"))

    def lose(self, job, which):
        """That member's host loses power; the gang runs again without it. The host's name."""
        host = self.members(job)[which]
        self.grid.kill(int(host[1:]))
        job.wait_attempt(2, deadline=LOST_AFTER + 60)
        self.assertNotIn(host, self.members(job))
        return host

    def finish(self, job, host, width=48):
        job.wait_success(deadline=200)
        self.assertIsNotNone(job.attempts()[-1]["resumed_from"], job.evidence())
        self.assert_same_losses(job, width)
        self.grid.start(int(host[1:]))
        self.grid.wait_clean()

    def test_shards_go_to_permuted_hosts(self):
        for layout in ("dcp", "ranks"):
            with self.subTest(layout=layout):
                job = laptop.submit(sharded(f"permuted-{layout}", LAYOUT=layout))
                job.wait_checkpoint(2, deadline=120)
                self.finish(job, self.lose(job, 0))

    def test_shards_of_four_ranks_go_on_with_three(self):
        for layout in ("dcp", "ranks"):
            with self.subTest(layout=layout):
                job = laptop.submit(sharded(f"three-{layout}", nodes="3..4", ranks=1, shards="local", LAYOUT=layout))
                job.wait_checkpoint(2, deadline=120)
                self.assertEqual(len(self.members(job)), 4)
                host = self.lose(job, 1)
                self.assertEqual(len(self.members(job)), 3)
                self.assertEqual(job.events("own_shards"), [], "three ranks need what four have written")
                self.finish(job, host)

    def lose_and_measure(self, shards, **envs):
        """What each host of the second attempt has taken in until it ran, and what its first rank saw."""
        job = laptop.submit(sharded(f"bytes-{shards}", shards=shards, **envs))
        job.wait_checkpoint(1, deadline=120)
        host = self.members(job)[1]
        self.grid.kill(int(host[1:]))
        before = {f"h{one}": self.received(one) for one in self.grid.hosts if one != int(host[1:])}
        job.wait_attempt(2, deadline=LOST_AFTER + 60)
        took = {name: self.received(int(name[1:])) - before[name] for name in self.members(job)}
        told = [event["text"] for event in job.events("own_shards")]
        job.wait_success(deadline=200)
        seen = dict(re.findall(r"rank (\d) sees (.*)", job.logs("--attempt", "2")))
        self.grid.start(int(host[1:]))
        self.grid.wait_clean()
        undisturbed = laptop.submit(sharded(f"same-{shards}", **{**envs, "PACE": 0}))
        undisturbed.wait_success(deadline=150)
        same, learned = losses(undisturbed.logs()), losses(job.logs())
        self.assertEqual(sorted(learned), sorted(same), job.evidence())
        for step, loss in same.items():
            self.assertAlmostEqual(learned[step], loss, delta=2e-5, msg=f"step {step}\n{job.evidence()}")
        return took, seen, told

    def test_each_host_is_given_what_its_ranks_need(self):
        envs = {"WIDTH": 120_000, "STEPS": 30, "SAVE_EVERY": 10, "PACE": 0.6}  # 24 MB in four shards
        # Other content in each, or the hosts would have it already.
        whole, seen, told = self.lose_and_measure("all", SEED=1, **envs)
        everything = ".metadata __0_0.distcp __1_0.distcp __2_0.distcp __3_0.distcp"
        self.assertEqual(seen, {"0": everything, "2": everything})
        self.assertEqual(told, [])
        part, seen, told = self.lose_and_measure("local", SEED=2, **envs)
        self.assertEqual(seen, {"0": ".metadata __0_0.distcp __1_0.distcp",
                                "2": ".metadata __0_0.distcp __2_0.distcp __3_0.distcp"})
        self.assertEqual(len(told), 2, told)
        grid.figure("bytes to each host with all shards", whole)
        grid.figure("bytes to each host with its own", part)
        grid.figure("as told", "; ".join(told))
        for least in (min, max):  # the host that stayed, and the new one
            self.assertLess(least(part.values()), 0.85 * least(whole.values()))

    def test_a_step_of_which_a_shard_is_missing_is_no_checkpoint(self):
        job = laptop.submit(sharded("missing", LOSE=20, SAVE_EVERY=10, PACE=0.6, STEPS=90))
        told = job.wait_event("checkpoint_incomplete", deadline=120)["text"]
        self.assertIn("step-20/__3_0.distcp, which step-20/.metadata names", told, job.evidence())
        host = self.lose(job, 1)
        job.wait_success(deadline=200)
        self.assertIn("resumed after step 10", job.logs("--attempt", "2"), job.evidence())
        told, truth = losses(job.logs()), self.truth(48)
        for step, loss in truth.items():
            self.assertAlmostEqual(told[step], loss, delta=2e-5, msg=f"step {step}\n{job.evidence()}")
        self.grid.start(int(host[1:]))
        self.grid.wait_clean()

    def test_a_shard_that_is_damaged_here_is_left_for_the_checkpoint_before(self):
        job = laptop.submit(sharded("damaged", WIDTH=9600, SAVE_EVERY=15))
        job.wait_checkpoint(2, deadline=120)
        sound, good = self.packs(), max(job.checkpoints(), key=lambda one: one["created_at"])["checkpoint_id"]
        job.wait_checkpoint(3, deadline=60)
        host = self.members(job)[1]
        self.grid.kill(int(host[1:]))
        later = [one["checkpoint_id"] for one in job.checkpoints() if one["checkpoint_id"] > good]
        self.damage(self.packs() - sound)
        grid.wait_until("the next attempt", LOST_AFTER + 90, lambda: job.attempts()[-1]["resumed_from"] == good, job.evidence)
        told = [event["text"] for event in job.events("checkpoint_suspect")]
        self.assertEqual(len(told), len(later), job.evidence())
        number = good.split("@")[1]
        self.assertRegex(told[-1], rf"checkpoint \d+ is damaged, and no copy can replace it: going back to checkpoint {number}$")
        self.finish(job, host, width=9600)

    @staticmethod
    def packs():
        return set(glob.glob(os.path.join(laptop.state, "store", "packs", "*.pack")))

    def damage(self, packs):
        """One bit in each page of their blobs; their index stays as it is."""
        self.assertTrue(packs)
        for path in packs:
            with open(path, "r+b") as file:
                data = bytearray(file.read())
                for at in range(60, int.from_bytes(data[-96:-88], "big"), 4096):
                    data[at] ^= 4
                file.seek(0)
                file.write(data)


if __name__ == "__main__":
    unittest.main(verbosity=2)
