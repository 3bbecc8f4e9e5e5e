# SPDX-License-Identifier: Apache-2.0
"""How faults are done to a grid and its laptop, and undone."""
import functools
import os
import re
import signal
import struct
import subprocess
import threading
import time

import chaos_plan
import grid

AHEAD = "stepped_clock.ahead"  # file of the laptop: seconds that its wall clock is ahead
PROGRAMS = {"agent": r"gridctl-agent\S* connect", "supervisor": r"gridctl-agent\S* supervise ", "init": r"agent\S* init\b",
            "program": r"^sh chain\.sh", "conmon": r"conmon ", "engine": r"^podman (run|rm|inspect) ",
            "session": r"^sshd: worker"}


class Process:
    """One of a host's, seen from outside, where every host's processes are to be seen."""

    def __init__(self, pid, host, words, start):
        self.pid, self.host, self.words, self.start = pid, host, words, start

    def environment(self):
        return dict(entry.partition("=")[::2] for entry in self.read("environ").split("\0"))

    def read(self, name):
        try:
            with open(f"/proc/{self.pid}/{name}", encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    @property
    def parent(self):
        fields = self.read("stat").rpartition(") ")[2].split()
        return int(fields[1]) if fields else None

    @property
    def attempt(self):
        """(job, epoch) whose process it is, None when it is nobody's or gone: by its environment, by a path of its
        folder, which in a container is to be seen in the mounts, by the container's name, or of conmon by its child."""
        known = self.environment()
        if "GRIDCTL_JOB_ID" in known:
            return known["GRIDCTL_JOB_ID"], int(known["GRIDCTL_EPOCH"])
        folder, name = r"/jobs/[^/ ]+/([^/ ]+)/(\d+)\b", r"\bgridctl-(\w+)-e(\d+)\b"
        found = re.search(folder, self.words) or re.search(name, self.words) or re.search(folder, self.read("mountinfo"))
        if found:
            return found[1], int(found[2])
        for child in self.read(f"task/{self.pid}/children").split():
            return Process(int(child), self.host, "", None).attempt
        return None

    def is_same(self):
        return start_of(self.pid) == self.start

    def signal(self, number):
        if self.is_same():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass


def start_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(") ")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except OSError:
        return None


@functools.lru_cache
def place_of(folder):
    """How the control groups of a grid's hosts are called."""
    sums = subprocess.run(["cksum"], input=folder, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[0]
    return re.compile(rf"/tg{sums}/h(\d+)(/|$)", re.MULTILINE)


def processes_of(the_grid, pattern):
    """Of all hosts, by host and pid, those whose words match."""
    place, found = place_of(os.path.realpath(the_grid.environment["GRIDCTL_TESTGRID"])), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                words = file.read().replace("\0", " ").strip()
            if not re.search(pattern, words):
                continue
            with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
                host = place.search(file.read())
        except OSError:
            continue
        start = start_of(pid)
        if host and start:
            found.append(Process(int(pid), int(host[1]), words, start))
    return sorted(found, key=lambda process: (process.host, process.pid))


class Striker:
    """Does the faults of a plan, each by a thread of its own, and heals them in time or when told to."""

    def __init__(self, the_grid, laptop, history):
        self.grid, self.laptop, self.history = the_grid, laptop, history
        self.healing = threading.Event()  # the faults are over: whatever still lasts is healed now
        self.locks = {host: threading.Lock() for host in the_grid.hosts}
        self.threads = []

    def strike(self, fault):
        thread = threading.Thread(target=self.carry_out, args=(fault,), daemon=True)
        thread.start()
        self.threads.append(thread)

    def heal_all(self):
        self.healing.set()
        for thread in self.threads:
            thread.join(60)
        if any(thread.is_alive() for thread in self.threads):
            self.history.problems.append("a fault is still being done a minute after the last")
        self.set_clock(0)

    def carry_out(self, fault):
        lock = self.locks.get(fault.host)
        if lock:
            lock.acquire()
        try:
            fault.began = time.time()
            undo = self.begin(fault)
            self.history.say("fault", f"{fault.number:3} {fault.kind}: {fault.hit or 'nothing there'}"
                             + (f", for {fault.lasts:.1f} s" if fault.lasts and fault.hit else ""))
            self.history.add_fault(fault)
            if undo:
                self.healing.wait(fault.began + fault.lasts - time.time())
                undo()
                self.history.say("healed", f"{fault.number:3} {fault.kind}: {fault.hit}")
        except Exception as error:  # pylint: disable=broad-except  # whatever it is, the run must tell and not hang
            self.history.problems.append(f"fault {fault.number} {fault.kind} could not be done or undone: {error!r}")
        finally:
            fault.ended = time.time()
            if lock:
                lock.release()

    def begin(self, fault):
        """Returns what undoes it, or None."""
        word, _, what = fault.kind.partition("-")
        if fault.kind in chaos_plan.HOST:
            fault.hit = f"h{fault.host}"
            return getattr(self, word)(fault, what)
        if fault.kind == "clock-step":
            step = chaos_plan.CLOCK_STEPS[int(fault.pick * len(chaos_plan.CLOCK_STEPS))]
            fault.hit = f"the laptop's wall clock is {step:+} s wrong"
            return self.set_clock(step)
        if fault.kind == "offline":
            return self.offline(fault)
        if what == "daemon":
            return self.hit_daemon(fault, word)
        return self.hit_process(fault, word, what)

    # Hosts.
    def power(self, fault, _):
        self.grid.kill(fault.host)
        return lambda: self.grid.start(fault.host)

    def crash(self, fault, _):
        self.grid.command("crash", fault.host)
        return lambda: self.grid.start(fault.host)

    def reboot(self, fault, _):
        self.grid.reboot(fault.host)

    def cut(self, fault, direction):
        self.grid.partition(fault.host, direction)
        return lambda: self.grid.heal(fault.host)

    def slow(self, fault, _):
        self.grid.command("shape", fault.host, "20mbit", f"{40 + int(fault.pick * 80)}ms", "3")
        return lambda: self.grid.command("unshape", fault.host)

    def disk(self, fault, _):
        """All of the disk, at once and without writing it."""
        path = os.path.join(self.grid.disk(fault.host, "home"), "ballast")
        with open(path, "wb") as file:
            size = 0
            for piece in (1 << 24, 1 << 20, 1 << 16, 1 << 12):
                try:
                    while True:
                        os.posix_fallocate(file.fileno(), size, piece)
                        size += piece
                except OSError:
                    continue
        return lambda: os.unlink(path)

    def reset(self, fault, _):
        self.grid.enter(fault.host, "pkill -9 -f '^sshd: worker' || true")

    def sshd(self, fault, what):
        if what == "gone":
            self.grid.command("sshd", fault.host, "stop")
            self.grid.enter(fault.host, "pkill -9 -x sshd || true")
            return lambda: self.grid.command("sshd", fault.host, "start")
        lines = "MaxSessions 1\\nMaxStartups 1:100:1"
        self.grid.enter(fault.host, f"cp /etc/ssh/sshd_config /root/ && sed -i '1i {lines}' /etc/ssh/sshd_config && "
                                    "kill -HUP $(cat /run/sshd.pid)")
        return lambda: self.grid.enter(fault.host, "mv /root/sshd_config /etc/ssh/ && kill -HUP $(cat /run/sshd.pid)")

    # The laptop.
    def set_clock(self, seconds):
        self.history.add_clock_step(seconds)
        with open(os.path.join(self.laptop.folder, AHEAD), "r+b") as file:
            file.write(struct.pack("q", seconds))

    def offline(self, fault):
        with open(os.path.join(self.grid.environment["GRIDCTL_TESTGRID"], "router.pid"), encoding="utf-8") as file:
            router = file.read().split()[0]
        rule = ["nsenter", "-t", router, "-n", "iptables", "-w", "-I", "FORWARD", "-i", "laptop", "-j", "DROP"]
        subprocess.run(rule, check=True)
        rule[rule.index("-I")] = "-D"
        fault.hit = "the laptop reaches nobody"
        return lambda: subprocess.run(rule, check=True)

    def hit_daemon(self, fault, how):
        pid = self.laptop.daemon_pid()
        if pid is None:
            return None
        fault.hit = f"pid {pid}"
        if how == "kill":
            os.kill(pid, signal.SIGKILL)
            return self.laptop.need_daemon  # as a person's next command does
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    # Any process of ours on any host.
    def hit_process(self, fault, how, what):
        found = processes_of(self.grid, PROGRAMS[what])
        pids = {process.pid for process in found}
        found = [process for process in found if process.parent not in pids]  # a part of a program would die unnoticed
        if not found:
            return None
        victim = found[int(fault.pick * len(found))]
        fault.host, fault.attempt = victim.host, victim.attempt
        of = f" of {fault.attempt[0]} epoch {fault.attempt[1]}" if fault.attempt else ""
        fault.hit = f"pid {victim.pid} on h{victim.host}{of}"
        if how == "kill":
            victim.signal(signal.SIGKILL)
            return None
        victim.signal(signal.SIGSTOP)
        return lambda: victim.signal(signal.SIGCONT)


def preload(laptop):
    """Gives the laptop a wall clock that can be set."""
    library, ahead = os.path.join(laptop.folder, "stepped_clock.so"), os.path.join(laptop.folder, AHEAD)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library,
                    os.path.join(grid.SOURCE, "tests", "support", "stepped_clock.c")], check=True)
    with open(ahead, "wb") as file:
        file.write(struct.pack("q", 0))
    laptop.environment.update(LD_PRELOAD=library, STEPPED_CLOCK=ahead)
