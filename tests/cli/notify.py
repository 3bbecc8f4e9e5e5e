#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Notifications of a real daemon: to a server that answers, hangs or gives 500, to commands, by mail; and a daemon that
is killed between. Usage: notify.py GRIDCTL SOURCE_DIR"""
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

GRIDCTL, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PATIENCE = 60  # seconds for whatever is awaited


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps what is posted. `fates`: a status for each request, or "hang"; then 200."""
    daemon_threads = True

    def __init__(self, *fates):
        self.fates, self.got, self.over = list(fates), [], threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hook?token=hidden"

    def texts(self):
        return [one["text"] for one in self.got]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body["key"] = self.headers["Idempotency-Key"]
        fate = self.server.fates.pop(0) if self.server.fates else 200
        self.server.got.append(body)
        if fate == "hang":
            self.server.over.wait(600)
            return
        self.send_response(fate)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def until(true, what):
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {PATIENCE} s")
        time.sleep(0.1)


class Notifications(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="gridctl-notify-")
        cls.bin = os.path.join(SOURCE, "tests", "cli", "bin")
        here = os.path.join(cls.folder, "work")
        os.mkdir(here)
        cls.environment = dict(os.environ, TRANSCRIPT=cls.folder, GRIDCTL_STATE=os.path.join(cls.folder, "state"), HOME=cls.folder,
                               PATH=f"{cls.bin}:{os.path.dirname(GRIDCTL)}:{os.environ['PATH']}", GRIDCTL_SOURCE_DIR=SOURCE)
        cls.here = here
        cls.shell("start-sshd ada key && register ada --engine process --host-key $(cat ../ada.fingerprint)")

    @classmethod
    def tearDownClass(cls):
        subprocess.run([GRIDCTL, "daemon", "stop"], env=cls.environment, capture_output=True)
        subprocess.run(["stop-sshd", "ada"], env=cls.environment, capture_output=True)
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def shell(cls, command):
        done = subprocess.run(["bash", "-c", command], env=cls.environment, cwd=cls.here, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def tearDown(self):
        for key in ("webhook", "command", "mail", "on", "sendmail", "job_commands"):
            self.shell(f"gridctl config set notify.{key} ''")

    def run_job(self, name, rules="", command="true"):
        path = os.path.join(self.here, f"{name}.yaml")
        with open(path, "w") as file:
            file.write(f"name: {name}\nrun: {json.dumps(command)}\nrecovery: {{max_failures: 1}}\n{rules}\n")
        done = subprocess.run([GRIDCTL, "job", "submit", "--wait", path], env=self.environment, cwd=self.here, capture_output=True,
                              text=True, timeout=300)
        return done.returncode

    def kill_daemon(self):
        pid = json.loads(self.shell("gridctl daemon status --json"))["pid"]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{pid}"), "the daemon's end")

    def is_between_two_tries(self):
        with open(os.path.join(self.environment["GRIDCTL_STATE"], "notify.json")) as file:
            return any(one["tries"] > 1 and not one["sending"] for one in json.load(file)["open"])

    def test_the_end_of_a_job_is_posted_once(self):
        everywhere, of_job = Receiver(), Receiver()
        self.shell(f"gridctl config set notify.webhook '{everywhere.url}'")
        self.assertEqual(self.run_job("fine", f"notify: {{webhook: '{of_job.url}', on: [end]}}"), 0)
        until(lambda: everywhere.got and of_job.got, "a notification")
        for receiver in (everywhere, of_job):
            message = receiver.got[0]
            self.assertEqual((message["notice"], message["name"], message["state"]), ("end", "fine", "SUCCEEDED"))
            self.assertIn("fine (", message["text"])
            self.assertEqual(message["key"], message["id"])
        time.sleep(3)
        self.assertEqual((len(everywhere.got), len(of_job.got)), (1, 1))

    def test_only_what_was_asked_for_is_posted(self):
        failures = Receiver()
        rule = f"notify: {{webhook: '{failures.url}', on: failure}}"
        self.run_job("good", rule)
        self.assertEqual(self.run_job("bad", rule, "exit 3"), 1)
        until(lambda: failures.got, "a notification")
        self.assertEqual([(one["notice"], one["name"]) for one in failures.got], [("failure", "bad")])

    def test_a_server_in_trouble_is_asked_again(self):
        receiver = Receiver(500, 503)
        self.run_job("again", f"notify: {{webhook: '{receiver.url}'}}")
        until(lambda: len(receiver.got) == 3, "a third try")
        self.assertEqual(len({one["id"] for one in receiver.got}), 1)
        time.sleep(3)
        self.assertEqual(len(receiver.got), 3)

    def test_a_refusal_is_final_and_told(self):
        receiver = Receiver(404)
        self.run_job("refused", f"notify: {{webhook: '{receiver.url}'}}")
        until(lambda: "notify_failed" in self.shell("gridctl job events refused --json"), "the event")
        told = self.shell("gridctl job events refused")
        self.assertIn("status 404", told)
        self.assertNotIn("hidden", told)
        self.assertEqual(len(receiver.got), 1)

    def test_receivers_that_hang_delay_nothing_and_get_nothing_twice(self):
        hangs, answers = Receiver("hang"), Receiver()
        mark = os.path.join(self.folder, "begun")
        self.shell(f"gridctl config set notify.webhook '{hangs.url}'")
        self.shell(f"gridctl config set notify.command 'echo x >> {mark}; sleep 45'")
        self.run_job("slow", f"notify: {{webhook: '{answers.url}'}}")
        until(lambda: answers.got and hangs.got and os.path.exists(mark), "the three notifications")
        self.shell("gridctl config set notify.command ''; gridctl config set notify.webhook ''")
        self.assertEqual(self.run_job("next", f"notify: {{webhook: '{answers.url}'}}"), 0)
        until(lambda: len(answers.got) == 2, "the next notification")
        self.kill_daemon()  # while two are under way
        self.run_job("after", f"notify: {{webhook: '{answers.url}'}}")
        until(lambda: len(answers.got) == 3, "a notification of the next daemon")
        time.sleep(3)
        self.assertEqual(len(hangs.got), 1)
        with open(mark) as file:
            self.assertEqual(file.read(), "x\n")
        self.assertEqual(len({one["id"] for one in answers.got}), 3)
        self.assertRegex(self.shell("cat $GRIDCTL_STATE/daemon.log"), "not send it again|giving up")  # the latter: this machine was slow
        hangs.over.set()

    def test_a_daemon_that_is_killed_between_two_tries_is_followed_by_one_that_sends(self):
        receiver = Receiver(500, 500, 500)
        self.run_job("kept", f"notify: {{webhook: '{receiver.url}'}}")
        until(self.is_between_two_tries, "a second try")
        self.kill_daemon()
        receiver.fates.clear()
        tried = len(receiver.got)
        self.shell("gridctl daemon start")
        until(lambda: len(receiver.got) > tried, "a try of the next daemon")
        time.sleep(3)
        self.assertEqual(len(receiver.got), tried + 1)

    def test_a_command_gets_the_message_and_mail_goes_through_sendmail(self):
        got, letter, sendmail = (os.path.join(self.folder, name) for name in ("got", "letter", "sendmail"))
        with open(sendmail, "w") as file:
            file.write(f"#!/bin/sh\ncat > {letter}.new && mv {letter}.new {letter}\n")
        os.chmod(sendmail, 0o755)
        self.shell(f"gridctl config set notify.sendmail {sendmail}; gridctl config set notify.mail ada@example.org")
        self.shell(f"""gridctl config set notify.command '{{ echo "$GRIDCTL_MESSAGE"; cat; }} > {got}.new; mv {got}.new {got}'""")
        self.run_job("told")
        until(lambda: os.path.exists(got) and os.path.exists(letter), "command and mail")
        with open(got) as file:
            line, message = file.read().splitlines()
        self.assertIn("told (", line)
        self.assertEqual(json.loads(message)["text"], line)
        with open(letter) as file:
            text = file.read()
        self.assertTrue(text.startswith("To: ada@example.org\nSubject: gridctl: told ("), text)

    def test_a_job_file_runs_no_command_here_unless_it_may(self):
        rule = "notify: {command: 'touch ran'}"
        self.assertEqual(self.run_job("asks", rule), 2)
        self.shell("gridctl config set notify.job_commands yes")
        self.assertEqual(self.run_job("asks", f"notify: {{command: 'touch {self.folder}/ran'}}"), 0)
        until(lambda: os.path.exists(f"{self.folder}/ran"), "the command")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
