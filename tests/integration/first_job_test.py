# SPDX-License-Identifier: Apache-2.0
"""The first job of README.md, typed as it stands there on one plain SSH host: every command works, every line of output is
what gridctl prints, and all of it takes less than a minute. `--write` puts what was printed into README.md."""
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
import unittest

import grid

README = os.path.join(grid.SOURCE, "README.md")
BLOCK = re.compile(r"(<!-- first job: [^>]*-->\n\n```console\n)(.*?)(```\n)", re.DOTALL)
HOST = "me@ada.example.org"
COMMANDS_MAX, SECONDS_MAX = 5, 60


def setUpModule():
    grid.up(1)


def commands_of(block):
    """The lines typed, each with those that belong to it (a here-document)."""
    commands, open_word = [], None
    for line in block.splitlines():
        if open_word is not None:
            commands[-1] += "\n" + line.removeprefix("> ")
            if line.removeprefix("> ") == open_word:
                open_word = None
        elif line.startswith("$ "):
            commands.append(line[2:])
            word = re.search(r"<<\s*'?(\w+)'?$", line)
            open_word = word.group(1) if word else None
    return commands


def shape(line):
    """A line without what differs from run to run: ids, numbers, times, and the width of columns."""
    line = re.sub(r"\b(?=[a-z]*\d)[a-z0-9]{13}\b", "ID", line)
    line = re.sub(r"SHA256:\S+", "KEY", line)
    line = re.sub(r" \([a-z ]+: \d\S*\)$", "", line)  # told of a stage that took long
    line = re.sub(r"\b(just now|(\d+(\.\d+)?\s*(ms|s|m|h|d|ago))+\b( ago)?)", "TIME", line)
    return re.sub(r"\s+", " ", re.sub(r"\d+([.:]\d+)*", "N", line)).strip()


class FirstJob(grid.Case):
    def setUp(self):
        super().setUp()
        if not os.environ.get("GRIDCTL_ISOLATED"):
            self.skipTest("needs mounts of its own: run it by tests/integration/isolated")
        self.folder = tempfile.mkdtemp(prefix="gridctl-first-job.")
        self.addCleanup(subprocess.run, ["rm", "-rf", "--one-file-system", self.folder], check=False)
        self.state = os.path.join(self.folder, "state")
        self.environment = dict(os.environ, GRIDCTL_STATE=self.state, NO_COLOR="1", TERM="dumb", PS1="",
                                PATH=os.path.dirname(grid.GRIDCTL) + ":" + os.environ["PATH"])
        self.environment.pop("CI", None)  # with it nobody is asked anything
        self.addCleanup(subprocess.run, [grid.GRIDCTL, "daemon", "stop"], env=self.environment, check=False,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.lend_identity()

    def lend_identity(self):
        """What a user has: a key that the host accepts, the host in known_hosts, and its name in the DNS."""
        facts = self.grid.facts[1]
        ssh = os.path.join(self.folder, "ssh")
        os.mkdir(ssh, 0o700)
        with open(self.grid.key, encoding="utf-8") as file:
            self.put(os.path.join(ssh, "id_ed25519"), file.read())
        self.put(os.path.join(ssh, "config"), "Host ada.example.org\n  User worker\n")
        hosts = os.path.join(self.folder, "hosts")
        with open("/etc/hosts", encoding="utf-8") as file:
            self.put(hosts, f"{file.read()}{facts['address']} ada.example.org\n", 0o644)
        home = os.path.expanduser("~/.ssh")
        os.makedirs(home, mode=0o700, exist_ok=True)
        for mine, place in ((ssh, home), (hosts, "/etc/hosts")):
            subprocess.run(["mount", "--bind", mine, place], check=True)
            self.addCleanup(subprocess.run, ["umount", place], check=False)

    @staticmethod
    def put(path, text, mode=0o600):
        with open(path, "w", encoding="utf-8") as file:
            os.chmod(path, mode)
            file.write(text)

    def type(self, command):
        command = command.replace(HOST, "worker@ada.example.org")
        if " register " in command:
            return self.at_terminal(command)
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS_MAX, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return [line.rstrip() for line in done.stdout.splitlines()]

    def at_terminal(self, command):
        """With yes to the question that a new host's key raises."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("bash", ["bash", "-c", f"stty cols 100; {command}"], self.environment)
        output, end, answered = b"", time.monotonic() + SECONDS_MAX, False
        while True:
            ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
            self.assertTrue(ready, f"still waiting for: {command}\n{output.decode(errors='replace')}")
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # its other end is closed
                break
            if not piece:
                break
            output += piece
            if not answered and re.search(rb"\[y/N\]|yes/no", output):
                os.write(terminal, b"yes\n")
                answered = True
        _, status = os.waitpid(pid, 0)
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", output.decode(errors="replace")).replace("worker@ada", "me@ada")
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, text)
        return [line.rstrip() for line in text.splitlines()]

    def test_every_command_of_the_readme_prints_what_stands_there(self):
        with open(README, encoding="utf-8") as file:
            readme = file.read()
        found = BLOCK.search(readme)
        self.assertTrue(found, "README.md has no first job")
        commands = commands_of(found.group(2))
        self.assertLessEqual(len(commands), COMMANDS_MAX)
        begin = time.monotonic()
        outputs = [self.type(command) for command in commands]
        took = time.monotonic() - begin
        grid.figure("first job, from the first command to the last", f"{took:.1f} s")
        self.assertLess(took, SECONDS_MAX)
        if os.environ.get("WRITE_README"):
            return self.write(readme, found, commands, outputs, took)
        self.compare(found.group(2), commands, outputs)

    def compare(self, block, commands, outputs):
        """Each line of README stands in the output of its command, in any order, for events and the program's output come
        by two ways; `...` stands for lines left out."""
        rest = block
        for command, output in zip(commands, outputs):
            typed = "$ " + command.replace("\n", "\n> ")
            self.assertTrue(rest.startswith(typed + "\n"), f"not next in README.md: {typed}\n{rest}")
            rest = rest[len(typed) + 1:]
            shown, _, rest = rest.partition("\n$ ") if "\n$ " in rest and not rest.startswith("$ ") else \
                (("", "", rest) if rest.startswith("$ ") else (rest, "", ""))
            rest = rest if rest.startswith("$ ") or not rest else "$ " + rest
            left = [shape(line) for line in output]
            for line in shown.splitlines():
                if line.strip() in ("...", ""):
                    continue
                self.assertIn(shape(line), left, f"README.md shows a line that is not printed: {line}\n" +
                              "\n".join(output))
                left.remove(shape(line))

    @staticmethod
    def write(readme, found, commands, outputs, took):
        lines = []
        for command, output in zip(commands, outputs):
            lines.append("$ " + command.replace("\n", "\n> "))
            checks = re.compile(r"  (ok|warn)  |        fix:")  # of the preflight: they differ from host to host
            stages = re.compile(r"\S+  ada: (filling|running)")  # seen or not, as it happens
            for line in output:
                if not line or stages.match(line):
                    continue
                if not checks.match(line):
                    lines.append(line)
                elif lines[-1] != "  ...":
                    lines.append("  ...")
        text = readme[:found.start(2)] + "\n".join(lines) + "\n" + readme[found.end(2):]
        text = re.sub(r"(<!-- first job: )[^>]*(-->)",
                      rf"\g<1>{time.strftime('%Y-%m-%d', time.gmtime())}, {took:.0f} s in all \g<2>", text)
        with open(README, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    if "--write" in sys.argv:
        sys.argv.remove("--write")
        os.environ["WRITE_README"] = "1"
    unittest.main(verbosity=2)
