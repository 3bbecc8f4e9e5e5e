# SPDX-License-Identifier: Apache-2.0
"""What jobs use of their hosts, as people and scripts see it. The GPU is a stub, what it tells is written by the tests;
processors and memory are real."""
import os
import pty
import re
import select
import signal
import time
import unittest

import grid
from grid import wait_until

GPU, PLAIN = 1, 2
STATE = "/etc/stub-gpu"
UUID = "GPU-11111111-2222-3333-4444-555555555555"
MIB = 1 << 20
BUSY = ("python3 -c \"b = bytearray(200 << 20)\nimport time\nfor i in range(0, len(b), 4096): b[i] = 1\n"
        "end = time.time() + 600\nwhile time.time() < end: time.sleep(0.01); sum(range(200_000))\"")


def setUpModule():
    global laptop
    the_grid = grid.up(2)
    with open(os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi"), encoding="utf-8") as file:
        stub = file.read()
    the_grid.enter(GPU, f"mkdir -p {STATE}; chmod 777 {STATE}; cat > /usr/bin/nvidia-smi <<'STUB'\n{stub}\nSTUB\nchmod 755 /usr/bin/nvidia-smi")
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, engine="process")


class Terminal:
    """A program on a terminal of its own: what it writes is kept, keys are sent."""

    def __init__(self, *words, rows=30, columns=160):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = {name: value for name, value in laptop.environment.items() if name not in ("CI", "NO_COLOR")}
            environment.update(TERM="xterm", COLUMNS=str(columns), LINES=str(rows))
            os.execve(grid.GRIDCTL, [grid.GRIDCTL, *words], environment)
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)
        self.text = ""

    def read(self):
        while select.select([self.fd], [], [], 0.2)[0]:
            try:
                got = os.read(self.fd, 65536)
            except OSError:
                break
            if not got:
                break
            self.text += got.decode("utf-8", "replace")
        return self.text

    def wait(self, pattern, deadline=40):
        wait_until(f"{pattern!r} on the terminal", deadline, lambda: re.search(pattern, self.read()), lambda: self.text[-3000:])

    def end(self, deadline=10):
        """Exit code."""
        ended = []

        def look():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                ended.append(os.waitstatus_to_exitcode(status))
            return bool(ended)

        wait_until("the end of the program", deadline, look, lambda: self.text[-3000:])
        return ended[0]


class Eyes(grid.Case):
    def tearDown(self):
        super().tearDown()
        for shown in laptop.run("job", "ls", "--json").json:
            if shown["state"] not in grid.FINAL:
                laptop.run("job", "cancel", shown["job_id"], "--now", "--wait")
        self.grid.enter(GPU, f"rm -f {STATE}/*")

    def tell(self, **figures):
        self.grid.enter(GPU, " ; ".join(f"echo {value} > {STATE}/{name}" for name, value in figures.items()))

    def submit(self, name, run, **more):
        job = laptop.submit({"name": name, "run": run, "resources": {"cpus": 1, **more}})
        job.wait_state("RUNNING")
        return job

    def use(self, job):
        return job.attempts()[-1]["members"][0]["use"]

    def test_a_running_jobs_gpu_processor_and_memory_are_shown(self):
        self.tell(busy=87, heat=71)
        job = self.submit("busy", BUSY, accelerators="1")
        self.tell(used=12288)  # before, that would be somebody else's memory
        wait_until("its use", 40, lambda: self.use(job) and self.use(job)["cpus"] and self.use(job)["gpus"][0]["memory_bytes"] > 3 * MIB,
                   job.evidence)
        use = self.use(job)
        self.assertEqual(use["gpus"], [{"uuid": UUID, "busy_percent": 87, "memory_bytes": 12288 * MIB,
                                        "memory_total_bytes": 24576 * MIB, "temperature_c": 71}])
        self.assertGreater(use["cpus"], 0.05)
        self.assertLess(use["cpus"], 1)
        self.assertGreater(use["memory_bytes"], 200 * MIB)
        self.assertLess(use["memory_bytes"], 300 * MIB)
        self.assertLess(time.time() - grid.iso(use["measured_at"]), 15)
        text = laptop.run("job", "show", job.id).out
        self.assertRegex(text, r"h1 +87 % +12 of 24 GiB +71 °C +[\d.]+ of 1 +2\d\d MiB")

        self.tell(busy=12)
        wait_until("what is new", 30, lambda: self.use(job)["history_percent"][-1] == 12, job.evidence)
        self.assertEqual(self.use(job)["history_percent"][0], 87)

        watch = Terminal("job", "watch", job.id)
        watch.wait(r"h1  GPU 12 %  12 of 24 GiB  71 °C  CPU [\d.]+ of 1  memory 2\d\d MiB  ▇+▁+")
        os.kill(watch.pid, signal.SIGINT)
        self.assertEqual(watch.end(), 130)

        self.grid.enter(GPU, f"rm {STATE}/used")
        laptop.run("job", "cancel", job.id, "--now", "--wait")
        self.assertIsNone(self.use(job))

    def test_the_vendors_tool_is_asked_seldom_and_only_for_jobs_with_gpus(self):
        self.grid.enter(GPU, f": > {STATE}/asked; chmod 666 {STATE}/asked")
        other = laptop.submit({"name": "without", "run": "sleep 300", "resources": {"cpus": 0.5}, "constraints": {"query": "name=h1"}})
        other.wait_state("RUNNING")
        wait_until("its use", 40, lambda: self.use(other), other.evidence)
        self.assertEqual(self.use(other)["gpus"], [])
        self.assertEqual(self.grid.enter(GPU, f"cat {STATE}/asked"), "")
        job = self.submit("with", "sleep 300", accelerators="1")
        second = self.grid.laptop("second")
        second.register(GPU, engine="process")
        wait_until("three answers", 60, lambda: len(self.grid.enter(GPU, f"cat {STATE}/asked").split()) >= 3, job.evidence)
        asked = [int(moment) for moment in self.grid.enter(GPU, f"cat {STATE}/asked").split()]
        self.assertGreaterEqual(min(b - a for a, b in zip(asked, asked[1:])), 8, asked)

    def test_a_tool_that_hangs_takes_its_figures_and_nothing_else(self):
        job = self.submit("hung", "while sleep 0.2; do echo on; done", accelerators="1")
        wait_until("its use", 40, lambda: self.use(job) and self.use(job)["gpus"], job.evidence)
        self.grid.enter(GPU, f"touch {STATE}/hang; : > {STATE}/asked; chmod 666 {STATE}/asked")
        wait_until("figures without the GPU's", 60, lambda: self.use(job) and not self.use(job)["gpus"], job.evidence)
        self.assertIsNotNone(self.use(job)["cpus"])
        shown = laptop.run("provider", "show", "h1", "--json").json
        self.assertEqual(shown["state"], "answering")
        self.assertEqual(job.state, "RUNNING")

    def test_a_job_that_hangs_on_one_host_is_named_and_restarted_only_where_its_file_says_so(self):
        self.tell(busy=90)
        told = laptop.submit({"name": "told", "run": "echo begun; exec sleep 7777", "resources": {"cpus": 0.5, "accelerators": "1"},
                              "recovery": {"hang_after": "30s"}})
        spin = "python3 -c 'import time\nend = time.time() + 70\nwhile time.time() < end: sum(range(300_000)); time.sleep(0.02)'"
        again = laptop.submit({"name": "again", "run": f'if [ "$GRIDCTL_ATTEMPT" = 1 ]; then {spin}; sleep 7777; fi; echo done',
                               "resources": {"cpus": 0.5}, "constraints": {"query": "name=h2"},
                               "recovery": {"hang_after": "30s", "hangs": "restart"}})
        told.wait_state("RUNNING")
        wait_until("a habit", 120, lambda: self.use(told) and len(self.use(told)["history_percent"]) >= 7, told.evidence)
        self.assertEqual(told.events("hangs"), [])
        self.tell(busy=0)
        event = told.wait_event("hangs", deadline=120)
        self.assertRegex(event["text"], r"no output, no checkpoint and idle GPUs for \d+s; GPUs are usually 90 % busy, on h1")
        self.assertEqual(event["provider"], "h1")
        self.assertRegex(told.events("stacks")[0]["text"], r"sleep 7777\s+state S")
        again.wait_success(deadline=180)
        self.assertEqual([attempt["number"] for attempt in again.attempts()], [1, 2])
        self.assertEqual(len(again.events("hung")), 1)
        self.assertEqual((told.state, len(told.attempts()), len(told.events("hangs"))), ("RUNNING", 1, 1))

    def test_top_shows_hosts_and_jobs_and_ends_with_q(self):
        self.tell(busy=64)
        job = self.submit("shown", BUSY, accelerators="1")
        wait_until("its use", 40, lambda: self.use(job) and self.use(job)["gpus"], job.evidence)
        once = laptop.run("top").out
        self.assertNotIn("\033", once)
        self.assertRegex(once.splitlines()[0], r"2 of 2 hosts answer, 1 of 1 jobs run, 1 of 1 GPUs in use")
        self.assertRegex(once, r"(?m)^h1 +answering +1/1 +64 %")
        self.assertRegex(once, r"(?m)^h2 +answering +- +-")
        self.assertRegex(once, rf"(?m)^{job.id} +shown +RUNNING +h1 +64 %")
        told = laptop.run("top", "--json").json
        self.assertEqual([(host["name"], host["gpus_in_use"], host["gpu_busy_percent"], host["jobs"]) for host in told["providers"]],
                         [("h1", 1, 64, 1), ("h2", 0, None, 0)])
        self.assertEqual(told["jobs"][0]["members"][0]["use"]["gpus"][0]["busy_percent"], 64)

        top = Terminal("top")
        top.wait(r"shown.*RUNNING.*h1.*64 %")
        self.tell(busy=3)
        top.text = ""
        top.wait(r"shown.*RUNNING.*h1.* 3 %")
        os.write(top.fd, b"q")
        self.assertEqual(top.end(), 0)
        self.assertTrue(top.text.endswith("\033[?25h\033[?1049l"), repr(top.text[-40:]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
