#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures on real hosts of the testgrid (needs root) and prints: how fast a job goes on after its host died, and what
following many jobs costs, and a sweep over the health of many hosts. standby: how much later than at its first start
a job's program begins after a failover, whose checkpoint lay ready on the next host, or (in the same run) did not.

    tests/bench/hosts.py [failover] [standby] [follow] [health] [--agents 500] [--jobs 100] [--hosts 8] [--state-mb 100]
"""
import argparse
import json
import os
import sqlite3
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import grid  # noqa: E402

LOST_AFTER = 6.0
TICKS = os.sysconf("SC_CLK_TCK")


def stateful(megabytes):
    """Prints when it begins; saves so much once, says "whole now", and goes on."""
    return {"name": "failover", "resources": {"cpus": 0.5}, "checkpoint": {"path": "out"},
            "recovery": {"lost_after": f"{LOST_AFTER:.0f}s"},
            "run": "date +BEGIN=%s.%N\n[ -f out/state ] || { mkdir -p out; head -c " + str(megabytes) + "M /dev/urandom > out/state; "
                   ": > out/.commit; }\nwhile :; do sleep 0.2; done"}


def begins(job):
    return [float(line.split("=")[1]) for line in job.logs().splitlines() if line.startswith("BEGIN=")]


def failover(the_grid, engine, megabytes, rounds):
    laptop = the_grid.laptop(f"failover-{engine}")
    for host in the_grid.hosts:
        laptop.register(host, engine=engine)
    proof, silence = [], []
    for turn in range(rounds * 2):
        spec = stateful(megabytes)
        if engine != "process":
            spec["image"] = "localhost/torch:cpu"  # its date knows nanoseconds
        job = laptop.submit(spec)
        job.wait_checkpoint(1)
        host = job.host()
        died = time.time()
        if turn % 2 == 0:
            the_grid.reboot(host)
        else:
            the_grid.kill(host)
        job.wait_attempt(2)
        began = grid.wait_until("the resumed program's first line", 30, lambda: begins(job)[1:])[0]
        if turn % 2 == 0:
            ended = grid.iso(job.events("attempt_ended")[0]["at"])
            proof.append(began - ended)
        else:
            silence.append(began - died - LOST_AFTER)
            the_grid.start(host)
        laptop.run("job", "cancel", job.id, "--now")
        job.wait_state("CANCELLED")
        the_grid.wait_clean()
    print(f"{engine:8} {megabytes} MB state: proof of death to first line of the resumed program  "
          f"median {statistics.median(proof):.2f} s  max {max(proof):.2f} s")
    print(f"{engine:8} {megabytes} MB state: power loss to that line, beyond lost_after            "
          f"median {statistics.median(silence):.2f} s  max {max(silence):.2f} s")
    laptop.close()


def standby(the_grid, engine, megabytes, rounds):
    laptop = the_grid.laptop(f"standby-{engine}")
    for host in the_grid.hosts:
        laptop.register(host, engine=engine)
    later, in_all = {True: [], False: []}, {True: [], False: []}
    for turn in range(rounds * 2):
        warm = turn % 2 == 0
        spec = stateful(megabytes)
        spec["checkpoint"]["standby"] = warm
        if engine != "process":
            spec["image"] = "localhost/torch:cpu"
        job = laptop.submit(spec)
        job.wait_checkpoint(1, deadline=300)
        if warm:
            job.wait_event("standby", deadline=300)
        the_grid.reboot(job.host())
        job.wait_attempt(2)
        begun = grid.wait_until("the resumed program's first line", 300, lambda: begins(job)[1:] and begins(job))
        decided = [grid.iso(event["at"]) for event in job.events("placed")]
        in_all[warm].append(begun[1] - decided[1])
        later[warm].append(in_all[warm][-1] - (begun[0] - decided[0]))
        laptop.run("job", "cancel", job.id, "--now")
        job.wait_state("CANCELLED")
        the_grid.wait_clean()
    for warm, seconds in later.items():
        print(f"{engine:8} {megabytes} MB state, {'lying ready' if warm else 'sent and restored'}: from the decision to the "
              f"first line, beyond that of the first start: median {statistics.median(seconds):.2f} s  max {max(seconds):.2f} s; "
              f"in all: median {statistics.median(in_all[warm]):.2f} s  max {max(in_all[warm]):.2f} s")
    laptop.close()


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        values = {line.split(":")[0]: int(line.split()[1]) for line in file if "kB" in line}
    return values["Rss"] / 1024, values["Pss"] / 1024


def follow(the_grid, jobs):
    laptop = the_grid.laptop("follow")
    for host in the_grid.hosts:
        laptop.register(host, engine="process")
    # The daemon measures the links of hosts that are new, at full speed, once a day at most: that is not following.
    measured = laptop.run("provider", "links", "--measure", timeout=280)
    print(f"the links of {the_grid.count} hosts, measured at first: {measured.seconds:.1f} s")
    spec = {"name": "idle", "resources": {"cpus": 0.1}, "checkpoint": {"interval": "off"},
            "run": "while :; do date; sleep 10; done"}
    began = time.monotonic()
    running = [laptop.submit(spec) for _ in range(jobs)]
    print(f"{jobs} submits: {(time.monotonic() - began) / jobs * 1000:.0f} ms each")
    grid.wait_until("all jobs to run", 180, lambda: sum(
        row["state"] == "RUNNING" for row in laptop.run("job", "ls", "--json").json) == jobs, laptop.evidence)
    pid = laptop.daemon_pid()
    before, start = cpu_seconds(pid), time.monotonic()
    window = 30.0
    grid.wait_until("the window of measurement", window + 5, lambda: time.monotonic() - start >= window)
    share = (cpu_seconds(pid) - before) / (time.monotonic() - start)
    rss, pss = memory_mb(pid)
    print(f"following {jobs} attempts on {the_grid.count} hosts: {share * 100:.2f} % of a core, RSS {rss:.0f} MB, PSS {pss:.0f} MB")
    for job in running:
        laptop.run("job", "cancel", job.id, "--now")
    laptop.close()


def clone_providers(laptop, originals, count):
    """Names enough for `count` agents: registering a machine again would be refused, and asks nothing that matters here."""
    db = sqlite3.connect(os.path.join(laptop.state, "state.db"))
    with db:
        rows = [db.execute("SELECT facts FROM providers WHERE name = ?", (name,)).fetchone()[0] for name in originals]
        for number in range(len(originals), count):
            facts = dict(json.loads(rows[number % len(rows)]), name=f"p{number}")
            db.execute("INSERT INTO providers(name, facts, drained, liveness) VALUES(?,?,0,'unknown')",
                       (facts["name"], json.dumps(facts)))
        # Their links are not measured meanwhile: the day's bytes are spent.
        spent = json.dumps({"day": int(time.time()) // 86400, "bytes_today": 1 << 40})
        db.executemany("INSERT OR REPLACE INTO host_reports(provider, kind, at_ms, body) VALUES(?,'network',?,?)",
                       ((name, int(time.time() * 1000), spent) for name, in db.execute("SELECT name FROM providers").fetchall()))
    db.close()


def health(the_grid, agents, sweeps, every):
    """What a sweep over that many agents costs the daemon: with sweeps and without, the same heartbeats in both."""
    hosts = list(the_grid.hosts)
    laptop = the_grid.laptop("health")
    originals = [f"p{number}" for number in range(min(agents, len(hosts)))]
    for host, name in zip(hosts, originals):
        laptop.register(host, name, "process")
    clone_providers(laptop, originals, agents)
    log = os.path.join(laptop.state, "daemon.log")

    def connected(since):
        with open(log, encoding="utf-8", errors="replace") as file:
            file.seek(since)
            return {line.split(": connected")[0].split()[-1] for line in file if ": connected" in line}

    def cost(period):
        laptop.run("daemon", "stop", check=False)
        laptop.environment["GRIDCTL_HEALTH_EVERY"] = period
        since = os.path.getsize(log) if os.path.exists(log) else 0
        job = laptop.submit({"name": "idle", "resources": {"cpus": 0.1}, "checkpoint": {"interval": "off"},
                             "run": "while :; do sleep 10; done"})
        grid.wait_until("every agent", 600, lambda: len(connected(since)) >= agents, laptop.evidence)
        job.wait_state("RUNNING", deadline=120)
        pid = laptop.daemon_pid()
        before, start, mark = cpu_seconds(pid), time.monotonic(), os.path.getsize(log)
        window = sweeps * every
        grid.wait_until("the window of measurement", window + 30, lambda: time.monotonic() - start >= window)
        spent, took = cpu_seconds(pid) - before, time.monotonic() - start
        # A login costs as much as many sweeps: on a machine that is too busy to answer its own agents, nothing is measured.
        print(f"health every {period}: {spent / took * 100:.2f} % of a core, {len(connected(mark))} of {agents} agents had to "
              "log in again meanwhile")
        laptop.run("job", "cancel", job.id, "--now")
        job.wait_state("CANCELLED")
        return spent / took

    without, with_sweeps = cost("off"), cost(f"{every}s")
    each = (with_sweeps - without) * every / agents * 1e6
    print(f"health of {agents} agents on {len(hosts)} hosts, every {every} s: {with_sweeps * 100:.2f} % of a core, "
          f"without {without * 100:.2f} %: {each:.0f} us of our CPU per host and sweep "
          f"(heartbeats and all: {with_sweeps * every / agents * 1e6:.0f} us)")
    laptop.close()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", default=["failover", "follow"])
    options.add_argument("--jobs", type=int, default=100)
    options.add_argument("--hosts", type=int, default=8)
    options.add_argument("--state-mb", type=int, default=100)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--agents", type=int, default=500)
    options.add_argument("--sweeps", type=int, default=9)
    options.add_argument("--every", type=int, default=10, help="seconds between sweeps: often, for the difference to stand out")
    args = options.parse_args()
    for what, hosts, measure in (("failover", 3, failover), ("standby", 2, standby)):
        if what not in args.what:
            continue
        few = grid.Grid(hosts)
        try:
            for engine in ("process", "podman"):
                measure(few, engine, args.state_mb, args.rounds)
        finally:
            few.down()
    if "follow" in args.what:
        many = grid.Grid(args.hosts)
        try:
            follow(many, args.jobs)
        finally:
            many.down()
    if "health" in args.what:
        many = grid.Grid(args.hosts)
        try:
            health(many, args.agents, args.sweeps, args.every)
        finally:
            many.down()


if __name__ == "__main__":
    main()
