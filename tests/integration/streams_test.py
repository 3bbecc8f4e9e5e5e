# SPDX-License-Identifier: Apache-2.0
"""A user inside a running job: commands, shells, files and ports. The hosts' sshd forwards no ports."""
import contextlib
import hashlib
import os
import re
import shlex
import socket
import subprocess
import time
import unittest

import grid
from grid import GRIDCTL, figure, wait_until

PORT = 8888
BUSYBOX = "localhost/busybox:1"


def setUpModule():
    global laptop
    os.environ["GRIDCTL_TESTGRID_SSHD"] = "AllowTcpForwarding no"
    the_grid = grid.up(2)
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host)


class Terminal:
    """A person at a terminal: tmux holds it, keys are sent, the screen is read."""

    def __init__(self, *words, columns=100, rows=30):
        self.name = f"gridctl-{os.getpid()}-{time.monotonic_ns()}"
        command = shlex.join([GRIDCTL, *map(str, words)]) + '; echo "ended with $?"; sleep 600'
        environment = " ".join(f"{key}={shlex.quote(value)}" for key, value in laptop.environment.items()
                               if key.startswith(("GRIDCTL_", "HOME")))
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, f"env TERM=xterm {environment} sh -c {shlex.quote(command)}")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-f", "/dev/null", "-L", self.name, *map(str, words)], check=True, text=True,
                              stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "0", *keys)

    def type(self, line):
        self.tmux("send-keys", "-t", "0", "-l", line)
        self.keys("Enter")

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "0")

    def wait(self, pattern, deadline=20):
        wait_until(f"{pattern!r} on the screen", deadline, lambda: re.search(pattern, self.screen(), re.MULTILINE), self.screen)

    def close(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], check=False, stderr=subprocess.DEVNULL)


class Visits:
    """Jobs that somebody visits."""

    def start(self, name, run, host, **more):
        pins = {"provider": f"h{host}"} if host else {}
        job = laptop.submit({"name": name, "run": run, "resources": {"cpus": 0.2}, "recovery": {"lost_after": "5s"}, **more},
                            *[word for key, value in pins.items() for word in (f"--{key}", value)])
        self.addCleanup(lambda: laptop.run("job", "cancel", job.id, "--now", check=False))
        job.wait_attempt(1)
        return job

    def terminal(self, *words, **options):
        terminal = Terminal(*words, **options)
        self.addCleanup(terminal.close)
        return terminal


class Commands(Visits, grid.Case):
    def test_a_command_has_its_own_streams_and_its_code_comes_back(self):
        job = self.start("plain", "sleep 600", 1, envs={"GREETING": "good day"})
        done = laptop.run("job", "exec", job.id, "--", "sh", "-c", 'echo "$GREETING"; pwd; echo aside >&2; wc -c; exit 7',
                          stdin="12345", code=7)
        self.assertRegex(done.out, r"^good day\n/home/worker/.gridctl/jobs/.*/work\n5\n$")
        self.assertEqual(done.err, "aside\n")
        self.assertEqual(laptop.run("job", "exec", job.id, "--", "sh", "-c", "kill -9 $$", code=137).out, "")
        self.assertIn("cannot run no-such-program", laptop.run("job", "exec", job.id, "--", "no-such-program", code=127).err)
        self.assertIn("has no rank 3", laptop.run("job", "exec", job.id, "--rank", 3, "--", "id", code=3).err)
        self.assertIn("not run attempt 2", laptop.run("job", "exec", job.id, "--attempt", 2, "--", "id", code=3).err)
        self.assertIn("job exec", laptop.run("job", "shell", job.id, code=2).err)
        big = laptop.run("job", "exec", job.id, "--", "head", "-c", "20000000", "/dev/zero").out
        self.assertEqual(len(big), 20000000)

    def test_in_a_container_it_is_the_jobs_user_and_sees_what_the_job_sees(self):
        job = self.start("boxed", "touch /tmp/mine; sleep 600", 2, image=BUSYBOX, container={"root": "read-only"})
        done = laptop.run("job", "exec", job.id, "--", "sh", "-c", "pwd; ls /tmp; touch /forbidden; cat /proc/1/comm")
        self.assertEqual(done.out, "/work\nmine\ngridctl-agent\n" if "gridctl-agent" in done.out else "/work\nmine\nagent\n")
        self.assertIn("Read-only file system", done.err)

    def test_the_job_ends_as_if_nobody_had_been_there(self):
        job = self.start("visited", "sleep 4; echo over", 1)
        visit = laptop.spawn("job", "exec", job.id, "--", "sh", "-c",
                             "trap '' HUP TERM; (setsid sleep 12345 &) ; echo here; sleep 600")
        self.assertEqual(visit.stdout.readline(), "here\n")
        job.wait_success(30)
        self.assertNotEqual(visit.wait(15), 0)
        self.grid.wait_clean(hosts=[1])
        self.assertEqual(self.grid.pids(1, "sleep (12345|600)"), [])
        self.assertEqual(job.logs(), "over\n")

    def test_a_job_that_is_stopped_does_not_wait_for_its_visitors(self):
        job = self.start("stopped", "sleep 600", 1)
        visit = laptop.spawn("job", "exec", job.id, "--", "sh", "-c", "trap '' HUP TERM; echo here; sleep 600; sleep 600")
        self.assertEqual(visit.stdout.readline(), "here\n")
        began = time.monotonic()
        laptop.run("job", "cancel", job.id, "--wait")
        self.assertLess(time.monotonic() - began, 15, "the grace period is 30 s")
        visit.wait(15)
        self.grid.wait_clean(hosts=[1])

    def test_nothing_is_left_of_a_command_whose_terminal_has_gone(self):
        job = self.start("left", "sleep 600", 1)
        visit = laptop.spawn("job", "exec", job.id, "--", "sh", "-c", "echo here; sleep 4321; echo")
        self.assertEqual(visit.stdout.readline(), "here\n")
        visit.kill()
        visit.wait()
        wait_until("its processes to go", 20, lambda: not self.grid.pids(1, "sleep 4321"))
        self.assertEqual(job.state, "RUNNING")


class Shells(Visits, grid.Case):
    def test_a_shell_is_a_terminal(self):
        job = self.start("shell", "sleep 600", 1)
        terminal = self.terminal("job", "shell", job.id)
        terminal.wait(r"\$ *$")
        terminal.type("stty size; test -t 0 && echo a terminal")
        terminal.wait(r"^30 100\n+a terminal")
        terminal.tmux("resize-window", "-t", "0", "-x", 120, "-y", 40)
        wait_until("the new size", 10, lambda: terminal.type("stty size") or time.sleep(0.3) or "40 120" in terminal.screen(),
                   terminal.screen)
        terminal.type("sleep 4711")
        wait_until("it sleeps", 10, lambda: self.grid.pids(1, "sleep 4711"))
        terminal.keys("C-c")
        terminal.type("echo code $?")
        terminal.wait("^code 130")
        terminal.type("exit 5")
        terminal.wait("^ended with 5")

    def test_programs_that_draw_the_screen(self):
        job = self.start("screen", "sleep 600", 1)
        terminal = self.terminal("job", "shell", job.id)
        terminal.wait(r"\$ *$")
        terminal.type("top")
        terminal.wait(r"PID +USER")
        terminal.keys("q")
        terminal.wait(r"\$ *$")
        terminal.type("vim -u NONE note.txt || vi note.txt")
        terminal.wait(r"^~")
        terminal.keys("i")
        terminal.type("written in the job")
        terminal.keys("Escape")
        terminal.type(":wq")
        terminal.wait(r"\$ *$")
        self.assertEqual(laptop.run("job", "exec", job.id, "--", "cat", "note.txt").out.strip(), "written in the job")
        terminal.type("tmux -f /dev/null new-session")
        terminal.wait(r"^\[0\] 0:")
        terminal.type("echo in tmux in tmux")
        terminal.wait("^in tmux in tmux")
        terminal.type("exit")
        terminal.wait(r"\[exited\]")

    def test_ten_megabytes_are_pasted_whole(self):
        job = self.start("paste", "sleep 600", 1)
        text = os.urandom(5 << 20).hex()
        path = os.path.join(laptop.folder, "paste")
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        terminal = self.terminal("job", "shell", job.id)
        terminal.wait(r"\$ *$")
        terminal.type(f"stty raw -echo; head -c {len(text)} | sha256sum; stty sane; echo done")
        wait_until("somebody reads", 10, lambda: self.grid.pids(1, f"^head -c {len(text)}"))
        terminal.tmux("load-buffer", path)
        terminal.tmux("paste-buffer", "-r", "-t", "0")
        terminal.wait(hashlib.sha256(text.encode()).hexdigest()[:60], 90)

    def test_a_shell_in_a_container_and_one_on_the_host(self):
        job = self.start("boxed-shell", "sleep 600", 2, image=BUSYBOX)
        terminal = self.terminal("job", "shell", job.id)
        terminal.wait(r"[#$] *$")
        terminal.type("pwd; stty size; exit 3")
        terminal.wait("^/work\n30 100\nended with 3|ended with 3")
        self.assertIn("/work", terminal.screen())
        terminal = self.terminal("provider", "shell", "h2")
        terminal.wait(r"[#$] *$")
        terminal.type("hostname; exit 4")
        terminal.wait("^ended with 4")
        self.assertIn("h2", terminal.screen())


class Files(Visits, grid.Case):
    def test_files_and_folders_go_both_ways(self):
        job = self.start("files", "mkdir -p out/deep; echo 1 > out/a; echo 2 > out/deep/b; ln -s a out/link; sleep 600", 1)
        wait_until("its files", 10, lambda: "link" in laptop.run("job", "exec", job.id, "--", "ls", "out", check=False).out)
        laptop.run("job", "cp", f"{job.id}:out", ".")
        with open(os.path.join(laptop.folder, "out", "deep", "b"), encoding="ascii") as file:
            self.assertEqual(file.read(), "2\n")
        self.assertEqual(os.readlink(os.path.join(laptop.folder, "out", "link")), "a")
        laptop.run("job", "cp", "out", f"{job.id}:copy")
        self.assertEqual(laptop.run("job", "exec", job.id, "--", "cat", "copy/a", "copy/deep/b").out, "1\n2\n")
        self.assertIn("does not exist", laptop.run("job", "cp", f"{job.id}:nowhere", ".", code=3).err)
        self.assertIn("ID:PATH", laptop.run("job", "cp", "a", "b", code=2).err)

    def test_a_large_file_continues_where_it_stopped(self):
        job = self.start("large", "sleep 600", 1)
        path = os.path.join(laptop.folder, "large")
        data = os.urandom(40 << 20)
        with open(path, "wb") as file:
            file.write(data)
        self.grid.command("shape", 1, "50mbit", "20ms")
        self.addCleanup(lambda: self.grid.command("unshape", 1))
        first = laptop.spawn("job", "cp", "large", f"{job.id}:there")
        size = ("sh", "-c", "stat -c %s .there.gridctl-part || echo 0")
        wait_until("a part of it", 30, lambda: int(laptop.run("job", "exec", job.id, "--", *size).out) > 20 << 20)
        first.kill()
        first.wait()
        received = lambda: int(self.grid.enter(1, "cat /sys/class/net/eth0/statistics/rx_bytes"))
        before, began = received(), time.monotonic()
        laptop.run("job", "cp", "large", f"{job.id}:there")
        more = received() - before
        figure("rest of 40 MiB after a cut", f"{more / 2**20:.1f} MiB in {time.monotonic() - began:.1f} s")
        digest = laptop.run("job", "exec", job.id, "--", "sha256sum", "there").out.split()[0]
        self.assertEqual(digest, hashlib.sha256(data).hexdigest())
        self.assertLess(more, 30 << 20)


class Ports(Visits, grid.Case):
    def server(self, name, host=None, **more):
        job = self.start(name, f"python3 ports.py {PORT}", host, workdir=grid.WORKLOADS, ports=[PORT], **more)
        job.wait_output("listening")
        return job

    @contextlib.contextmanager
    def forward(self, job, port=PORT):
        process = laptop.spawn("job", "forward", job.id, f"0:{port}")
        try:
            line = process.stdout.readline()
            self.assertRegex(line, r"^127\.0\.0\.1:\d+\n$", "" if line else process.stderr.read())
            yield int(line.split(":")[1]), process
        finally:
            process.terminate()
            process.wait(10)

    @staticmethod
    def ask(port, line, timeout=10):
        with socket.create_connection(("127.0.0.1", port), timeout) as connection:
            connection.sendall(line.encode() + b"\n")
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while data := connection.recv(65536):
                parts.append(data)
            return b"".join(parts)

    def test_a_port_of_the_job_and_no_other(self):
        job = self.server("port", 1)
        with self.forward(job) as (port, _):
            self.assertEqual(self.ask(port, "who"), b"1 h1\n")
            self.assertEqual(len(self.ask(port, "give 3000000")), 3000000)
        with self.forward(job, 22) as (port, process):
            with self.assertRaises(ConnectionResetError):
                self.ask(port, "hello")
            self.assertIn("does not declare port 22", process.stderr.readline())

    def test_a_reader_that_sleeps_holds_nobody_up(self):
        job = self.server("slow", 1)
        with self.forward(job) as (port, _):
            sleepers = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(20)]
            for sleeper in sleepers:
                sleeper.sendall(b"give 100000000\n")
            time.sleep(2)
            times = []
            for _ in range(50):
                began = time.monotonic()
                self.assertEqual(self.ask(port, "who"), b"1 h1\n")
                times.append(time.monotonic() - began)
            figure("answer beside 20 readers that sleep, median", f"{sorted(times)[25] * 1000:.1f} ms")
            self.assertLess(sorted(times)[25], grid.bound(0.5))
            for sleeper in sleepers:
                sleeper.close()

    def test_a_forward_follows_the_job(self):
        job = self.server("moving")
        with self.forward(job) as (port, process):
            before = self.ask(port, "who").decode().split()
            self.grid.kill(job.host())
            self.addCleanup(self.grid.start, job.host())
            job.wait_attempt(2, 60)
            runs = time.monotonic()

            def answered():
                with contextlib.suppress(OSError):
                    return self.ask(port, "who", 2).decode().split()

            after = wait_until("an answer of the second attempt", 15, answered)
            figure("forward reaches the job after it runs again", f"{time.monotonic() - runs:.2f} s")
            self.assertNotEqual(before, after)
            self.assertLess(time.monotonic() - runs, grid.bound(10))
            said = ""
            while "reconnected" not in said:
                said += process.stderr.readline()
            self.assertIn("reconnected to attempt 2", said)

    def test_a_forward_ends_with_the_job(self):
        job = self.server("ending", 1)
        with self.forward(job) as (_, process):
            laptop.run("job", "cancel", job.id, "--now")
            self.assertEqual(process.wait(20), 9)

    def test_a_thousand_streams_at_once(self):
        job = self.server("thousand", 1)
        with self.forward(job) as (port, _):
            connections = []
            for _ in range(1000):
                connections.append(socket.create_connection(("127.0.0.1", port), 20))
            began = time.monotonic()
            for number, connection in enumerate(connections):
                connection.sendall(f"echo\n{number}\n".encode())
                connection.shutdown(socket.SHUT_WR)
            for number, connection in enumerate(connections):
                got = b""
                while data := connection.recv(1000):
                    got += data
                self.assertEqual(got, f"{number}\n".encode())
                connection.close()
            figure("1000 streams at once answered in", f"{time.monotonic() - began:.2f} s")


if __name__ == "__main__":
    unittest.main()
