# SPDX-License-Identifier: Apache-2.0
"""The frictions of a first day, each played as a user would: what was typed, what came back, what must hold.
With GRIDCTL_OLD=PATH the same commands are first given to that older gridctl, whose answers are printed and not judged;
GRIDCTL_TRANSCRIPT=FOLDER keeps both as files."""
import contextlib
import json
import os
import pty
import re
import shlex
import subprocess
import threading
import time
import unittest

import grid
from grid import wait_until

OLD = os.environ.get("GRIDCTL_OLD", "")
FOLDER = os.environ.get("GRIDCTL_TRANSCRIPT", "")


def setUpModule():
    grid.up(2)


class Session:
    """One laptop with two hosts, and what was said to and by it."""

    def __init__(self, title, program, judged):
        self.title, self.judged, self.lines = title, judged, []
        grid.GRIDCTL = program
        self.laptop = grid.the_grid.laptop(f"{title}-{'now' if judged else 'before'}")
        for host in grid.the_grid.hosts:
            self.laptop.register(host, engine="process")

    def run(self, line, code=None, **options):
        """A line as a person types it; `code`: with which it must end."""
        done = self.laptop.run(*shlex.split(line), check=False, **options)
        self.lines += [f"$ gridctl {line}", *(done.out + done.err).rstrip().splitlines(), *([f"[exit {done.code}]"] if done.code else [])]
        if self.judged and code is not None:
            assert done.code == code, done
        return done

    def write(self, name, text):
        with open(os.path.join(self.laptop.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def last(self):
        return self.laptop.run("job", "ls", "--json").json[0]

    def wait(self, what, *states):
        if self.judged:
            wait_until(what, 60, lambda: self.last()["state"] in states, lambda: self.laptop.run("job", "events", "@last", check=False).out)
        else:
            with contextlib.suppress(AssertionError):
                wait_until(what, 10, lambda: self.last()["state"] in states)

    def close(self):
        text = "\n".join(line.rstrip() for line in self.lines) + "\n"
        if FOLDER:
            with open(os.path.join(FOLDER, f"{self.title}.{'now' if self.judged else 'before'}.txt"), "w", encoding="utf-8") as file:
                file.write(text)
        self.laptop.close()


class Frictions(grid.Case):
    def play(self, title, story):
        """`story` of a Session, first with the older program, then with this one. Its assertions hold for this one."""
        ours = grid.GRIDCTL
        for program, judged in ([(OLD, False)] if OLD else []) + [(ours, True)]:
            session = Session(title, program, judged)
            try:
                story(session)
            except (AssertionError, KeyError, ValueError, IndexError):
                if judged:
                    raise
            finally:
                session.close()
                grid.GRIDCTL = ours

    def test_the_welcome_screens_own_command_sends_the_program(self):
        def story(it):
            it.write("train.py", "print('trained')\n")
            it.run("job submit -y -- python3 train.py", 0)
            if it.judged:
                self.assertIn("trained", "\n".join(it.lines))

        self.play("submit-sends", story)

    def test_what_was_declared_about_a_host_can_be_changed(self):
        def story(it):
            done = it.run("provider set h1 --site lab --region eu --label rack=7 --class datacenter --price 0.5", 0)
            it.run("provider ls")
            shown = it.run("provider show h1 --json", 0)
            if it.judged:
                self.assertEqual(done.code, 0)
                host = shown.json
                self.assertEqual([host["site"], host["region"], host["class"], host["price"], host["labels"]],
                                 ["lab", "eu", "datacenter", 0.5, {"rack": "7"}])

        self.play("provider-set", story)

    def test_a_host_can_be_forgotten_right_after_success(self):
        def story(it):
            it.run("job submit -y --provider h1 -- true", 0)
            it.run("provider rm h1", 0)
            it.run("job ls", 0)

        self.play("provider-rm", story)

    def test_a_dumb_terminal_gets_plain_lines(self):
        def story(it):
            master, slave = pty.openpty()
            process = subprocess.Popen([grid.GRIDCTL, "job", "submit", "-y", "--", "sh", "-c", "sleep 3; echo done"], stdin=slave, stdout=slave,
                                       stderr=slave, cwd=it.laptop.folder, env={**it.laptop.environment, "TERM": "dumb", "CI": ""})
            os.close(slave)
            parts = []

            def read():
                with contextlib.suppress(OSError):
                    while data := os.read(master, 65536):
                        parts.append(data)

            reader = threading.Thread(target=read)
            reader.start()
            process.wait(60)
            reader.join(10)
            os.close(master)
            text = b"".join(parts)
            it.lines += ["$ TERM=dumb gridctl job submit -y -- sh -c 'sleep 3; echo done'", repr(text)]
            if it.judged:
                self.assertNotIn(b"\x1b", text)
                self.assertIn(b"done", text)

        self.play("term-dumb", story)

    def test_a_running_jobs_files_can_be_fetched_and_are_not_sent_again(self):
        def story(it):
            it.write("make.sh", "mkdir -p results; echo 1 > results/a; echo made; sleep 60\n")
            it.write("job.yaml", json.dumps({"name": "making", "workdir": ".", "run": "sh make.sh", "outputs": ["results"]}))
            it.run("job submit -d -y job.yaml", 0)
            with contextlib.suppress(AssertionError):
                wait_until("its output", 20, lambda: "made" in it.laptop.run("job", "logs", "@last", check=False).out)
            it.run("job pull @last", 0)
            found = sorted(name for name in os.listdir(it.laptop.folder) if os.path.isdir(os.path.join(it.laptop.folder, name)) and name != "state")
            it.lines += ["$ ls -d */", *found]
            sent = it.run("job submit --dry-run job.yaml", 0)
            it.run("job cancel @last --now --wait")
            if it.judged:
                self.assertTrue(found)
                self.assertNotRegex(sent.out, r"\b" + re.escape(found[0]) + "/")

        self.play("pull-running", story)

    def test_jobs_are_removed_repeated_and_listed_as_others_do(self):
        def story(it):
            for name in ("one", "two"):
                it.run(f"job submit -y -n {name} -- echo {name}", 0)
            it.run("job show one --file", 0)
            again = it.run("job rerun one", 0)
            it.wait("the second run", "SUCCEEDED")
            listed = it.run("job ls 'state=SUCCEEDED' --sort name -o wide", 0)
            stamped = it.run("job logs two --timestamps --since 1h --grep two", 0)
            it.run("job rm two -y", 0)
            it.run("job prune --older-than 0s -y")
            left = it.run("job ls --all" if not it.judged else "job ls", 0)
            if it.judged:
                self.assertEqual(again.code, 0)
                self.assertIn("two", listed.out)
                self.assertRegex(stamped.out, r"\d\d:\d\d:\d\d.* two")
                self.assertNotIn("two", left.out)

        self.play("job-verbs", story)

    def test_explain_says_one_thing(self):
        def story(it):
            it.write("saves.yaml", json.dumps(grid.plain("saves", envs={"STEPS": 400})))
            it.run("job submit -d -y saves.yaml", 0)
            it.wait("running", "RUNNING")
            with contextlib.suppress(AssertionError):
                wait_until("two checkpoints", 40, lambda: len(it.laptop.run("checkpoint", "ls", "@last", "--json").json) >= 2)
            it.run("checkpoint ls @last")
            told = it.run("job explain @last", 0)
            it.run("job cancel @last --now --wait")
            if it.judged:
                self.assertNotIn("start over", told.out)
                self.assertNotIn("no checkpoint yet", told.out)

        self.play("explain", story)

    def test_a_daemon_that_a_command_started_stays_when_it_is_told_to(self):
        def story(it):
            it.run("job submit -y -- true", 0)
            first = it.laptop.daemon_pid()
            it.run("daemon start", 0)
            deadline = time.monotonic() + 24  # one that stays only for jobs goes after 20 s
            while time.monotonic() < deadline and it.laptop.daemon_pid() == first:
                time.sleep(0.5)
            it.lines.append("(24 seconds later)")
            told = it.run("daemon status")
            if it.judged:
                self.assertIn(f"pid {first},", told.out)

        self.play("daemon-start", story)

    def test_json_has_one_vocabulary(self):
        def story(it):
            host = it.run("provider ls --json", 0)
            ended = it.run("job submit -y --wait --json -- sh -c 'echo said; exit 3'", 1)
            lines = it.run("job logs @last --json", 0)
            if it.judged:
                self.assertEqual({one["state"] for one in host.json}, {"answering"})
                self.assertRegex(ended.out, r'"exit_code":\s*3\b')
                self.assertIn("said", [json.loads(line).get("text", json.loads(line).get("line")) for line in lines.out.splitlines()])

        self.play("json", story)

    def test_files_of_other_programs_are_named_with_what_is_dropped(self):
        def story(it):
            it.write("train.sbatch", "#!/bin/bash\n#SBATCH --array=0-3\n#SBATCH --time=02:00:00\n#SBATCH --gres=gpu:1\n#SBATCH --partition=long\npython3 train.py\n")
            it.run("job submit --dry-run train.sbatch")
            it.write("sky.yaml", "resources:\n  instance_type: p3.2xlarge\nrun: python3 train.py\n")
            placed = it.run("job submit --dry-run sky.yaml")
            it.write("bucket.yaml", "file_mounts:\n  /data: s3://bucket/data\nrun: ls /data\n")
            it.run("job submit --dry-run bucket.yaml")
            if it.judged:
                text = "\n".join(it.lines)
                self.assertIn("--partition is ignored", text)
                self.assertIn("tasks is 4", text)
                self.assertIn("wanted 1 GPU", text)
                self.assertNotEqual(placed.code, 0)
                self.assertIn("V100", text)

        self.play("foreign-files", story)

    def test_a_program_finds_one_page_for_itself(self):
        def story(it):
            told = it.run("help agents", 0)
            if it.judged:
                self.assertIn("five commands", " ".join(told.out.split()))

        self.play("help-agents", story)


if __name__ == "__main__":
    unittest.main(verbosity=2)
