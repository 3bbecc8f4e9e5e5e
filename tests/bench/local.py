#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what needs no hosts and prints it beside a peer measured in the same run: start-up time, listing time, sizes.

    tests/bench/local.py [--gridctl build/release/cmd/gridctl] [--jobs 10000] [--events 1000000]
"""
import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time


def median_ms(argv, runs, env=None):
    """Median wall time of a whole process, output thrown away, after two runs to warm the caches."""
    times = []
    for turn in range(runs + 2):
        begin = time.perf_counter()
        subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=True)
        if turn >= 2:
            times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def fill(state, jobs, events):
    """Fills an empty registry with finished jobs; listings read only these columns."""
    db = sqlite3.connect(os.path.join(state, "state.db"))
    db.execute("PRAGMA synchronous=OFF")
    with db:
        db.executemany(
            "INSERT INTO jobs(id, name, spec, machine, state, reason, provider, resources, epoch, head, unfinished, "
            "exit_code, recoveries, submitted_ms, ended_ms) VALUES(?,?,'{}','{}','SUCCEEDED','succeeded','h1',"
            "'1x A100, 4 cpus',1,1,0,0,0,?,?)",
            ((f"bench{n:08d}", f"train-{n % 97}", 1_800_000_000_000 + n, 1_800_000_060_000 + n) for n in range(jobs)))
        db.executemany(
            "INSERT INTO events(job, at_ms, kind, text, epoch, attempt, host) VALUES(?,?,?,?,1,1,'h1')",
            ((f"bench{n % jobs:08d}", 1_800_000_000_000 + n, "checkpoint", "checkpoint is safe") for n in range(events)))
    db.close()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--gridctl", default="build/release/cmd/gridctl")
    options.add_argument("--jobs", type=int, default=10_000)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--runs", type=int, default=15)
    args = options.parse_args()
    gridctl = os.path.abspath(args.gridctl)

    version = median_ms([gridctl, "version"], args.runs)
    git = median_ms(["git", "--version"], args.runs)
    print(f"gridctl version            {version:8.1f} ms    git --version {git:.1f} ms    ratio {version / git:.2f}")

    state = tempfile.mkdtemp(prefix="gridctl-bench-")
    try:
        subprocess.run([gridctl, "--state", state, "provider", "register", "x", "nobody@127.0.0.1:1"], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fails, but makes the registry
        fill(state, args.jobs, args.events)
        shown = median_ms([gridctl, "--state", state, "job", "ls"], args.runs)
        listing = median_ms([gridctl, "--state", state, "job", "ls", "--all"], args.runs)
        query = "SELECT id, name, state, reason, provider, exit_code, submitted_ms, ended_ms, recoveries, resources FROM jobs ORDER BY n DESC"
        peer = median_ms(["sqlite3", os.path.join(state, "state.db"), query], args.runs)
        size = os.path.getsize(os.path.join(state, "state.db")) / 1e6
        print(f"registry of {args.jobs} jobs and {args.events} events, {size:.0f} MB:")
        print(f"job ls (the newest 50)     {shown:8.1f} ms")
        print(f"job ls --all               {listing:8.1f} ms    sqlite3 shell, same rows {peer:.1f} ms    ratio {listing / peer:.2f}")
        one = median_ms([gridctl, "--state", state, "job", "events", "bench00000042", "--json"], args.runs)
        print(f"job events of one of them  {one:8.1f} ms")
    finally:
        shutil.rmtree(state)

    for name, path in (("gridctl", gridctl),
                       ("gridctl-agent", os.path.join(os.path.dirname(gridctl), "..", "bin", "gridctl-agent.stripped"))):
        if os.path.exists(path):
            print(f"size of {name:18} {os.path.getsize(path) / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
