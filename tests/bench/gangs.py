#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One training on two hosts of the testgrid, of which one loses power, or loses its rank: how long until the next training
step, with gridctl, with torchrun's own restarts and with Slurm's --requeue, in one run. And how much later the last of four
members of a gang begins than the slowest of four single jobs with the same image.

    sudo apt-get install slurmd slurmctld slurm-client munge
    sudo tests/integration/isolated python3 tests/bench/gangs.py --packages VENV/lib/python3.11/site-packages [start] [loss]

Everybody runs the same program and notices a silent host after the same time. Peers that are not there are left out.
torchrun does not notice a lost host: --patience says how long it is watched.
"""
import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
import grid  # noqa: E402

LOST_AFTER = 10  # seconds of silence, for everybody
SITE, FOLDER = "/var/site", "/var/bench"
PROGRAM = "elastic_ddp.py"
STEP = re.compile(r"step (\d+) loss [\d.]+ at ([\d.]+)$", re.MULTILINE)
BEGINS = "begins at step"
RANK = f"^[^ ]*python3 (-u )?{PROGRAM}$"  # its command line, whoever started it
ENVIRONMENT = {"PYTHONPATH": SITE, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "STEPS": "100000", "PACE": "0.2",
               "SAVE_EVERY": "10", "PYTHONUNBUFFERED": "1"}
SLURM_CONF = """ClusterName=bench
SlurmctldHost=h1({first})
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
StateSaveLocation=/var/lib/slurm/ctld
SlurmdSpoolDir=/var/lib/slurm/d
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout={lost_after}
KillWait=2
JobRequeue=1
SchedulerParameters=sched_interval=2,bf_interval=5
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def told(text, since=0.0):
    return [(int(step), float(at)) for step, at in STEP.findall(text) if float(at) > since]


class Gridctl:
    name = "gridctl"

    def __init__(self, the_grid):
        self.grid = the_grid
        self.laptop = the_grid.laptop("gridctl")
        for host in the_grid.hosts:
            self.laptop.register(host, engine="process")
        self.count = 0

    def start(self):
        self.count += 1
        self.job = self.laptop.submit({
            "name": f"gang-{self.count}", "workdir": grid.WORKLOADS, "run": f"python3 {PROGRAM}", "num_nodes": 2,
            "ranks_per_node": 1, "launcher": "torchrun", "class": "federated", "envs": ENVIRONMENT,
            "resources": {"cpus": 0.5}, "checkpoint": {"path": "out", "interval": "1s"},
            "recovery": {"lost_after": f"{LOST_AFTER}s"}})
        self.job.wait_checkpoint(2, deadline=90)

    def other_host(self):
        return int(self.job.attempts()[-1]["members"][1]["provider"][1:])

    def output(self):
        return self.job.logs()

    def decided(self):
        """When it was known that the host is lost, or that the rank is."""
        kinds = ("host_lost", "gang_broken", "attempt_ended")
        return min(grid.iso(event["at"]) for event in self.job.events() if event["kind"] in kinds)

    def end(self):
        self.laptop.run("job", "cancel", self.job.id, "--now")
        self.job.wait_state("CANCELLED")
        for host in self.grid.hosts:
            self.grid.command("start", host)
        self.grid.wait_clean()


class Torchrun:
    """An agent on each of two hosts, meeting by c10d on the first."""
    name = "torchrun"

    def __init__(self, the_grid):
        self.grid = the_grid
        self.port = 29600
        self.agents = []

    def start(self):
        self.port += 1
        address = self.grid.facts[2]["address"]
        for host in (2, 3):
            self.grid.enter(host, f"rm -rf {FOLDER}/out")
            words = (f"-m torch.distributed.run --nnodes 2 --nproc_per_node 1 --max_restarts 3 --rdzv_backend c10d "
                     f"--rdzv_endpoint {address}:{self.port} --rdzv_id bench --rdzv_conf is_host={str(host == 2).lower()} "
                     f"--local_addr {self.grid.facts[host]['address']} {PROGRAM}")
            variables = " ".join(f"{name}='{value}'" for name, value in ENVIRONMENT.items())
            script = (f"cd {FOLDER} && exec env {variables} GRIDCTL_WORLD_SCALE=1 GLOO_SOCKET_IFNAME=eth0 "
                      f"python3 {words} > {FOLDER}/log.{host} 2>&1")
            self.agents.append(subprocess.Popen([grid.TESTGRID, "enter", str(host), "sh", "-c", script],
                                                env=self.grid.environment, stdin=subprocess.DEVNULL))
        grid.wait_until("torchrun's twentieth step", 120, lambda: len(told(self.output())) > 20, self.output)

    def other_host(self):
        """The one of rank 1: rendezvous decides."""
        return 3 if told(self.log(2)) else 2

    def log(self, host):
        with contextlib.suppress(FileNotFoundError), open(self.grid.disk(host, f"{FOLDER[1:]}/log.{host}"),
                                                          encoding="utf-8", errors="replace") as file:
            return file.read()
        return ""

    def output(self):
        return self.log(2) + self.log(3)

    def decided(self):
        return None  # it says nothing with a time

    def end(self):
        for agent in self.agents:
            agent.kill()
            agent.wait()
        for host in (2, 3):
            self.grid.command("start", host)
            self.grid.enter(host, f"pkill -9 -f '^[^ ]*python3 .*{PROGRAM}$' || true")
        self.agents = []


class Slurm:
    """Controller on host 1, nodes on the others; the job asks to be queued again when a node fails, and does so itself when
    a rank does."""
    name = "slurm --requeue"

    def __init__(self, the_grid):
        self.grid = the_grid
        nodes = [host for host in the_grid.hosts if host > 1]
        lines = "\n".join(f"NodeName=h{host} NodeAddr={the_grid.facts[host]['address']} CPUs={os.cpu_count()} State=UNKNOWN"
                          for host in nodes)
        conf = SLURM_CONF.format(first=the_grid.facts[1]["address"], lost_after=LOST_AFTER, nodes=lines,
                                 names=",".join(f"h{host}" for host in nodes))
        for host in the_grid.hosts:
            self.write(host, "etc/slurm/slurm.conf", conf)
        self.start_daemons(the_grid.hosts)
        self.write(1, f"{FOLDER[1:]}/job.sh", self.script(nodes))
        self.wait_idle()

    def wait_idle(self):
        grid.wait_until("Slurm's nodes", 120, lambda: self.ask("sinfo -h -t idle -o %D").split()[-1:] ==
                        [str(self.grid.count - 1)], lambda: self.ask("sinfo -R; sinfo"))

    def write(self, host, path, text):
        path = self.grid.disk(host, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def start_daemons(self, hosts):
        for host in hosts:
            self.grid.enter(host, "mkdir -p /run/munge /var/lib/munge /var/log/munge /var/lib/slurm/ctld /var/lib/slurm/d; "
                                  "chown munge: /run/munge /var/lib/munge /var/log/munge; chmod 755 /run/munge; "
                                  "pgrep -x munged > /dev/null || setpriv --reuid munge --regid munge --clear-groups munged")
            daemon = "slurmctld" if host == 1 else f"slurmd -N h{host}"
            self.grid.enter(host, f"pgrep -x {daemon.split()[0]} > /dev/null || setsid {daemon}")

    def script(self, nodes):
        addresses = " ".join(f"h{host}) MASTER_ADDR={self.grid.facts[host]['address']};;" for host in nodes)
        variables = "\n".join(f"export {name}='{value}'" for name, value in ENVIRONMENT.items())
        return (f"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1 --requeue --open-mode=append -o {FOLDER}/log -D {FOLDER}\n"
                f"{variables}\nexport GRIDCTL_WORLD_SCALE=1 GLOO_SOCKET_IFNAME=eth0\n"
                f"first=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -1)\ncase $first in {addresses} esac\n"
                "export MASTER_ADDR MASTER_PORT=$((20000 + SLURM_JOB_ID * 10 + ${SLURM_RESTART_COUNT:-0}))\n"
                "srun --kill-on-bad-exit=1 --label bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=0 WORLD_SIZE=$SLURM_NTASKS exec "
                f"python3 {PROGRAM}' || scontrol requeue $SLURM_JOB_ID\n")

    def ask(self, command):
        return self.grid.enter(1, command, check=False)

    def start(self):
        for host in self.grid.hosts:
            self.grid.enter(host, f"rm -rf {FOLDER}/out {FOLDER}/log")
        self.job = self.ask(f"sbatch --parsable {FOLDER}/job.sh").strip()
        grid.wait_until("Slurm's twentieth step", 120, lambda: len(told(self.output())) > 20,
                        lambda: self.output() + self.ask("squeue; sinfo; tail -20 /var/log/slurmctld.log"))

    def other_host(self):
        return int(self.ask(f"scontrol show hostnames $(squeue -h -j {self.job} -o %N)").split()[-1][1:])

    def output(self):
        text = ""
        for host in self.grid.hosts:
            with contextlib.suppress(FileNotFoundError), open(self.grid.disk(host, f"{FOLDER[1:]}/log"), encoding="utf-8",
                                                              errors="replace") as file:
                text += file.read()
        return text

    def decided(self):
        return None

    def end(self):
        self.ask(f"scancel {self.job}")
        for host in self.grid.hosts:
            self.grid.command("start", host)
        self.start_daemons(self.grid.hosts)
        grid.wait_until("the end of Slurm's job", 90, lambda: not self.ask(f"squeue -h -j {self.job}").strip())
        self.wait_idle()


def lose(peer, what, patience):
    """Seconds from the loss, and from its being known, until the next step; None: no step in that time."""
    peer.start()
    host = peer.other_host()
    before = peer.output()
    last, lives = told(before)[-1][0], before.count(BEGINS)
    lost = time.time()
    if what == "host":
        peer.grid.kill(host)
    else:
        peer.grid.enter(host, f"pkill -9 -f '{RANK}'")
    try:
        steps = grid.wait_until("the next step", patience, lambda: next_life(peer.output(), lives, lost), peer.output)
        found = steps[0][1] - lost
        decided = peer.decided()
        again = last - steps[0][0] + 1
        return found, None if decided is None else steps[0][1] - decided, again
    except grid.Timeout:
        return None, None, None
    finally:
        peer.end()


def next_life(text, lives, lost):
    """The steps after the program has begun once more: those behind the longest pause."""
    steps = told(text, lost)
    if text.count(BEGINS) <= lives or not steps:
        return []
    steps.sort(key=lambda one: one[1])
    times = [lost, *[at for _, at in steps]]
    pauses = [after - before for before, after in zip(times, times[1:])]
    return steps[pauses.index(max(pauses)):]


def imports(the_grid):
    """What every start costs whoever does it."""
    began = time.monotonic()
    both = [subprocess.Popen([grid.TESTGRID, "enter", str(host), "env", f"PYTHONPATH={SITE}", "OMP_NUM_THREADS=1",
                              "CUDA_VISIBLE_DEVICES=", "python3", "-c", "import torch, torch.distributed, torch.nn"],
                             env=the_grid.environment, stdin=subprocess.DEVNULL) for host in (1, 2)]
    for one in both:
        one.wait(timeout=120)
    return time.monotonic() - began


def loss(the_grid, packages, patience, rounds, only=()):
    """Prints a table, and gives its rows: name, and by "host" and "rank" the seconds until the next step, None = later than
    patience."""
    for host in the_grid.hosts:
        subprocess.run(["cp", "-a", "--link", packages, the_grid.disk(host, SITE[1:])], check=True)
        os.makedirs(the_grid.disk(host, FOLDER[1:]), exist_ok=True)
        for name in (PROGRAM, "pace.py"):
            shutil.copy(os.path.join(grid.WORKLOADS, name), the_grid.disk(host, FOLDER[1:]))
    peers = [Gridctl, Torchrun]
    if shutil.which("slurmctld") and shutil.which("munged"):
        peers.append(Slurm)
    print(f"the program's own imports, on two hosts at once: {imports(the_grid):.1f} s of each start")
    print(f"until the next training step, two ranks on two hosts, silence of {LOST_AFTER} s counts as loss (medians of {rounds})")
    print(f"{'':18} {'host lost':>10} {'ratio':>6} {'beyond the silence':>19} {'after it was known':>19} {'rank killed':>12} {'ratio':>6}")
    rows = []
    for make in peers:
        if only and make is not Gridctl and make.__name__.lower() not in only:
            continue
        peer = make(the_grid)  # its daemons are new: hosts lost power before
        row = {}
        for what in ("host", "rank"):
            results = [lose(peer, what, patience) for _ in range(rounds if peer.name == "gridctl" else 1)]
            row[what] = None if any(one[0] is None for one in results) else statistics.median(one[0] for one in results)
            known = [one[1] for one in results if one[1] is not None]
            row[what, "known"] = statistics.median(known) if known else None
        rows.append((peer.name, row))
        ours = rows[0][1]

        def shown(value, unit=" s"):
            return "-" if value is None else f"{value:.1f}{unit}"

        def against(what):
            return shown(row[what] / ours[what], "x") if row[what] and ours[what] else "-"

        beyond = None if row["host"] is None else row["host"] - LOST_AFTER
        print(f"{peer.name:18} {shown(row['host']) if row['host'] else f'> {patience} s':>10} {against('host'):>6} {shown(beyond):>19} "
              f"{shown(row['host', 'known']):>19} {shown(row['rank']) if row['rank'] else f'> {patience} s':>12} {against('rank'):>6}",
              flush=True)
    return rows


def start(the_grid, rounds):
    """From the decision where to run until the program begins: the last of four members, the slowest of four jobs."""
    laptop = the_grid.laptop("start")
    for host in the_grid.hosts:
        laptop.register(host)
    spec = {"image": "localhost/torch:cpu", "resources": {"cpus": 0.5}, "run": "date +BEGIN=%s.%N; sleep 3"}
    gangs, singles = [], []

    def begun(job, count):
        lines = re.findall(r"BEGIN=([\d.]+)", job.logs())
        return [float(line) for line in lines] if len(lines) >= count else None

    for number in range(rounds):
        jobs = [laptop.submit({**spec, "name": f"one-{number}-{host}", "resources": {"cpus": 0.5, "infra": f"h{host}"}})
                for host in the_grid.hosts]
        took = []
        for job in jobs:
            at = grid.wait_until("the beginning", 60, lambda job=job: begun(job, 1), job.evidence)[0]
            took.append(at - grid.iso(job.events("placed")[0]["at"]))
            job.wait_success()
        singles.append(max(took))
        gang = laptop.submit({**spec, "name": f"gang-{number}", "num_nodes": 4, "ranks_per_node": 1, "launcher": "plain",
                              "class": "federated"})
        ends = grid.wait_until("the beginning", 60, lambda: begun(gang, 4), gang.evidence)
        gangs.append(max(ends) - grid.iso(gang.events("placed")[0]["at"]))
        gang.wait_success()
        the_grid.wait_clean()
    print(f"from the decision until the program begins, with an image: the last of four members {statistics.median(gangs):.2f} s "
          f"(most {max(gangs):.2f} s), the slowest of four single jobs {statistics.median(singles):.2f} s: "
          f"{statistics.median(gangs) - statistics.median(singles):+.2f} s")
    laptop.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["start", "loss", []], default=[])
    parser.add_argument("--packages", help="a folder with torch, which each host gets")
    parser.add_argument("--patience", type=int, default=240, help="seconds to wait for the next step [240]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=[], help="torchrun, slurm: only these")
    arguments = parser.parse_args()
    what = arguments.what or ["start", "loss"]
    the_grid = grid.Grid(4)
    try:
        if "start" in what:
            start(the_grid, arguments.rounds)
        if "loss" in what:
            if not arguments.packages or not os.path.isdir(os.path.join(arguments.packages, "torch")):
                sys.exit("gangs.py: --packages VENV/lib/python3.11/site-packages, with torch")
            loss(the_grid, arguments.packages, arguments.patience, arguments.rounds, arguments.peers)
    finally:
        the_grid.down()


if __name__ == "__main__":
    main()
