# SPDX-License-Identifier: Apache-2.0
"""Nothing that a job made is lost at its end, and nothing torn is restored: the ways of saving of tests/programs/habits.py,
and those of bug reports in reported.py, each ended well, by failure, by cancellation, and (GRIDCTL_LONG=1: all of them) by
the loss of its host.

In its quick form each way of saving meets one of the first three ends, in turn, and a few meet the last."""
import os
import shutil
import sys
import tempfile
import unittest

import grid
from grid import wait_until

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TESTS, "programs"))
import habits  # noqa: E402

SAVES = 3
LONG = os.environ.get("GRIDCTL_LONG") == "1"
ENDS = ("well", "fails", "waits")
CANNOT_BE_READ = {"a file of mode 0": ["lock"], "a pipe": ["pipe"]}
# Not "a second version": its files are told apart by their times, which a checkpoint does not keep.
DYING = ("overwritten torch", "two files", "stable baselines", "detectron", "trainer with NaN", "memory map", "only logs",
         "deleted before the next", "named by a state", "marked while it is written", "two clocks")


def setUpModule():
    global laptop, workdir
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, None, "process")
    workdir = tempfile.mkdtemp(dir=laptop.folder)
    for program in ("habits.py", "reported.py"):
        shutil.copy(os.path.join(TESTS, "programs", program), workdir)
    shutil.copytree(os.path.join(TESTS, "data", "layouts"), os.path.join(workdir, "layouts"))


def submit(habit, end, saves=SAVES):
    return laptop.submit({
        "name": "h", "workdir": workdir, "run": f"python3 habits.py '{habit}' out {saves} {end}",
        "resources": {"cpus": 0.01}, "checkpoint": {"path": "out", "interval": "1s"},
        "recovery": {"max_failures": 0, "on_exit": {"restart": [33], "fail": [2]}, "lost_after": "10s"}})


def sizes_in(folder):
    paths = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(path, folder): os.path.getsize(path) for path in paths if os.path.exists(path)}


def made_by(habit, saves):
    """What so many saves leave and how large that is at least, by doing them here."""
    if not habit.startswith("golden/"):
        return {name: not name.endswith("COMPLETE") for name in habits.names(habit, saves)}
    with tempfile.TemporaryDirectory() as folder:
        for n in range(1, saves + 1):
            habits.replay(os.path.join(TESTS, "data", "layouts", habit[7:]), folder, n)
        return sizes_in(folder)


class Habits(grid.Case):
    def kept(self, job, which=""):
        into = tempfile.mkdtemp(dir=laptop.folder)
        os.rmdir(into)
        done = laptop.run("checkpoint", "pull", job.id + which, into, check=False)
        return sizes_in(into) if done.code == 0 else {}

    def compare(self, habit, job, saves, which=""):
        found = self.kept(job, which)
        lost = [name for name, size in made_by(habit, saves).items() if found.get(name, -1) < size]
        return [f"{habit}: lost {lost} of {sorted(found)}"] if lost else []

    def test_nothing_is_lost_at_an_end_and_nothing_torn_is_restored(self):
        jobs = []
        for i, habit in enumerate(habits.HABITS):
            for end in ENDS if LONG else (ENDS[i % len(ENDS)],):
                jobs.append((habit, end, submit(habit, end)))
        wrong = []
        for habit, end, job in jobs:
            if end == "waits":
                wait_until("its saves", 120, lambda: f"saved {SAVES}" in job.logs(), job.evidence)
                laptop.run("job", "cancel", job.id)
        for habit, end, job in jobs:
            state = wait_until("its end", 180, lambda: job.state in ("SUCCEEDED", "FAILED", "CANCELLED") and job.state,
                               job.evidence)
            if state != {"waits": "CANCELLED"}.get(end, "SUCCEEDED"):
                wrong.append(f"{habit}, {end}: {state}: {job.logs()[-300:]}")
            if end == "well":
                wrong += self.compare(habit, job, SAVES)
            if end == "waits":
                wrong += self.compare(habit, job, SAVES + 1)
            if end == "fails":
                first = ["@" + c["checkpoint_id"].split("@")[1] for c in job.checkpoints() if c["attempt"] == 1]
                found = [self.compare(habit, job, SAVES, which) for which in first]
                wrong += [f"{habit}: nothing of attempt 1"] if not found else [] if [] in found else found[-1]
            notes = " ".join(event["text"] for event in job.events("checkpoint_notes"))
            wrong += [f"{habit}, {end}: '{name}' is not named in: {notes}" for name in CANNOT_BE_READ.get(habit, [])
                      if name not in notes]
        self.assertFalse(wrong, "\n".join(wrong))

    def test_a_host_that_dies_takes_nothing_of_the_first_saves(self):
        jobs = {habit: submit(habit, "waits", 40) for habit in (habits.HABITS if LONG else DYING)}
        for habit, job in jobs.items():
            wait_until(f"a checkpoint of {habit}", 120, lambda: job.checkpoints(), job.evidence)
        host = jobs[DYING[0]].host()
        moved = [habit for habit, job in jobs.items() if job.host() == host]
        self.grid.kill(host)
        try:
            for habit in moved:
                job = jobs[habit]
                ended = job.wait_state("SUCCEEDED", "FAILED", deadline=180)["state"]
                self.assertNotIn("resumes at 0", job.logs(), habit)
                # Between two files that are always being written nothing is surely whole: what there is, is called so.
                if ended == "FAILED":
                    self.assertIn("TORN", job.logs(), job.evidence())
                    first = [one for one in job.checkpoints() if one["attempt"] == 1]
                    self.assertTrue(all(one["provisional"] for one in first), job.evidence())
        finally:
            for job in jobs.values():
                laptop.run("job", "cancel", job.id, "--now", check=False)
            self.grid.start(host)


if __name__ == "__main__":
    unittest.main()
