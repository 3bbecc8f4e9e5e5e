# SPDX-License-Identifier: Apache-2.0
"""What is taken as a checkpoint of programs that know nothing of gridctl and of which gridctl knows nothing."""
import json
import os
import random
import time
import unittest

import grid

PROGRAMS = os.path.join(grid.SOURCE, "tests", "programs")
KILLS = 30 if grid.LONG else 2
LOST_AFTER = 3


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, engine="process")


def program(name, script, checkpoint=None, **envs):
    return {"name": name, "workdir": PROGRAMS, "run": f"exec python3 {script}", "resources": {"cpus": 0.2},
            "envs": {key: str(value) for key, value in envs.items()}, "recovery": {"lost_after": f"{LOST_AFTER}s"},
            "checkpoint": dict({"path": "out", "interval": "auto", "keep": 100}, **(checkpoint or {}))}


class Whole(grid.Case):
    def tearDown(self):
        super().tearDown()
        for host in self.grid.hosts:
            self.grid.start(host)

    def checkpoints(self, job):
        return laptop.run("checkpoint", "ls", job.id, "--json").json

    def content(self, checkpoint):
        folder = os.path.join(self.grid.folder, checkpoint["checkpoint_id"].replace("@", "-"))
        laptop.run("checkpoint", "pull", checkpoint["checkpoint_id"], folder)
        found = {}
        for at, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(at, name), encoding="utf-8") as file:
                    found[name] = file.read()
        return found

    def test_two_files_are_never_of_different_saves(self):
        chance = random.Random(4711)
        job = laptop.submit(program("pair", "two_files.py", PACE=0.25, STEPS=6 + 6 * KILLS))
        for kill in range(KILLS):
            job.wait_attempt(kill + 1, deadline=60)
            if kill == 0:
                job.wait_checkpoint(1, deadline=60)
            time.sleep(chance.uniform(1, 10))
            host = job.host()
            self.grid.kill(host)
            job.wait_attempt(kill + 2, deadline=60)
            self.grid.start(host)
        job.wait_success(deadline=60 + 20 * KILLS)
        self.assertNotIn("torn:", job.logs())
        taken = self.checkpoints(job)
        torn = 0
        for one in taken:
            found = self.content(one)
            steps = {json.loads(found[name])["step"] for name in ("model.json", "optimizer.json") if name in found}
            torn += len(steps) != 1 or "model.json" not in found or "optimizer.json" not in found
        grid.figure("commits of a pair of files, torn ones among them", f"{len(taken)}, {torn}")
        self.assertEqual(torn, 0)
        self.assertGreater(len(taken), 3 * KILLS)

    def late(self, job):
        """Seconds from each saved state until it was committed."""
        late = {}
        for one in self.checkpoints(job):
            state = json.loads(self.content(one)["state.json"])
            late.setdefault(state["step"], grid.iso(one["created_at"]) - state["at"])
        return late

    def test_a_log_beside_it_delays_no_checkpoint(self):
        job = laptop.submit(program("logged", "logged.py", STEPS=8, SAVE_EVERY=4))
        job.wait_success(deadline=90)
        late = self.late(job)
        grid.figure("commit after its save, with a log beside it, s", " ".join(f"{late[step]:.1f}" for step in sorted(late)))
        self.assertEqual(sorted(late), list(range(1, 9)))
        self.assertLess(max(late.values()), grid.bound(2.5))

    def test_a_saver_that_never_rests_is_taken_between_two_saves(self):
        job = laptop.submit(program("restless", "logged.py", STEPS=40, SAVE_EVERY=0.6))
        job.wait_success(deadline=90)
        taken = [grid.iso(one["created_at"]) for one in self.checkpoints(job)]
        gaps = [later - earlier for earlier, later in zip(taken, taken[1:])]
        grid.figure("longest time between two checkpoints of a saver every 0.6 s", f"{max(gaps):.1f} s of {len(taken)}")
        self.assertLess(max(gaps), grid.bound(5))

    def test_the_job_file_can_say_what_ends_a_save(self):
        job = laptop.submit(program("told", "two_files.py", {"whole_when": "optimizer.json"}, PACE=0.2, STEPS=4))
        job.wait_success(deadline=60)
        taken = self.checkpoints(job)
        self.assertEqual({one["how"] for one in taken} - {"exit"}, {"whole-when"})
        self.assertFalse(any(one["provisional"] for one in taken))
        for one in taken:
            found = self.content(one)
            self.assertEqual(json.loads(found["model.json"])["step"], json.loads(found["optimizer.json"])["step"])


if __name__ == "__main__":
    unittest.main()
