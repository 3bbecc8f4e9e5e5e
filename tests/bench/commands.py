#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long people wait for commands on a state directory that has grown for years.

    ninja -C build/release full_state gridctl
    tests/bench/commands.py [--gridctl build/release/cmd/gridctl] [--full-state build/release/tests/bench/full_state]
                            [--jobs 10000] [--hosts 1000] [--state DIR] [--limit MS]

Prints p50 and p99 of whole processes, in turns so that what else the machine does falls on all alike; on a machine that
others use, run it by `nice -n -20`. --limit: exits with 1 when the p99 of one is above. --state: a directory that is already filled.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time


def commands_of(gridctl, state):
    """Each command with one of its jobs: the oldest, one in the middle, one that runs, and one that waits."""
    rows = json.loads(subprocess.run([gridctl, "--state", state, "job", "ls", "--all", "--json"], check=True,
                                     capture_output=True, text=True).stdout)
    jobs = rows["jobs"] if isinstance(rows, dict) else rows
    by_state = {}
    for job in jobs:
        by_state.setdefault(job["state"], job["job_id"])
    old, middle = jobs[-1]["job_id"], jobs[len(jobs) // 2]["job_id"]
    running, waiting = by_state.get("RUNNING", old), by_state.get("PENDING", old)
    return {
        "job ls": ["job", "ls"],
        "job ls --all": ["job", "ls", "--all"],
        "job ls --state RUNNING": ["job", "ls", "--status", "RUNNING"],
        "job show (old)": ["job", "show", old],
        "job show (running)": ["job", "show", running],
        "job show @last": ["job", "show", "@last"],
        "job show by name": ["job", "show", "train-5"],
        "job show by prefix": ["job", "show", middle[:8]],
        "job events": ["job", "events", middle],
        "job explain (running)": ["job", "explain", running],
        "job explain (ended)": ["job", "explain", old],
        "job explain (waiting)": ["job", "explain", waiting],
        "provider ls": ["provider", "ls"],
        "provider ls QUERY": ["provider", "ls", "num_gpus>=8 gpu_name=RTX_4090"],
        "provider show": ["provider", "show", "host500"],
        "provider show (a slip)": ["provider", "show", "hots500"],
        "checkpoint ls": ["checkpoint", "ls", middle],
        "budget": ["budget", "ls"],
        "daemon status": ["daemon", "status"],
        "store ls": ["store", "ls"],
        "version": ["version"],
        "completion of jobs": ["__complete", "job", "show", ""],
    }


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--gridctl", default="build/release/cmd/gridctl")
    options.add_argument("--full-state", default="build/release/tests/bench/full_state")
    options.add_argument("--jobs", type=int, default=10_000)
    options.add_argument("--hosts", type=int, default=1_000)
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--state")
    options.add_argument("--limit", type=float, default=0)
    args = options.parse_args()
    gridctl = os.path.abspath(args.gridctl)
    state = args.state or tempfile.mkdtemp(prefix="gridctl-commands-")
    try:
        if not args.state:
            subprocess.run([args.full_state, state, str(args.jobs), str(args.hosts)], check=True)
        commands = commands_of(gridctl, state)
        times = {name: [] for name in commands}
        codes = {}
        for _ in range(args.runs):
            for name, words in commands.items():
                begin = time.perf_counter()
                done = subprocess.run([gridctl, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      stdin=subprocess.DEVNULL, check=False, env={**os.environ, "GRIDCTL_STATE": state})
                times[name].append(1e3 * (time.perf_counter() - begin))
                codes[name] = done.returncode
    finally:
        if not args.state:
            shutil.rmtree(state)
    slow = False
    print(f"{'command':24} {'p50':>8} {'p99':>8}   of {args.runs} runs, {args.jobs} jobs, {args.hosts} hosts; ms")
    for name, taken in times.items():
        taken.sort()
        p99 = taken[min(len(taken) - 1, int(0.99 * len(taken)))]
        slow = slow or (args.limit > 0 and p99 > args.limit)
        print(f"{name:24} {taken[len(taken) // 2]:8.1f} {p99:8.1f}" + (f"   exit {codes[name]}" if codes[name] else ""))
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
