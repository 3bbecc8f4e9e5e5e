# SPDX-License-Identifier: Apache-2.0
"""What a person does with jobs: cancel, resume, follow, send code and images, keep secrets; and every exit code."""
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import grid
from grid import plain

CANARY = "canary-5e1f0c0ffee"  # a secret that must be nowhere


def setUpModule():
    global laptop
    the_grid = grid.up(3)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


def images_folder():
    return subprocess.run([grid.SOURCE + "/scripts/mk-images", "--dir"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


class Following(grid.Case):
    def tearDown(self):
        super().tearDown()
        self.grid.heal_all()

    def test_cancel_with_grace_then_resume_where_it_was(self):
        job = laptop.submit(plain("cancelled", envs={"STEPS": 60}))
        job.wait_checkpoint(2)
        done = laptop.run("job", "cancel", job.id, "--grace", "5s", "--wait", timeout=40)
        self.assertIn("CANCELLED", done.out + job.state)
        self.grid.wait_clean()
        at_stop = max(grid.steps_of(job.logs()))
        laptop.run("job", "resume", job.id)
        job.wait_success()
        self.assert_continues(job, 10)
        self.assertGreaterEqual(min(grid.steps_of(job.logs("--attempt", "2"))), at_stop - 20)
        self.assert_steps_once(job, 60, attempts=2)

    def test_resume_from_an_older_checkpoint(self):
        job = laptop.submit(plain("older", envs={"STEPS": 40}, checkpoint={"keep": 50}))
        job.wait_success()
        oldest = min((one["checkpoint_id"] for one in job.checkpoints()), key=lambda name: int(name.split("@")[1]))
        laptop.run("job", "resume", job.id, "--from", oldest, "--wait", timeout=60)
        second = job.attempts()[1]
        self.assertEqual(second["resumed_from"], oldest)
        self.assert_continues(job, 10)
        self.assert_steps_once(job, 40, attempts=2)

    def test_the_best_checkpoint_outlives_newer_ones(self):
        losses = [5, 4, 1, 7, 8, 6]
        job = laptop.submit({"name": "best", "resources": {"cpus": 0.1},
                             "checkpoint": {"path": "out", "keep": {"last": 1, "best": 1, "metric": "loss"}},
                             "run": "mkdir out; for i in " + " ".join(map(str, losses)) + "; do\n"
                                    "  echo '{\"loss\": '$i', \"bad name\": 1}' >> $GRIDCTL_METRICS\n"
                                    "  rm -f out/.commit; echo $i > out/state; : > out/.commit\n"
                                    "  until [ -f go-$i ]; do sleep 0.1; done\ndone"})
        for number, loss in enumerate(losses, 1):
            job.wait_checkpoint(number)
            self.grid.enter(job.host(), f"cd /home/worker/.gridctl/jobs/*/{job.id}/*/work && touch go-{loss}")
        job.wait_success()
        kept = {int(one["checkpoint_id"].split("@")[1]): one["metrics"] for one in job.checkpoints()}
        # The newest two stay in any case.
        self.assertEqual(kept, {3: {"loss": 1}, 5: {"loss": 8}, 6: {"loss": 6}})
        self.assertRegex(laptop.run("checkpoint", "ls", job.id).out, r"MARKS +loss\n")
        self.assertIn("loss 1\n", laptop.run("checkpoint", "show", job.id + "@3").out)

    def test_one_log_stream_over_a_failover(self):
        job = laptop.submit(plain("stream", envs={"STEPS": 70}))
        follower = laptop.spawn("job", "logs", "-f", job.id)
        job.wait_checkpoint(2)
        self.grid.kill(job.host())
        job.wait_success()
        out, err = follower.communicate(timeout=20)
        self.assertEqual(follower.returncode, 0, err)
        self.assertEqual(out, job.logs())
        runs = [job.logs("--attempt", str(attempt["number"])) for attempt in job.attempts()]
        self.assertEqual(out, "".join(runs))
        for run in runs:  # within one attempt: no line lost, none twice
            steps = grid.steps_of(run)
            self.assertEqual(steps, list(range(steps[0], steps[0] + len(steps))))
        self.assertEqual(set(grid.steps_of(out)), set(range(1, 71)))

    def test_watch_shows_it_and_exits_as_it_did(self):
        job = laptop.submit(plain("watched", envs={"STEPS": 20}))
        done = laptop.run("job", "watch", job.id)
        self.assertIn("step 20", done.out + job.logs())
        self.assertIn("succeeded", done.err)

    def test_interrupting_the_watching_does_not_end_the_job(self):
        job = laptop.submit(plain("interrupted", envs={"STEPS": 30}))
        watcher = laptop.spawn("job", "watch", job.id)
        job.wait_state("RUNNING")
        watcher.send_signal(signal.SIGINT)
        _, err = watcher.communicate(timeout=10)
        self.assertEqual(watcher.returncode, 130, err)
        self.assertIn(f"gridctl job watch {job.id}", err)
        job.wait_success()


class Inputs(grid.Case):
    def test_a_one_line_edit_sends_one_chunk(self):
        source = os.path.join(self.grid.folder, "code")
        os.makedirs(source)
        with open(os.path.join(source, "data.bin"), "wb") as file:
            file.write(os.urandom(24 << 20))
        script = os.path.join(source, "main.sh")
        pin = {"providers": ["h1"]}

        def run(text):
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"echo {text}\n")
            job = laptop.submit(plain("edited", workdir=source, run="sh main.sh; wc -c < data.bin", constraints=pin))
            job.wait_success()
            self.assertIn(text, job.logs())
            self.assertIn(str(24 << 20), job.logs())
            return cache_bytes(self.grid, 1)

        before = cache_bytes(self.grid, 1)
        first = run("one")
        second = run("two")
        self.assertGreaterEqual(first - before, 24 << 20)
        grid.figure("bytes in the host's cache after a one-line edit", second - first)
        self.assertLess(second - first, 1 << 20)
        self.grid.wait_clean()

    def test_a_file_that_is_applied_again_starts_nothing(self):
        source = os.path.join(self.grid.folder, "applied")
        os.makedirs(source)
        script, path = os.path.join(source, "main.sh"), os.path.join(self.grid.folder, "applied.yaml")

        def write(seconds=60, step="one"):
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"sleep {seconds}\n")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"name: applied\nworkdir: {source}\nrun: sh main.sh\nresources: {{cpus: 0.1}}\nenvs: {{STEP: {step}}}\n")

        write()
        first = laptop.run("job", "apply", path, "--json").json["job_id"]
        job = grid.Job(laptop, first)
        job.wait_state("RUNNING")
        self.assertIn("unchanged, RUNNING", laptop.run("job", "apply", path).out)
        write(seconds=61)
        self.assertIn("the file would change the working directory", laptop.run("job", "apply", path, check=False).err)
        write(step="two")
        refused = laptop.run("job", "apply", path, check=False)
        self.assertIn("the file would change envs", refused.err)
        self.assertIn(f"gridctl job cancel {first}", refused.err)
        laptop.run("job", "cancel", first, "--wait")
        write(seconds=0, step="two")
        second = grid.Job(laptop, laptop.run("job", "apply", path, "--json").json["job_id"])
        second.wait_success()
        self.assertIn("unchanged, SUCCEEDED", laptop.run("job", "apply", path).out)
        self.assertNotEqual(second.id, first)

    def test_ignored_files_stay_here(self):
        source = os.path.join(self.grid.folder, "ignoring")
        os.makedirs(source)
        for name, text in (("main.sh", "ls -a"), (".gitignore", "*.secret\n"), ("keys.secret", "x")):
            with open(os.path.join(source, name), "w", encoding="utf-8") as file:
                file.write(text)
        job = laptop.submit(plain("ignoring", workdir=source, run="sh main.sh"))
        job.wait_success()
        self.assertIn("main.sh", job.logs())
        self.assertNotIn("keys.secret", job.logs())

    def test_mounts_and_an_image_archive(self):
        data = os.path.join(self.grid.folder, "mounted")
        os.makedirs(os.path.join(data, "deep"))
        with open(os.path.join(data, "deep", "file"), "w", encoding="utf-8") as file:
            file.write("from the laptop\n")
        archive = os.path.join(laptop.folder, "image.tar")
        shutil.copy(os.path.join(images_folder(), "busybox.tar"), archive)
        job = laptop.submit(plain("archive", image="./image.tar", file_mounts={"/data": data},
                                  run="cat /data/deep/file; busybox | head -n 1; pwd; sh plain.sh", envs={"STEPS": 10}))
        job.wait_success(deadline=120)
        self.assertIn("from the laptop", job.logs())
        self.assertIn("BusyBox", job.logs())
        self.assert_steps_once(job, 10, attempts=1)
        self.grid.wait_clean()

    def test_the_promised_environment(self):
        job = laptop.submit(plain("environment", envs={"MINE": "kept as it is"}, setup="echo setup in $(pwd)",
                                  run="env | sort; echo in $(pwd)"))
        job.wait_success()
        output = job.logs()
        for line in (f"GRIDCTL_JOB_ID={job.id}", "GRIDCTL_JOB_NAME=environment", "GRIDCTL_ATTEMPT=1", "GRIDCTL_EPOCH=1",
                     "GRIDCTL_NODE_RANK=0", "GRIDCTL_NUM_NODES=1", "GRIDCTL_RESUME_FROM=", "SKYPILOT_NODE_RANK=0",
                     "SKYPILOT_NUM_NODES=1", "MINE=kept as it is"):
            self.assertRegex(output, "(?m)^" + re.escape(line), output)
        for name in ("GRIDCTL_CKPT_DIR", "GRIDCTL_CKPT_INTERVAL", "GRIDCTL_METRICS", "GRIDCTL_MASTER_ADDR",
                     "GRIDCTL_MASTER_PORT", "GRIDCTL_BACKEND", "GRIDCTL_GPUS_PER_NODE", "SKYPILOT_TASK_ID"):
            self.assertRegex(output, f"(?m)^{name}=", output)
        self.assertNotRegex(output, "(?m)^(RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|TORCHELASTIC_|SLURM_|OMPI_)", output)
        self.assertIn("setup in ", output)

    def test_the_interval_is_tuned_while_the_job_runs(self):
        for image in (None, "localhost/busybox:1"):
            with self.subTest(image or "process"):
                spec = plain("tuned", envs={"STEPS": 100}, checkpoint={"interval": "auto", "signal": "SIGUSR1"},
                             run="trap 'echo signalled' USR1; tell() { echo told $(cat $GRIDCTL_CKPT_INTERVAL_FILE); }; tell; sh plain.sh & program=$!;"
                                 " while kill -0 $program; do tell; sleep 0.5; done; wait $program")
                if image:
                    spec["image"] = image
                job = laptop.submit(spec)
                self.assertRegex(job.wait_event("interval_tuned")["text"], r"suggested checkpoint interval: \S+: saving pauses")
                job.wait_success()
                told = [int(seconds) for seconds in re.findall(r"(?m)^told (\d+)$", job.logs())]
                self.assertEqual(told[0], 1800)  # before a checkpoint was measured
                self.assertLess(told[-1], told[0])
                self.assertIn("\nsignalled\n", job.logs())
                self.grid.wait_clean()

    def test_secrets_are_nowhere_but_in_the_job(self):
        for image in (None, "localhost/busybox:1"):
            with self.subTest(image or "process"):
                spec = plain("secretive", secrets={"TOKEN": None}, envs={"STEPS": 30},
                             run='echo "length ${#TOKEN}"; sh plain.sh')
                if image:
                    spec["image"] = image
                job = laptop.submit(spec, env={"TOKEN": CANARY})
                job.wait_checkpoint(1)
                host = job.host()
                self.assertIn(f"length {len(CANARY)}", job.logs())
                self.assert_nowhere(job, host)
                job.wait_success()
                self.grid.wait_clean()
                self.assert_nowhere(job, host, ended=True)

    def assert_nowhere(self, job, host, ended=False):
        found = subprocess.run(["grep", "-rlaF", CANARY, laptop.state], stdout=subprocess.PIPE, text=True, check=False).stdout
        for path in found.split():
            self.assertTrue(not ended and path.startswith(os.path.join(laptop.state, "secrets")), f"the secret is in {path}")
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600, path)
        on_disk = subprocess.run(["grep", "-rlaF", CANARY, self.grid.disk(host)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True, check=False).stdout
        self.assertEqual(on_disk, "", "the secret is on the host's disk")
        arguments = self.grid.enter(host, f"ps -eww -o args= | grep -F {CANARY[:-3]} | grep -F {CANARY} | grep -v grep || true")
        self.assertEqual(arguments, "", "the secret is in arguments")
        for name in self.grid.containers_on(host):
            inspected = self.grid.as_worker(host, f"podman inspect {name}", check=False)
            self.assertNotIn(CANARY, inspected)
        if ended:
            self.assertEqual(self.grid.enter(host, f"grep -rlaF {CANARY} /dev/shm /run/user /tmp 2>/dev/null || true"), "")

    def test_secrets_go_with_a_job_whose_end_no_daemon_sees(self):
        holder = laptop.submit({"name": "holder", "run": "sleep 600", "resources": {"cpus": 2}}, "--provider", "h1")
        holder.wait_attempt(1)
        self.addCleanup(laptop.run, "job", "cancel", holder.id, "--now", "--wait")
        job = laptop.submit(plain("unseen", secrets={"TOKEN": None}, resources={"cpus": 2}), "--provider", "h1", env={"TOKEN": CANARY})
        laptop.kill_daemon()
        laptop.run("job", "cancel", job.id, "--wait")
        found = subprocess.run(["grep", "-rlaF", CANARY, laptop.state], stdout=subprocess.PIPE, text=True, check=False).stdout
        self.assertEqual(found, "")

    def test_secrets_survive_a_failover(self):
        job = laptop.submit(plain("secret-failover", secrets={"TOKEN": None}, run='echo "length ${#TOKEN}"; sh plain.sh',
                                  envs={"STEPS": 50}), env={"TOKEN": CANARY})
        job.wait_checkpoint(1)
        host = job.host()
        self.grid.kill(host)
        job.wait_success()
        self.grid.start(host)
        self.assertEqual(job.logs().count(f"length {len(CANARY)}"), 2)
        self.grid.wait_clean()


class ExitCodes(grid.Case):
    def wait_code(self, spec, code, *more, **options):
        path = os.path.join(laptop.folder, "code.yaml")
        with open(path, "w", encoding="utf-8") as file:
            import json
            json.dump(spec, file)
        return laptop.run("job", "submit", "--wait", path, *more, code=code, **options)

    def test_0_when_it_succeeds(self):
        self.wait_code(plain("good", run="true"), 0)

    def test_1_when_its_own_code_fails(self):
        done = self.wait_code(plain("bad", run="echo the reason; exit 3", recovery={"max_failures": 2}), 1)
        self.assertIn("exit code 3", done.err)
        job = grid.Job(laptop, "bad")
        self.assertEqual(len(job.attempts()), 2)
        self.assertEqual(len({attempt["provider"] for attempt in job.attempts()}), 2, "another host should have been tried")
        self.assertIn("the fault is in the program", job.evidence())

    def test_listed_exit_codes_end_or_restart_it(self):
        self.wait_code(plain("ends", run="exit 2", recovery={"on_exit": {"fail": [2]}, "max_failures": 5}), 1)
        self.assertEqual(len(grid.Job(laptop, "ends").attempts()), 1)
        self.wait_code(plain("restarts", run="[ $GRIDCTL_ATTEMPT = 3 ] || exit 33",
                             recovery={"on_exit": {"restart": [33]}, "max_failures": 1}), 0)
        self.assertEqual(len(grid.Job(laptop, "restarts").attempts()), 3)

    def test_3_for_what_does_not_exist(self):
        laptop.run("job", "show", "nonesuch", code=3)

    def test_4_with_the_reason_for_each_host(self):
        done = self.wait_code(plain("huge", resources={"cpus": 4000}), 4)
        for host in self.grid.hosts:
            self.assertIn(f"h{host}", done.err)

    def test_5_when_a_host_does_not_answer(self):
        self.grid.kill(3)
        try:
            done = laptop.run("provider", "check", "h3", "--timeout", "3s", check=False)
            self.assertIn(done.code, (5, 124), str(done))
            refused = laptop.run("provider", "register", "nobody", "worker@127.0.0.1:9", "--host-key",
                                 self.grid.facts[1]["host_key"], "-i", self.grid.key, check=False)
            self.assertEqual(refused.code, 5, str(refused))
        finally:
            self.grid.start(3)

    def test_8_for_a_damaged_checkpoint(self):
        own = self.grid.laptop("damaged")
        own.register(1)
        job = own.submit(plain("damaged", envs={"STEPS": 20}))
        job.wait_success()
        damaged = 0
        for folder, _, files in os.walk(os.path.join(own.state, "store")):
            for name in files:
                path = os.path.join(folder, name)
                if os.path.getsize(path) > 64:
                    with open(path, "r+b") as file:
                        data = bytearray(file.read())
                        data[32:] = bytes(byte ^ 1 for byte in data[32:])
                        file.seek(0)
                        file.write(data)
                    damaged += 1
        self.assertTrue(damaged)
        own.run("checkpoint", "verify", job.id, code=8)

    def test_9_when_it_is_cancelled(self):
        job = laptop.submit(plain("stopped", envs={"STEPS": 1000}))
        watcher = laptop.spawn("job", "watch", job.id)
        job.wait_state("RUNNING")
        laptop.run("job", "cancel", job.id, "--now", "--wait", timeout=40)
        watcher.communicate(timeout=15)
        self.assertEqual(watcher.returncode, 9)

    def test_124_when_the_timeout_runs_out(self):
        spec = plain("slow", envs={"STEPS": 40})
        done = self.wait_code(spec, 124, "--timeout", "2s")
        self.assertIn("the job continues", done.err)
        grid.Job(laptop, "slow").wait_success()


def cache_bytes(the_grid, host):
    return int(the_grid.enter(host, "du -sb /home/worker/.gridctl/cache 2>/dev/null | cut -f1 || true").strip() or 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
