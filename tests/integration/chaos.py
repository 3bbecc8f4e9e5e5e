# SPDX-License-Identifier: Apache-2.0
"""Chaos on real hosts.

A testgrid with jobs on it, in containers and as processes, with GPUs (of stub drivers) and without; every few seconds
a fault, drawn from the seed: hosts lose power, reboot, are cut off one way or both, slowed, filled up; sshd goes or
takes nobody; processes of gridctl, sshd and the engine are killed or stopped; the laptop's daemon dies, its clock is
set wrong, its network goes. At last all is healed and the history is judged: every job must have finished with the
right output, no GPU have been held twice, no attempt been given up without a reason, nothing be left on any host.
"""
import argparse
import collections
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

import chaos_faults
import chaos_plan
import chaos_rules
import grid
from chaos_history import LAST_LINES, LEDGER, History, JobRecord

EXAMPLES = """examples:
  scripts/chaos                                       a minute of faults on four hosts with eight jobs
  scripts/chaos --minutes 30 --seed 4711              half an hour; the same seed draws the same faults
  scripts/chaos --hosts 6 --jobs 20 --every 2         more of everything
  scripts/chaos --seed 4711 --plan                    what would be done, and when
  scripts/chaos --minutes 30 --logs /tmp/chaos        keep the daemon's log, all events and output there

Ends with 0 when the history is clean, with 1 and the violated rules when it is not, with 77 where there can be no
hosts (that needs root). Ctrl-C ends it and leaves nothing behind.

environment: GRIDCTL (the program, default build/release/cmd/gridctl), TMPDIR (where the hosts' disks are)"""
IMAGE = "localhost/busybox:1"
SIGHT_PAUSE = 0.5  # seconds between two looks at who is on the GPUs
CLEAN_WITHIN = 90  # seconds after the last job until no host has anything of any
GPU = "GPU-{0}{0}{0}{0}{0}{0}{0}{0}-2222-3333-4444-555555555555"


class Chaos:
    def __init__(self, options):
        self.options = options
        self.history = History()
        self.grid = self.laptop = self.striker = None
        self.submitted = 0
        self.over = threading.Event()
        self.watch = threading.Thread(target=self.watch_gpus, daemon=True)

    # The stage.
    def prepare(self):
        self.grid = grid.Grid(self.options.hosts, small_disks={chaos_plan.SMALL_DISK_HOST: "1400m"})
        self.laptop = self.grid.laptop()
        chaos_faults.preload(self.laptop)
        for host in self.grid.hosts:
            self.furnish(host)
            self.laptop.register(host)
        self.mounts = {host: self.mounts_on(host) for host in self.grid.hosts}
        self.striker = chaos_faults.Striker(self.grid, self.laptop, self.history)
        self.history.say("ready", f"{self.options.hosts} hosts, seed {self.options.seed}")

    def furnish(self, host):
        """A GPU of a stub driver, also for containers; and a folder of the host that its containers see."""
        with open(os.path.join(grid.SOURCE, "tests", "support", "nvidia-smi"), encoding="utf-8") as file:
            stub = file.read().replace("GPU-11111111-2222-3333-4444-555555555555", GPU.format(host))
        self.grid.enter(host, f"cat > /usr/bin/nvidia-smi <<'STUB'\n{stub}\nSTUB\nchmod 755 /usr/bin/nvidia-smi; mkdir -p /etc/cdi\n"
                              f"cat > /etc/cdi/nvidia.yaml <<'CDI'\ncdiVersion: 0.3.0\nkind: nvidia.com/gpu\ndevices:\n"
                              f"- name: {GPU.format(host)}\n  containerEdits:\n    env: [CUDA_VISIBLE_DEVICES={GPU.format(host)}]\nCDI\n"
                              f"mkdir -m 1777 {LEDGER}; sed -i 's|^.containers.$|&\\nvolumes = [\"{LEDGER}:{LEDGER}\"]|' "
                              "/etc/containers/containers.conf")

    def mounts_on(self, host):
        """Of the host and of every process of its user, without the one that podman keeps for itself until a reboot."""
        out = self.grid.enter(host, "cat /proc/1/mounts; for pid in $(pgrep -U worker); do cat /proc/$pid/mounts; done 2>/dev/null; true")
        return {line.split()[1] for line in out.splitlines()} - {"/run/user/1500/netns"}

    def spec(self, number):
        chance = random.Random(f"{self.options.seed}/{number}")
        spec = {"name": f"chain-{number}", "workdir": grid.WORKLOADS, "run": "exec sh chain.sh",
                "envs": {"SEED": f"{self.options.seed}/{number}", "STEPS": str(chance.randint(*self.options.steps)),
                         "PACE": str(self.options.pace), "SAVE_EVERY": str(chance.randint(4, 20)),
                         "COMMIT": str(int(chance.random() < 0.7)), "LEDGER": LEDGER},
                "resources": {"cpus": 0.25}, "checkpoint": {"path": "out", "interval": "1s"},
                "recovery": {"lost_after": f"{self.options.lost_after:g}s"}}
        if chance.random() < 0.5:
            spec["image"] = IMAGE
        if chance.random() < 0.4:
            spec["resources"]["accelerators"] = "1"
        return spec

    # The play.
    def submit(self):
        self.submitted += 1
        spec = self.spec(self.submitted)
        handle = self.command(f"submit of {spec['name']}", lambda: self.laptop.submit(spec), spec["name"])
        if handle is None:
            return None
        record = JobRecord(handle, spec)
        self.history.jobs.append(record)
        self.history.say("job", f"{record.name} is {record.id}: {spec.get('image', 'process')}, {record.steps} steps, "
                                f"gpu {spec['resources'].get('accelerators', '-')}")
        return record

    def command(self, what, run, name=None):
        """A daemon that was stopped while it wrote holds the database: then a command may say so and do nothing."""
        began = time.time()
        try:
            return run()
        except grid.Timeout as error:
            self.history.problems.append(f"{what} hung: {error}")
        except AssertionError as error:
            held = any(fault.kind == "stop-daemon" and fault.began <= time.time() and fault.until(time.time()) >= began
                       for fault in self.history.faults)
            if name:
                self.history.refused[name] = str(error).splitlines()[-1]
            if not held:
                self.history.problems.append(f"{what} failed: {error}")
        return None

    def look(self, slots):
        """Tells what has changed; returns the slots whose jobs go on."""
        listed = self.command("job ls", lambda: self.laptop.run("job", "ls", "--json").json)
        if listed is None:
            return slots
        rows = {row["job_id"]: row for row in listed}
        going = []
        for record in slots:
            row = rows.get(record.id)
            if row is None:
                self.history.problems.append(f"{record.name} was accepted and is not listed")
                continue
            seen = (row["state"], row["reason"], row["provider"], row["recoveries"])
            if seen != record.seen:
                record.seen = seen
                self.command("job events", lambda record=record: self.history.tell_job(record))
            if row["state"] not in grid.FINAL:
                going.append(record)
        return going

    def play(self):
        """Faults by the plan, and as many jobs as wanted, until the time is over."""
        began, seconds = time.time(), self.options.minutes * 60
        due = collections.deque(self.plan())
        slots = []
        while time.time() - began < seconds:
            while due and time.time() - began >= due[0].at:
                self.striker.strike(due.popleft())
            while len(slots) < self.options.jobs:
                record = self.submit()
                if record is None:
                    break
                slots.append(record)
            slots = self.look(slots)
            self.over.wait(1)
        return slots

    def plan(self):
        return chaos_plan.draw(self.options.seed, self.options.hosts, self.options.minutes * 60, self.options.lost_after,
                               self.options.every)

    def watch_gpus(self):
        """Who is on which GPU, seen from outside: what a program that is stopped does not note is seen as well."""
        try:
            while not self.over.wait(SIGHT_PAUSE):
                self.look_at_gpus()
        except Exception as error:  # pylint: disable=broad-except  # a watch that ended must not pass for a quiet one
            self.history.problems.append(f"the watch of the GPUs ended: {error!r}")

    def look_at_gpus(self):
        on = {}
        for process in chaos_faults.processes_of(self.grid, chaos_faults.PROGRAMS["program"]):
            gpu, attempt = process.environment().get("CUDA_VISIBLE_DEVICES"), process.attempt
            if gpu and attempt:
                on.setdefault((process.host, gpu), {}).setdefault(attempt, []).append(process)
        self.history.sights += len(on)
        for (host, gpu), attempts in on.items():
            alive = [attempt for attempt, found in attempts.items() if any(one.is_same() for one in found)]
            if len(alive) > 1:
                self.history.doubles.append(f"{time.time() - self.history.began:.1f} s: h{host} {gpu} has programs of {alive}")

    # The end.
    def settle(self, slots):
        self.history.say("heal", "everything")
        self.striker.heal_all()
        self.laptop.need_daemon()
        longest = max(self.options.steps) * (self.options.pace + 0.1)
        end = time.time() + self.options.settle + longest * self.options.jobs / 2
        while slots and time.time() < end:
            slots = self.look(slots)
            self.over.wait(1)
        self.history.say("over", f"{len(self.history.jobs)} jobs, {len(slots)} of them not finished")
        self.clean()
        self.over.set()
        self.watch.join()
        listed = self.command("job ls", lambda: self.laptop.run("job", "ls", "--json").json)
        self.history.listed = {row["name"] for row in listed or []}
        folder = os.path.join(self.grid.folder, "results")
        os.mkdir(folder)
        for record in self.history.jobs:
            self.command(f"results of {record.name}", lambda record=record: record.collect(folder))
        self.history.read_notes(self.grid)

    def clean(self):
        end = time.time() + CLEAN_WITHIN
        for host in self.grid.hosts:
            while True:
                left = self.left_on(host)
                if not left or time.time() > end:
                    break
                time.sleep(1)
            self.history.left[host] = left

    def left_on(self, host):
        left = self.grid.leftovers_on(host)
        left += [f"process {pid} of a job" for pid in self.grid.pids(host, r"chain\.sh")]
        left += [f"mount {path}" for path in self.mounts_on(host) - self.mounts[host]]
        left += [f"file {path}" for path in self.grid.enter(
            host, "find /tmp /var/tmp /dev/shm /run/user/1500 -user worker -path '*gridctl*' ! -path '/var/tmp/gridctl-leases.*' "
                  "2>/dev/null; true").split()]
        return left

    def summary(self, violated):
        history = self.history
        attempts = [attempt for job in history.jobs for attempt in job.shown["attempts"]]
        restarts = collections.Counter(a["reason"] for a in attempts if a["state"] != "succeeded")
        kinds = collections.Counter(fault.kind for fault in history.faults if fault.hit)
        held = {(note.host, note.job, note.epoch) for note in history.notes if note.gpu != "-"}
        rows = [("seed", self.options.seed), ("seconds", f"{time.time() - history.began:.0f}"),
                ("faults", f"{sum(kinds.values())}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))),
                ("jobs", f"{len(history.jobs)}, {sum(job.shown['state'] == 'SUCCEEDED' for job in history.jobs)} succeeded"),
                ("attempts", f"{len(attempts)}, {len(held)} of them held a GPU, seen {history.sights} times"),
                ("restarts", f"{sum(restarts.values())}: " + ", ".join(f"{n} {reason}" for reason, n in restarts.most_common())),
                ("checkpoints", sum(event["kind"] == "checkpoint" for job in history.jobs for event in job.events)),
                ("violations", len(violated))]
        print("\n" + "\n".join(f"{name:12} {value}" for name, value in rows))

    def judge(self):
        violated = chaos_rules.violations(self.history)
        if violated:
            print(f"\nthe last events of {len(self.history.lines)}:")
            print("\n".join(self.history.lines[-LAST_LINES:]))
            for record in [job for job in self.history.jobs if any(re.match(rf"{job.name}\b", line) for _, line in violated)][:5]:
                print(f"\n{record.handle.evidence()}")
        self.summary(violated)
        for rule, line in violated:
            print(f"VIOLATED  {rule}: {line}")
        return 1 if violated else 0

    def keep_logs(self):
        if not self.options.logs or self.laptop is None:
            return
        os.makedirs(self.options.logs, exist_ok=True)
        kept = {os.path.join(self.laptop.state, name): name for name in ("daemon.log", "state.db", "logs")}
        kept.update({self.grid.disk(host, "home/worker/.gridctl/jobs"): f"h{host}.jobs"
                     for host in self.grid.hosts if self.history.left.get(host)})
        for path, name in kept.items():
            if os.path.exists(path):
                subprocess.run(["cp", "-rT", path, os.path.join(self.options.logs, name)], check=False)
        for host in self.grid.hosts:
            shown = self.laptop.run("provider", "show", f"h{host}", "--json", check=False)
            with open(os.path.join(self.options.logs, f"h{host}.json"), "w", encoding="utf-8") as file:
                file.write(shown.out)

    def run(self):
        status = 1
        try:
            self.prepare()
            self.watch.start()
            self.settle(self.play())
            status = self.judge()
        except KeyboardInterrupt:
            print("\ninterrupted", flush=True)
            status = 130
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            self.over.set()
            self.keep_logs()
            if self.grid:
                self.grid.down()
        return status


def parse(words):
    options = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__, epilog=EXAMPLES,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hosts", type=int, default=4)
    options.add_argument("--jobs", type=int, default=8, help="at once; one that ends is followed by another (default 8)")
    options.add_argument("--minutes", type=float, default=1, help="of faults; healing and ending come after (default 1)")
    options.add_argument("--seed", type=int, default=None, help="default: another each time")
    options.add_argument("--every", type=float, default=4, help="seconds between faults, on average (default 4)")
    options.add_argument("--lost-after", type=float, default=10, help="seconds of silence until a host is given up (default 10)")
    options.add_argument("--steps", type=lambda text: [int(part) for part in text.split("-")], default=[30, 150],
                         help="of a job, from-to (default 30-150)")
    options.add_argument("--pace", type=float, default=0.4, help="seconds that a step takes (default 0.4)")
    options.add_argument("--settle", type=float, default=120, help="seconds that jobs have to end after the last fault, beside their work")
    options.add_argument("--logs", help="folder for the daemon's log, its database, the jobs' output and what was left on hosts")
    options.add_argument("--plan", action="store_true", help="print the faults and do nothing")
    options = options.parse_args(words)
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**6)
    return options


def interrupted(*_):
    raise KeyboardInterrupt


def main(words):
    options = parse(words)
    chaos = Chaos(options)
    if options.plan:
        for fault in chaos.plan():
            where = f"h{fault.host}" if fault.host else "-"
            print(f"{fault.at:7.1f} s  {fault.number:3} {fault.kind:16} {where:4} {fault.lasts:5.1f} s")
        return 0
    kind = subprocess.run([grid.TESTGRID, "kind"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    if kind.stdout.strip() != "hosts":
        print(f"skipped: {kind.stderr.strip()}", file=sys.stderr)
        return 77
    if not os.access(grid.GRIDCTL, os.X_OK):
        print(f"no gridctl at {grid.GRIDCTL}: build it, or say where it is by GRIDCTL=...", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    return chaos.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
