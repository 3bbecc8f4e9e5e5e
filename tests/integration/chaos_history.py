# SPDX-License-Identifier: Apache-2.0
"""What happened in a run: faults, what became of jobs, what programs noted on the hosts. Told as it happens."""
import hashlib
import os
import threading
import time

import grid

LEDGER = "/var/tmp/chaos"  # on hosts, and in their containers: chain.sh notes there what it does
LAST_LINES = 40            # shown when the history is not clean


class Note:
    """One line of a program: at this uptime it was at this step and held this GPU ("-" for none)."""

    def __init__(self, host, job, epoch, line):
        self.host, self.job, self.epoch = host, job, epoch
        when, self.gpu, self.word, step = line.split()
        self.at, self.step = float(when), int(step)

    def __str__(self):
        return f"{self.at:.2f} h{self.host} {self.job} epoch {self.epoch} gpu {self.gpu} {self.word} {self.step}"


class JobRecord:
    """One job: what was asked of it, and afterwards what gridctl and its program say of it."""

    def __init__(self, handle, spec):
        self.handle, self.spec, self.id, self.name = handle, spec, handle.id, spec["name"]
        self.steps, self.seed = int(spec["envs"]["STEPS"]), spec["envs"]["SEED"]
        self.lost_after = float(spec["recovery"]["lost_after"].rstrip("s"))
        self.seen, self.told = None, 0  # as `job ls` said last; how many of its events were printed
        self.shown = {"state": "unknown", "attempts": [], "checkpoint": None}
        self.events, self.outputs, self.state = [], {}, []  # outputs by the attempt's number

    def chain(self):
        """What the program has to arrive at, step by step."""
        links, link = [], self.seed
        for step in range(1, self.steps + 1):
            link = hashlib.sha256(f"{link} {step}\n".encode()).hexdigest()
            links.append(f"{step} {link}")
        return links

    def text(self, begin):
        """What the program prints from this step on, except that it cannot save."""
        every = int(self.spec["envs"]["SAVE_EVERY"])
        lines = [f"resumed after step {begin}"] if begin else []
        for step in range(begin + 1, self.steps + 1):
            lines += [f"step {step}"] + [f"saved step {step}"] * (step % every == 0 or step == self.steps)
        return "\n".join(lines + [f"result {self.chain()[-1].split()[1]}", ""])

    def collect(self, folder):
        """Asks for everything, once it has ended."""
        self.shown, self.events = self.handle.show(), self.handle.events()
        for attempt in self.shown["attempts"]:
            self.outputs[attempt["number"]] = self.handle.logs("--attempt", str(attempt["number"]))
        if self.shown["checkpoint"]:
            target = os.path.join(folder, self.id)
            self.handle.laptop.run("checkpoint", "verify", self.id)
            self.handle.laptop.run("checkpoint", "pull", self.id, target)
            with open(os.path.join(target, "state"), encoding="utf-8") as file:
                self.state = file.read().splitlines()


class History:
    def __init__(self):
        self.began = time.time()
        self.lock = threading.Lock()
        self.lines, self.faults, self.jobs, self.notes = [], [], [], []
        with open("/proc/uptime", encoding="utf-8") as file:
            self.booted = self.began - float(file.read().split()[0])  # where the clock of the notes has its zero
        self.clocks = [(self.began - 3600, 0)]  # (since, seconds that the laptop's wall clock is ahead)
        self.sights = 0           # of programs on GPUs
        self.doubles = []         # sights of one GPU with two attempts
        self.refused = {}         # names of jobs that were not accepted: why
        self.listed = set()       # names of all jobs, as `job ls` gives them at the end
        self.problems = []        # of the run itself: commands that failed or hung
        self.left = {}            # host: what was found on it at the end

    def say(self, kind, text):
        with self.lock:
            self.lines.append(f"{time.time() - self.began:7.1f} s  {kind:6}  {text}")
            print(self.lines[-1], flush=True)

    def add_fault(self, fault):
        with self.lock:
            self.faults.append(fault)

    def add_clock_step(self, seconds):
        with self.lock:
            self.clocks.append((time.time(), seconds))

    def real(self, at):
        """The real time, of a time that the laptop wrote down."""
        told = grid.iso(at)
        ends = [since for since, _ in self.clocks[1:]] + [float("inf")]
        for (since, ahead), end in zip(self.clocks, ends):
            if since - 1 <= told - ahead <= end + 1:
                return told - ahead
        return told

    def tell_job(self, record):
        """Prints what is new of a job, without what it does every few seconds."""
        for event in record.handle.events()[record.told:]:
            record.told += 1
            if event["kind"] not in ("checkpoint", "preparing", "accepted", "submitted", "last_output"):
                self.say("job", f"{record.name} {event['kind']}: {event['text'].splitlines()[0][:150]}")

    def notes_of_attempts(self):
        """By (job, epoch)."""
        found = {}
        for note in self.notes:
            found.setdefault((note.job, note.epoch), []).append(note)
        return found

    def read_notes(self, the_grid):
        for host in the_grid.hosts:
            folder = the_grid.disk(host, LEDGER.lstrip("/"))
            for name in sorted(os.listdir(folder)):
                job, _, epoch = name.rpartition(".")
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    for line in file:
                        if line.endswith("\n") and len(line.split()) == 4:  # a power loss may have torn the last
                            self.notes.append(Note(host, job, int(epoch), line))
        self.notes.sort(key=lambda note: note.at)
