# SPDX-License-Identifier: Apache-2.0
"""Bags of tasks on hosts that come and go: each task counts once, whatever happens to hosts and to the daemon."""
import os
import subprocess
import tempfile
import time
import unittest

import grid

IMAGE = "localhost/busybox:1"


def setUpModule():
    global the_grid, laptop
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


def bag(name, run, tasks, **more):
    return {"name": name, "run": run, "tasks": tasks, "resources": {"cpus": 1}, "recovery": {"lost_after": "5s"}, **more}


def runs_of(name):
    """Which tasks were begun, by what each wrote on its host: a line an execution."""
    lines = []
    for host in the_grid.hosts:
        lines += the_grid.enter(host, f"cat /tmp/{name}.runs 2>/dev/null || true").split()
    return lines


class Bags(grid.Case):
    def done(self, job, state="SUCCEEDED", deadline=60):
        job.wait_state(state, deadline=deadline)
        return job.show()["bag"]

    def test_each_task_of_a_bag_is_run_and_counted_once(self):
        began = time.monotonic()
        job = laptop.submit(bag("small", "echo $GRIDCTL_TASK_INDEX >> /tmp/small.runs", 200))
        told = self.done(job)
        grid.figure("bag of 200 tasks, seconds", round(time.monotonic() - began, 1))
        self.assertEqual((told["tasks"], told["done"], told["failed"]), (200, 200, 0))
        runs = list(map(int, runs_of("small")))
        self.assertEqual(sorted(set(runs)), list(range(200)))
        self.assertLessEqual(len(runs) - 200, 20, "the end of a bag may be run twice, and no more")
        self.assertIn("200 of 200 tasks done", laptop.run("job", "show", job.id).out)
        the_grid.wait_clean()

    def test_what_fails_is_tried_twice_listed_and_alone_repeated(self):
        job = laptop.submit(bag("failing", "echo $GRIDCTL_TASK_INDEX >> /tmp/failing.runs; "
                                           "case $GRIDCTL_TASK_INDEX in 7) test -e /tmp/mended;; 11) test -e /tmp/mended || kill -SEGV $$;; esac", 40))
        told = self.done(job, "FAILED")
        self.assertEqual((told["done"], told["failed"]), (38, 2))
        self.assertEqual([one["task"] for one in told["failures"]], [7, 11])
        self.assertTrue(all(one["tries"] in (2, 3) for one in told["failures"]), told)  # a third where the other host came late
        self.assertIn("2 of 40 tasks failed: 7,11", laptop.run("job", "explain", job.id).out + laptop.run("job", "show", job.id).out)
        for host in the_grid.hosts:
            the_grid.enter(host, "rm -f /tmp/failing.runs; touch /tmp/mended")
        laptop.run("job", "resume", job.id)
        told = self.done(job)
        self.assertEqual((told["done"], told["failed"]), (40, 0))
        self.assertEqual(sorted(map(int, runs_of("failing"))), [7, 11])
        laptop.run("job", "resume", job.id, code=2)

    def test_a_worker_makes_room_for_a_more_urgent_job_and_comes_back(self):
        whole = {"cpus": laptop.run("provider", "show", "h1", "--json").json["cpus"]}
        # Tasks of a second: a worker that believes them to be shorter takes all that are left.
        job = laptop.submit(bag("room", "echo $GRIDCTL_TASK_INDEX >> /tmp/room.runs; [ $GRIDCTL_TASK_INDEX -lt 4 ] && gate=first || gate=rest; "
                                        "while [ ! -e /tmp/room.$gate ]; do sleep 0.1; done; [ $gate = rest ] || sleep 1",
                                {"count": 40, "retries": 0}, resources=whole))
        job.wait("tasks to run on both hosts", 40, lambda: all(
            the_grid.enter(host, "cat /tmp/room.runs 2>/dev/null || true").strip() for host in the_grid.hosts))
        urgent = laptop.submit({"name": "urgent", "run": "true", "resources": whole, "priority": 5})
        told = urgent.wait_event("preempting", deadline=40)
        self.assertIn(f"these workers of bags with less priority have left: 1 of {job.id} (the tasks that they run get at most 2m", told["text"])
        self.assertIn(told["text"], laptop.run("job", "explain", urgent.id).out)
        leaves = job.wait_event("worker_leaves", deadline=40)
        self.assertIn(f"is needed more urgently: this worker gets no more tasks, and leaves when those that it runs have ended, "
                      f"in at most 2m: job {urgent.id} of priority 5 waits", leaves["text"])
        before = {host: len(the_grid.enter(host, "cat /tmp/room.runs").split()) for host in the_grid.hosts}  # behind the first gate
        for host in the_grid.hosts:
            the_grid.enter(host, "touch /tmp/room.first")
        urgent.wait_success(60)  # though most of the bag waits for the second gate
        self.assertEqual(len(urgent.attempts()), 1)
        # Where the daemon looked late, it has stopped already.
        self.assertRegex(job.wait_event("worker_left")["text"],
                         "is needed more urgently: (stopping there, the tasks that it ran have ended|stopped there)")
        self.assertEqual(len(job.attempts()), 1, "the bag's own job stays")
        left = int(urgent.attempts()[0]["provider"].removeprefix("h"))
        job.wait("the worker to be back", 40, lambda: len(the_grid.enter(left, "cat /tmp/room.runs").split()) > before[left])
        for host in the_grid.hosts:
            the_grid.enter(host, "touch /tmp/room.rest")
        told = self.done(job)
        self.assertEqual((told["tasks"], told["done"], told["failed"]), (40, 40, 0))
        self.assertEqual(sorted(set(map(int, runs_of("room")))), list(range(40)))
        the_grid.wait_clean()

    def test_a_lost_host_and_a_killed_daemon_cost_only_what_was_held(self):
        job = laptop.submit(bag("lost", "echo $GRIDCTL_TASK_INDEX >> /tmp/lost.runs; sleep 0.1", 300))
        job.wait("some results", 40, lambda: job.show()["bag"]["done"] > 20)
        laptop.kill_daemon()
        laptop.need_daemon()
        before = job.show()["bag"]["done"]
        job.wait("more results", 40, lambda: job.show()["bag"]["done"] > before + 10)
        the_grid.kill(2)
        try:
            told = self.done(job, deadline=120)
        finally:
            the_grid.start(2)
        self.assertEqual((told["done"], told["failed"]), (300, 0))
        runs = runs_of("lost")
        self.assertEqual(sorted(set(map(int, runs))), list(range(300)))
        grid.figure("runs beyond 300 with a lost host and a killed daemon", len(runs) - 300)
        self.assertLess(len(runs) - 300, 60)

    def test_items_reach_their_tasks(self):
        words = ["plain", "two words", "a'quote", "$HOME;x", "dir/file.tar.gz"]
        run = laptop.run("job", "submit", "-d", "--json", "-n", "each", "--each", "--",
                         "printf '%s\\n'", "{}", "{.}", "{/}", ">>", "/tmp/each.$GRIDCTL_TASK_INDEX", stdin="\n".join(words) + "\n")
        job = grid.Job(laptop, run.json["job_id"])
        self.done(job)
        seen = {}
        for index in range(len(words)):
            for host in the_grid.hosts:
                text = the_grid.enter(host, f"cat /tmp/each.{index} 2>/dev/null || true")
                if text:
                    seen[index] = text.splitlines()
        self.assertEqual([seen[index][0] for index in range(len(words))], words)
        self.assertEqual(seen[4], ["dir/file.tar.gz", "dir/file.tar", "file.tar.gz"])

    def files_of_each(self, name, *options):
        """The files that a command has written next to those that its items name, by `job pull`."""
        folder = tempfile.mkdtemp(dir=laptop.folder)
        os.mkdir(os.path.join(folder, "in"))
        for number in range(8):
            with open(os.path.join(folder, "in", f"{number}.txt"), "w", encoding="utf-8") as file:
                file.write("x" * number)
        items = "".join(f"in/{number}.txt\n" for number in range(8))
        run = laptop.run("job", "submit", "-d", "--json", "-n", name, *options, "--cpus", "1", "--each", "--", "sleep 0.6; wc -c < {} > {.}.size",
                         stdin=items, cwd=folder)
        job = grid.Job(laptop, run.json["job_id"])
        told = self.done(job)
        self.assertEqual(len(told["providers"]), 2, "both hosts have written some")
        laptop.run("job", "pull", job.id, os.path.join(folder, "pulled"))
        seen = []
        for number in range(8):
            with open(os.path.join(folder, "pulled", "in", f"{number}.size"), encoding="utf-8") as file:
                seen.append(int(file.read()))
        self.assertEqual(seen, list(range(8)))
        self.assertEqual(len(os.listdir(os.path.join(folder, "pulled", "in"))), 8, "what was sent does not come back")

    def test_files_that_items_name_are_sent_and_what_all_workers_left_is_pulled(self):
        self.files_of_each("named")

    def test_files_of_a_command_are_fetched_by_a_pattern(self):
        self.files_of_each("fetched", "--outputs", "*.size")

    def test_results_stay_in_their_folder_whatever_the_items_are_called(self):
        items = ["..", ".", "../../above", "/etc/x", "a\\b", "x" * 3000, "x" * 2999 + "y", "tab\there", "-rf"]
        with tempfile.TemporaryDirectory() as folder:
            inner = os.path.join(folder, "inner", "results")
            laptop.run("job", "submit", "-n", "names", "--each", "--results", inner, "--", "printf %s {}", stdin="\n".join(items) + "\n", timeout=120)
            self.assertEqual(os.listdir(folder), ["inner"])
            self.assertEqual(os.listdir(os.path.join(folder, "inner")), ["results"])
            self.assertEqual(os.listdir(inner), ["1"])
            seen = []
            for name in os.listdir(os.path.join(inner, "1")):
                with open(os.path.join(inner, "1", name, "stdout"), encoding="utf-8") as file:
                    seen.append(file.read())
            self.assertEqual(sorted(seen), sorted(items))

    def test_arrays_number_their_tasks_as_slurm_does(self):
        run = laptop.run("job", "submit", "-d", "--json", "-n", "array", "--array", "3-9:3,20%1", "--",
                         "echo $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT >> /tmp/array.runs")
        job = grid.Job(laptop, run.json["job_id"])
        self.done(job)
        self.assertEqual(sorted(runs_of("array")), ["20/4", "3/4", "6/4", "9/4"])

    def test_a_stream_answers_each_item_once_though_a_host_is_lost(self):
        """The program stays up; answers come out in the order of the items, none missing and none twice."""
        program = ("import os, sys, time\nopen('/tmp/stream.runs', 'a').write('start\\n')\n"
                   "for line in sys.stdin:\n    time.sleep(0.02)\n    print('seen', line.strip(), flush=True)\n")
        folder = os.path.join(laptop.folder, "stream")
        os.makedirs(folder)
        with open(os.path.join(folder, "serve.py"), "w", encoding="utf-8") as file:
            file.write(program)
        items = "".join(f"item {number}\n" for number in range(1500))
        words = ["job", "submit", "-n", "stream", "--cpus", "1", "-w", folder, "--each", "--stream", "-k", "--", "python3", "serve.py"]
        with tempfile.TemporaryFile("w+") as given:
            given.write(items)
            given.seek(0)
            run = subprocess.Popen([grid.GRIDCTL, *words], env=laptop.environment, cwd=laptop.folder, stdin=given,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        job = grid.wait_until("the job", 20, lambda: next((grid.Job(laptop, one["job_id"]) for one in laptop.run("job", "ls", "--json").json
                                                          if one["name"] == "stream"), None))
        job.wait("some answers", 40, lambda: job.show()["bag"]["done"] > 100 and len(job.show()["bag"]["providers"]) > 1)
        the_grid.kill(2)
        try:
            out, err = run.communicate(timeout=150)
        finally:
            the_grid.start(2)
        self.assertEqual(run.returncode, 0, err)
        self.assertEqual(out, "".join(f"seen {line}\n" for line in items.splitlines()))
        starts = runs_of("stream")
        self.assertLessEqual(len(starts), 16, "the program is started once for a worker")

    def test_files_of_tasks_are_here_when_the_tasks_count(self):
        job = laptop.submit(bag("files", "mkdir -p out; echo $GRIDCTL_TASK_INDEX > out/$GRIDCTL_TASK_INDEX.txt; echo said", 60,
                                outputs=["out/*.txt"]))
        self.done(job)
        whole, part = (os.path.join(laptop.folder, name) for name in ("whole", "part"))
        laptop.run("job", "pull", job.id, whole)
        self.assertEqual(sorted(os.listdir(f"{whole}/out"), key=lambda name: int(name[:-4])), [f"{n}.txt" for n in range(60)])
        laptop.run("job", "pull", job.id, part, "--tasks", "17,20-22")
        self.assertEqual(sorted(os.listdir(f"{part}/out")), ["17.txt", "20.txt", "21.txt", "22.txt"])
        with open(f"{part}/out/21.txt", encoding="utf-8") as file:
            self.assertEqual(file.read(), "21\n")
        self.assertEqual(job.logs("--task", "21"), "said\n")

    def test_tasks_are_added_to_a_bag_that_runs_and_to_one_that_has_ended(self):
        run = laptop.run("job", "submit", "-d", "--json", "-n", "more", "--cpus", "1", "--each", "--",
                         "while test ! -e /tmp/more.go; do sleep 0.2; done; echo {} >> /tmp/more.runs", stdin="a1\na2\n")
        job = grid.Job(laptop, run.json["job_id"])
        job.wait_state("RUNNING")
        told = laptop.run("job", "submit", "--append", job.id, "--json", "--", ":::", "b1", "b2", "b3").json
        self.assertEqual((told["tasks_added"], told["tasks"]), (3, 5))
        job.wait("the journal to know them", 60, lambda: job.show()["bag"]["tasks"] == 5)
        for host in the_grid.hosts:
            the_grid.enter(host, "touch /tmp/more.go")
        self.assertEqual(self.done(job)["done"], 5)
        laptop.run("job", "submit", "--append", "more", stdin="c1\nc2\n")
        job.wait("all seven", 60, lambda: job.show()["bag"]["done"] == 7)
        self.done(job)
        self.assertEqual(sorted(set(runs_of("more"))), ["a1", "a2", "b1", "b2", "b3", "c1", "c2"])
        laptop.run("job", "submit", "--append", "more", "--array", "0-3", code=2)
        laptop.run("job", "submit", "--append", "more", "--", "echo", "{}", code=2)
        for option in (["--dry-run"], ["--cpus", "7"], ["-n", "other"]):
            told = laptop.run("job", "submit", "--append", "more", *option, stdin="d\n", code=2).err
            self.assertIn("cannot be combined with --append", told)
        self.assertEqual(job.show()["bag"]["tasks"], 7)

    def test_tasks_are_not_added_to_a_bag_that_too_many_failures_have_stopped_until_it_is_resumed(self):
        job = laptop.submit(bag("halted", "test -e /tmp/halted.mended", {"count": 4, "max_fails": 1, "retries": 0}))
        self.done(job, "FAILED")
        told = laptop.run("job", "submit", "--append", job.id, "--array", "4-5", code=2).err
        self.assertIn("job resume", told)
        for host in the_grid.hosts:
            the_grid.enter(host, "touch /tmp/halted.mended")
        laptop.run("job", "resume", job.id)
        self.done(job)
        laptop.run("job", "submit", "--append", job.id, "--array", "4-5")
        job.wait("all six", 60, lambda: job.show()["bag"]["done"] == 6)
        self.done(job)

    def last_step(self, name, run, tasks=30, **more):
        """A bag whose tasks leave files, a last step that waits until its host is told, and where that is."""
        job = laptop.submit(bag(name, "mkdir -p out; echo $GRIDCTL_TASK_INDEX > out/$GRIDCTL_TASK_INDEX.txt; echo said $GRIDCTL_TASK_INDEX",
                                tasks, outputs=["out/*.txt"], **{"finally": run}, **more))
        return job

    def pulled(self, job, name):
        folder = os.path.join(laptop.folder, name)
        laptop.run("job", "pull", job.id, folder)
        found = {}
        for path, _, files in os.walk(folder):
            for file in files:
                with open(os.path.join(path, file), encoding="utf-8") as text:
                    found[os.path.relpath(os.path.join(path, file), folder)] = text.read()
        return found

    def test_finally_merges_what_the_tasks_left(self):
        job = self.last_step("merge", "cat $(ls out/*.txt | sort -V) > all.txt; grep -c said tasks.out > said.txt; "
                                      "echo $GRIDCTL_TASK_COUNT $GRIDCTL_TASKS_DONE $GRIDCTL_TASKS_FAILED > counts.txt; echo merged")
        self.done(job)
        self.assertEqual(self.pulled(job, "merged"), {"all.txt": "".join(f"{n}\n" for n in range(30)), "said.txt": "30\n",
                                                      "counts.txt": "30 30 0\n"})
        self.assertIn("merged", job.logs("--attempt", "2"))
        part = os.path.join(laptop.folder, "merge-part")
        laptop.run("job", "pull", job.id, part, "--tasks", "3")
        self.assertEqual(os.listdir(f"{part}/out"), ["3.txt"])
        again = grid.Job(laptop, laptop.run("job", "rerun", job.id, "-n", "merge-again", "--json").json["job_id"])
        self.assertEqual(self.done(again)["done"], 30)
        self.assertEqual(self.pulled(again, "merged-again")["counts.txt"], "30 30 0\n")

    def test_batch_scripts_of_slurm_and_num_jobs_of_skypilot_are_bags(self):
        script = os.path.join(laptop.folder, "sbatch", "sweep.sbatch")
        os.makedirs(os.path.dirname(script))
        with open(os.path.join(os.path.dirname(script), "data.txt"), "w", encoding="utf-8") as file:
            file.write("data\n")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\n#SBATCH --array=3-9:3%2 -c 1\n#SBATCH --output=%a.out\n\n"
                       "cd $SLURM_SUBMIT_DIR\nsrun --ntasks=1 -n 1 echo $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT $(cat data.txt) \"$@\"\n")
        run = laptop.run("job", "submit", "-d", script)
        self.assertIn("--output is ignored", run.err)
        job = grid.Job(laptop, run.out.split()[1])
        self.done(job)
        self.assertEqual([job.logs("--task", str(task)) for task in range(3)], ["3/3 data\n", "6/3 data\n", "9/3 data\n"])
        job = grid.Job(laptop, laptop.run("job", "submit", "-d", "--array", "20-21", script, "--", "two words", "x").out.split()[1])
        self.done(job)
        self.assertEqual([job.logs("--task", str(task)) for task in range(2)], ["20/2 data two words x\n", "21/2 data two words x\n"])
        self.assertIn("continues with 22", laptop.run("job", "submit", "--append", job.id, script, code=2).err)
        laptop.run("job", "submit", "--append", job.id, "--array", "22-23")
        job.wait("four tasks", 60, lambda: job.show()["bag"]["done"] == 4)
        self.assertIn("23/", job.logs("--task", "3"))
        self.done(job)
        job = laptop.submit({"name": "ranked", "run": "echo $SKYPILOT_JOB_RANK of $SKYPILOT_NUM_JOBS", "num_jobs": 3, "resources": {"cpus": 1}})
        self.done(job)
        self.assertEqual([job.logs("--task", str(task)) for task in range(3)], ["0 of 3\n", "1 of 3\n", "2 of 3\n"])

    def test_finally_runs_though_tasks_failed_and_its_own_failure_is_the_bags(self):
        job = laptop.submit({**bag("partly", "test $GRIDCTL_TASK_INDEX != 3 || test -e /tmp/partly.mended", {"count": 8, "retries": 0}),
                             "finally": "echo $GRIDCTL_TASKS_FAILED $GRIDCTL_TASKS_FAILED_LIST >> /tmp/partly.runs; test ! -e /tmp/partly.mended || exit 7"})
        self.done(job, "FAILED")
        self.assertEqual(runs_of("partly"), ["1", "3"])
        self.assertIn("1 of 8 tasks failed: 3; finally succeeded", laptop.run("job", "show", job.id).out)
        for host in the_grid.hosts:
            the_grid.enter(host, "rm -f /tmp/partly.runs; touch /tmp/partly.mended")
        laptop.run("job", "resume", job.id)
        self.done(job, "FAILED")
        self.assertEqual(job.show()["exit_code"], 7)
        self.assertIn("finally: exit code 7", laptop.run("job", "show", job.id).out)
        for host in the_grid.hosts:
            the_grid.enter(host, "rm -f /tmp/partly.mended")
        laptop.run("job", "resume", job.id)
        self.done(job)

    def test_finally_runs_once_though_the_daemon_is_killed_and_again_when_its_host_is_lost(self):
        job = self.last_step("steady", "echo begun >> /tmp/steady.runs; while test ! -e /tmp/steady.go; do sleep 0.2; done; cat out/*.txt | wc -l > count.txt")
        grid.wait_until("the last step", 60, lambda: runs_of("steady"))
        laptop.kill_daemon()
        laptop.need_daemon()
        for host in the_grid.hosts:
            the_grid.enter(host, "touch /tmp/steady.go")
        self.done(job)
        self.assertEqual(runs_of("steady"), ["begun"])
        self.assertEqual(self.pulled(job, "steady"), {"count.txt": "30\n"})
        the_grid.wait_clean()

        job = self.last_step("moved", "echo begun >> /tmp/moved.runs; while test ! -e /tmp/moved.go; do sleep 0.2; done; cat out/*.txt | wc -l > count.txt")
        grid.wait_until("the last step", 60, lambda: runs_of("moved"))
        where = next(number for number, host in enumerate(the_grid.hosts, 1) if the_grid.enter(host, "cat /tmp/moved.runs 2>/dev/null || true"))
        the_grid.kill(where)
        try:
            for number, host in enumerate(the_grid.hosts, 1):
                if number != where:
                    the_grid.enter(host, "touch /tmp/moved.go")
            self.done(job, deadline=120)
        finally:
            the_grid.start(where)
        self.assertEqual(job.show()["bag"]["done"], 30)
        self.assertEqual(self.pulled(job, "moved"), {"count.txt": "30\n"})

    def kinds(self, job):
        return [one["kind"] for one in job.events()]

    def test_a_task_that_runs_out_of_memory_is_tried_again_with_more(self):
        """The kernel kills it in its container; a worker of its own has more, or the job itself where there is room for one only."""
        the_grid.start_docker(1)  # whose control groups limit memory everywhere
        laptop = the_grid.laptop("docker")
        self.addCleanup(laptop.close)
        laptop.register(1, None, "docker")
        # The host's report may be of before its start.
        grid.wait_until("docker to be seen", 120, lambda: laptop.run("provider", "check", "h1", check=False).code == 0 and
                        laptop.run("job", "submit", "--dry-run", "--image", IMAGE, "--", "true", check=False).code == 0)
        for name, limits in (("hungry", {}), ("alone", {"max_parallel": 1})):
            run = "case $GRIDCTL_TASK_INDEX in 3) dd if=/dev/zero of=/dev/null bs=100M count=1 && echo fed;; *) echo done;; esac"
            job = laptop.submit({"name": name, "image": IMAGE, "run": run, "resources": {"cpus": 1, "memory": "64MB"},
                                 "tasks": {"count": 6, "retries": 0, "retry": {"memory": "x2"}, **limits}})
            told = self.done(job, deadline=120)
            self.assertEqual((told["done"], told["failed"]), (6, 0))
            self.assertIn("fed", job.logs("--task", "3"))
            self.assertIn("tried_with_more", self.kinds(job))
            the_grid.wait_clean()

    def test_a_task_for_which_no_host_has_enough_fails_and_is_named(self):
        free = min(int(the_grid.enter(host, "df -Pk /tmp | awk 'END {print $4}'")) >> 20 for host in the_grid.hosts)  # GiB
        job = laptop.submit(bag("full", "test $GRIDCTL_TASK_INDEX != 1 || { echo 'tar: No space left on device' >&2; exit 2; }",
                                {"count": 4, "retries": 0, "retry": {"disk": "x2"}}, resources={"cpus": 1, "disk": max(free * 2 // 3, 1)}))
        told = self.done(job, "FAILED", deadline=120)
        self.assertEqual((told["done"], [one["task"] for one in told["failures"]]), (3, [1]))
        self.assertEqual(told["failures"][0]["end"], "no_space")
        self.assertGreater(told["failures"][0]["tries"], 1)
        self.assertIn("no_host_has_more", self.kinds(job))
        laptop.run("job", "resume", job.id)
        self.done(job, "FAILED", deadline=120)


if __name__ == "__main__":
    unittest.main()
