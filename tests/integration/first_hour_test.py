# SPDX-License-Identifier: Apache-2.0
"""What a new user meets in the first hour: hosts that ssh knows, one wrong word, a daemon that was killed."""
import os
import pty
import subprocess
import time
import unittest

import grid
from grid import wait_until

IMAGE = "localhost/busybox:1"
HOME = os.path.expanduser("~root")  # ssh asks the password file, not $HOME


def setUpModule():
    global the_grid
    the_grid = grid.up(2)


class KnownHosts(grid.Case):
    """Hosts that the user's own ssh knows already."""

    @classmethod
    def setUpClass(cls):
        if os.environ.get("GRIDCTL_ISOLATED") != "1":
            raise unittest.SkipTest("the user's ~/.ssh is not for tests")
        folder = os.path.join(HOME, ".ssh")
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "none", folder], check=True)
        cls.addClassCleanup(subprocess.run, ["umount", folder], check=False)
        with open(os.path.join(folder, "config"), "w", encoding="utf-8") as config:
            for host, facts in the_grid.facts.items():
                config.write(f"Host h{host}\n  HostName {facts['address']}\n  Port {facts['port']}\n  User worker\n"
                             f"  IdentityFile {the_grid.key}\n  HostKeyAlias grid-{host}\n")
            config.write("Host github.com *.example\n  User git\nHost *\n  ServerAliveInterval 5\n")
        cls.known = os.path.join(folder, "known_hosts")
        cls.keys = {}
        for host, facts in the_grid.facts.items():
            scanned = subprocess.run(["ssh-keyscan", "-t", "ed25519", "-p", str(facts["port"]), facts["address"]],
                                     check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            key = next(line for line in scanned.splitlines() if not line.startswith("#")).split(" ", 1)[1]
            cls.keys[host] = key
        cls.lines = "".join(f"grid-{host} {key}\n" for host, key in cls.keys.items())

    def write_known(self, text):
        with open(self.known, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", self.known], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)  # names are hashed, as Debian has it

    def test_a_key_that_ssh_knows_by_a_hashed_alias_needs_no_second_word(self):
        self.write_known(self.lines)
        laptop = self.grid.laptop("known")
        laptop.run("provider", "register", "ada", "h1", "--engine", "process")
        with open(os.path.join(laptop.state, "known_hosts"), encoding="utf-8") as ours:
            self.assertTrue(ours.read().strip(), "the record that counts is ours")
        laptop.close()

    def test_a_key_that_ssh_knows_otherwise_is_refused(self):
        self.write_known(f"grid-1 {self.keys[2]}\n")
        laptop = self.grid.laptop("otherwise")
        refused = laptop.run("provider", "register", "ada", "h1", code=6)
        self.assertIn("is not known", refused.err)
        laptop.close()

    def test_init_registers_what_ssh_knows_drills_it_and_says_what_is_next(self):
        self.write_known(self.lines)
        laptop = self.grid.laptop("init")
        told = laptop.run("init", code=2)
        self.assertIn("--host NAME or --all; ssh knows h1, h2\n", told.err)
        began = time.monotonic()
        done = laptop.run("init", "--all", timeout=180)
        grid.figure("gridctl init of two hosts, with its drill", f"{time.monotonic() - began:.1f} s")
        self.assertEqual([one["name"] for one in laptop.run("provider", "ls", "--json").json], ["h1", "h2"])
        self.assertIn("recoverable: yes", done.err)
        self.assertEqual(len([line for line in done.out.splitlines() if line.startswith("  gridctl ")]), 3, str(done))
        laptop.close()

    def test_init_asks_about_unknown_keys_and_can_be_repeated(self):
        self.write_known(f"grid-1 {self.keys[1]}\n")
        laptop = self.grid.laptop("asked")
        left_out = laptop.run("init", "--all", "--no-drill", timeout=90)
        self.assertIn("is not known", left_out.err)
        pid, terminal = pty.fork()
        if pid == 0:
            environment = {name: value for name, value in laptop.environment.items() if name != "CI"}
            os.execve(grid.GRIDCTL, [grid.GRIDCTL, "init", "--all", "--no-drill"], environment)
        text, answered, end = "", False, time.monotonic() + 90
        while time.monotonic() < end:
            try:
                text += os.read(terminal, 4096).decode(errors="replace")
            except OSError:
                break
            if not answered and "[yes/no]" in text:
                answered = True
                os.write(terminal, b"yes\n")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, text)
        self.assertIn("h1 is already registered", text)
        self.assertIn("h2 is registered", text)
        again = laptop.run("init", "--host", "h1", "--host", "h2", "--json")
        self.assertEqual([(one["host"], one["registered"], one["already"]) for one in again.json["hosts"]],
                         [("h1", True, True), ("h2", True, True)])
        laptop.close()

    def test_init_leaves_out_a_host_that_does_not_answer_and_names_it(self):
        self.write_known(self.lines)
        laptop = self.grid.laptop("half")
        self.grid.kill(2)
        try:
            done = laptop.run("init", "--all", "--no-drill", "--timeout", "15s", timeout=90)
            self.assertEqual([one["name"] for one in laptop.run("provider", "ls", "--json").json], ["h1"])
            self.assertIn("h2: ", done.err)
        finally:
            self.grid.start(2)
        laptop.close()


class Unfollowed(grid.Case):
    def test_every_listing_says_first_that_nobody_follows(self):
        laptop = self.grid.laptop("unfollowed")
        laptop.register(1, None, "process")
        job = laptop.submit({"name": "long", "run": "sleep 600"})
        job.wait_attempt(1)
        self.assertEqual(laptop.run("daemon", "status").code, 0)
        laptop.kill_daemon()
        self.assertEqual(laptop.run("daemon", "status", code=3).out, "not running\n")
        for words in (["job", "ls"], ["job", "show", job.id], ["job", "explain", job.id], ["job", "events", job.id],
                      ["provider", "ls"], ["provider", "show", "h1"]):
            first = laptop.run(*words).err.splitlines()[0]
            self.assertIn("no daemon follows the unfinished job", first, words)
            self.assertIn("gridctl daemon start", first)
        wait_until("the last sign of life to be old", 60, lambda: laptop.run("provider", "ls", "--json").json[0]["state"] == "answered")
        laptop.need_daemon()
        self.assertEqual(laptop.run("job", "ls").err, "")
        wait_until("an answer", 60, lambda: laptop.run("provider", "ls", "--json").json[0]["state"] == "answering")
        laptop.run("job", "cancel", job.id, "--now", "--wait")
        self.grid.wait_clean()
        laptop.close()


class Failures(grid.Case):
    @classmethod
    def setUpClass(cls):
        cls.laptop = the_grid.laptop("failures")
        for host in the_grid.hosts:
            cls.laptop.register(host, None, "podman")

    @classmethod
    def tearDownClass(cls):
        cls.laptop.close()

    def failed(self, spec, attempts):
        job = self.laptop.submit(spec)
        job.wait_state("FAILED", deadline=120)
        self.assertEqual(len(job.attempts()), attempts, job.evidence())
        return job

    def test_a_command_that_is_not_there_is_tried_once(self):
        job = self.failed({"name": "typo", "image": IMAGE, "run": "pyhton3 train.py"}, 1)
        self.assertEqual(job.show()["exit_code"], 127)

    def test_a_setup_that_fails_is_tried_once(self):
        self.failed({"name": "setup", "image": IMAGE, "setup": "exit 1", "run": "true"}, 1)

    def test_the_same_failure_on_a_second_host_is_the_programs(self):
        job = self.failed({"name": "bug", "image": IMAGE, "run": "exit 3"}, 2)
        self.assertIn("the same on 2 hosts", self.laptop.run("job", "show", job.id).out)

    def test_an_image_that_does_not_exist_has_its_own_reason(self):
        job = self.failed({"name": "image", "image": "localhost/no/such:1", "run": "true"}, 2)
        self.assertEqual(job.show()["reason"], "image_failed")
        told = self.laptop.run("job", "watch", job.id, code=5)
        self.assertIn("localhost/no/such:1", told.err)

    def test_the_root_of_a_container_is_writable_on_hosts_of_ones_own_and_leaves_nothing(self):
        run = ("mkdir /data && echo x > /data/x && echo y > /opt/y && chown 33:33 /opt/y && "
               "touch mine && chown 44:44 mine && mkdir -p deep/er && chown -R 55:55 deep && id -u")
        # In the shared store of the grid's hosts the image's files belong to nobody that a container knows.
        for one in self.grid.hosts:
            self.grid.as_worker(one, "podman save -q localhost/busybox:1 > own.tar && printf 'FROM docker-archive:own.tar\\n' > own && "
                                     "podman --storage-opt additionalimagestore= build -q -t localhost/own:1 -f own . >/dev/null")
        job = self.laptop.submit({"name": "roomy", "image": "localhost/own:1", "setup": "mkdir /opt/tool && touch /opt/tool/a",
                                  "run": "[ -e /opt/tool/a ] && " + run})
        job.wait_success()
        host = job.host()
        self.grid.wait_clean()
        self.laptop.run("job", "pull", job.id, "roomy")
        self.assertTrue(os.path.exists(os.path.join(self.laptop.folder, "roomy", "mine")))
        self.assertEqual(self.grid.enter(host, "ls -d /data /opt/y /opt/tool 2>/dev/null || true").strip(), "")

    def test_the_root_is_read_only_where_the_file_says_so_and_on_lent_hosts(self):
        job = self.failed({"name": "tight", "image": IMAGE, "container": {"root": "read-only"},
                           "run": "mkdir /data || exit 9"}, 2)
        self.assertEqual(job.show()["exit_code"], 9)
        lent = self.grid.laptop("lent")
        lent.register(1, "stranger", "podman", "--label", "lent=true")
        job = lent.submit({"name": "lent", "image": IMAGE, "run": "mkdir /data || exit 9", "constraints": {"images": "tags"},
                           "recovery": {"max_failures": 1}})
        job.wait_state("FAILED")
        self.assertEqual(job.show()["exit_code"], 9)
        self.grid.wait_clean(hosts=[1])  # nobody else would clean up after it
        lent.close()


class Leaving(grid.Case):
    def test_a_host_that_is_forgotten_keeps_nothing_unless_others_use_it(self):
        one, other = self.grid.laptop("one"), self.grid.laptop("other")
        for laptop in (one, other):
            laptop.register(2, None, "process")
            job = laptop.submit({"name": "short", "run": "echo hello > left.txt"})
            job.wait_success()
        self.grid.wait_clean(hosts=[2])
        told = one.run("provider", "rm", "h2")
        self.assertIn("stays on the host: others use it, too", told.err)
        left = self.grid.enter(2, "ls /home/worker/.gridctl/kept")
        self.assertEqual(len(left.split()), 1, left)
        other.run("provider", "rm", "h2")
        self.assertEqual(self.grid.enter(2, "ls -d /home/worker/.gridctl 2>/dev/null || true").strip(), "")
        one.close()
        other.close()


if __name__ == "__main__":
    unittest.main()
