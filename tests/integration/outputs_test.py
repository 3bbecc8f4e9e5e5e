# SPDX-License-Identifier: Apache-2.0
"""What jobs write in their working directories: nothing of it is lost silently."""
import contextlib
import os
import sqlite3
import unittest

import grid
from grid import wait_until


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, None, "process")


def files_in(folder):
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path) as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Outputs(grid.Case):
    def pull(self, job, name, code=0):
        done = laptop.run("job", "pull", job.id, name, "--json", code=code)
        return files_in(os.path.join(laptop.folder, name)) if code == 0 else done

    def bytes_here(self, job):
        """Recorded without asking the host, as `job pull` would."""
        with contextlib.closing(sqlite3.connect(f"file:{laptop.state}/state.db?mode=ro", uri=True)) as db:
            return (db.execute("SELECT bytes FROM results WHERE job = ?", (job.id,)).fetchone() or [0])[0]

    def job(self, run, **more):
        return laptop.submit({"name": "writer", "run": run, "checkpoint": {"path": "out"}, **more})

    def test_outputs_come_back_whatever_the_end(self):
        wanted = {"outputs": ["result.txt", "logs/*.csv", {"from": "models/", "when": "success"},
                              {"from": "core.txt", "when": "failure"}]}
        write = ("mkdir -p logs models/deep out; echo 42 > result.txt; echo 1,2 > logs/a.csv; echo x > logs/a.tmp; "
                 "echo big > models/deep/m.bin; echo why > core.txt; echo other > other.txt; "
                 "mkdir -p sub; echo no > sub/result.txt; ")
        good = self.job(write + "exit 0", **wanted)
        good.wait_success()
        self.assertEqual(self.pull(good, "good"),
                         {"result.txt": "42\n", "logs/a.csv": "1,2\n", "models/deep/m.bin": "big\n"})
        self.assertIn("3 files", good.events("outputs")[-1]["text"])
        bad = self.job(write + "exit 3", recovery={"max_failures": 1}, **wanted)
        bad.wait_state("FAILED")
        self.assertEqual(self.pull(bad, "bad"), {"result.txt": "42\n", "logs/a.csv": "1,2\n", "core.txt": "why\n"})
        stopped = self.job(write + "sleep 600", **wanted)
        stopped.wait_attempt(1)
        wait_until("its files", 30, lambda: "why" in self.grid.enter(
            stopped.host(), "cat /home/worker/.gridctl/jobs/*/*/*/work/core.txt 2>/dev/null || true"))
        laptop.run("job", "cancel", stopped.id, "--now", "--wait")
        self.assertEqual(self.pull(stopped, "stopped"),
                         {"result.txt": "42\n", "logs/a.csv": "1,2\n", "core.txt": "why\n"})

    def test_outputs_of_all_attempts_are_one_tree(self):
        job = self.job("mkdir -p logs; echo of attempt $GRIDCTL_ATTEMPT > logs/$GRIDCTL_ATTEMPT.csv; "
                       "echo $GRIDCTL_ATTEMPT > last.txt; [ $GRIDCTL_ATTEMPT = 2 ]",
                       outputs=["logs/", "last.txt"])
        job.wait_success()
        self.assertEqual(self.pull(job, "attempts"), {"logs/1.csv": "of attempt 1\n", "logs/2.csv": "of attempt 2\n",
                                                      "last.txt": "2\n"})

    def test_outputs_come_while_the_job_runs(self):
        job = self.job("mkdir -p logs; for i in $(seq 1 600); do echo $i >> logs/steps.csv; sleep 0.1; done",
                       outputs=[{"from": "logs/", "sync": "10s"}])
        job.wait_attempt(1)
        host = job.host()
        wait_until("some lines to be here", 60, lambda: self.bytes_here(job) > 100)
        self.grid.kill(host)
        try:
            saved = self.pull(job, "synced")["logs/steps.csv"]
            self.assertGreater(len(saved.splitlines()), 20)
        finally:
            laptop.run("job", "cancel", job.id, "--now")
            self.grid.start(host)

    def test_without_outputs_what_is_left_is_kept_on_the_host_and_named(self):
        job = self.job("mkdir -p out plots; echo 1 > out/ckpt.pt; echo loss > plots/loss.svg; echo 7 > answer.txt")
        job.wait_success()
        said = job.events("files_left")[-1]["text"]
        self.assertIn("2 files", said)
        self.assertIn(f"gridctl job pull {job.id}", said)
        wait_until("the attempt's folder to go", 30,
                   lambda: not any(self.grid.attempt_folders_on(host) for host in self.grid.hosts))
        self.assertEqual(self.pull(job, "left"), {"plots/loss.svg": "loss\n", "answer.txt": "7\n"})
        self.grid.kill(job.host(1))  # what was pulled once is here
        try:
            self.assertEqual(self.pull(job, "again"), {"plots/loss.svg": "loss\n", "answer.txt": "7\n"})
        finally:
            self.grid.start(job.host(1))

    def test_a_job_that_leaves_nothing_says_nothing(self):
        job = laptop.submit({"name": "quiet", "run": "mkdir -p out; echo 1 > out/ckpt.pt",
                             "checkpoint": {"path": "out"}})
        job.wait_success()
        self.assertEqual(job.events("files_left"), [])
        self.assertIn("left no files", self.pull(job, "nothing", code=3).err)
        job = laptop.submit({"name": "silent", "run": "sleep 300"})
        job.wait_state("RUNNING")
        self.assertIn("has written no files outside its checkpoints so far", self.pull(job, "none", code=3).err)
        laptop.run("job", "cancel", job.id, "--now")


if __name__ == "__main__":
    unittest.main()
