#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The interval that gridctl tunes, against the best fixed one in hindsight, on recorded spot instances.

    tests/bench/intervals.py [--gridctl PATH] [--runs N] [--work 48h] [TRACE…]

Each line is one `gridctl sim --trace`: the tuned interval and 17 fixed ones from 30 s to 4 h, over the same lives. The
regret is how much later (and dearer, by the hours paid for) the tuned one ends. Without TRACE: the six of
tests/data/spot; others of https://github.com/skypilot-org/spot-traces can be given as they are.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
COSTS = {
    "1 GB, 300 Mbit/s": ["--stall", "5s", "--upload", "27s"],
    "14 GB, 1 Gbit/s": ["--stall", "30s", "--upload", "112s"],
    "slow": ["--stall", "2m", "--upload", "5m"],
}


def fixed_intervals():
    return [round(30 * 480 ** (i / 16)) for i in range(17)]


def simulate(options, job, trace, costs):
    command = [options.gridctl, "sim", job, "--work", options.work, "--trace", str(trace), "--runs", str(options.runs),
               "--interval", "auto," + ",".join(f"{s}s" for s in fixed_intervals()), "--horizon", "3650d", "--json"]
    out = subprocess.run(command + COSTS[costs], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["choices"]


def paid(choice):
    return sum(choice[part] for part in ("work_seconds", "stalled_seconds", "lost_seconds", "collecting_seconds"))


def report(trace, costs, choices):
    # Those for all hosts of the trace; a trace of several hosts brings the single ones too.
    rows = [c for c in choices if c["hosts"] == "any host" and c["time_seconds"] and c["finished"] == c["runs"]]
    tuned = next(c for c in rows if c["checkpoints"] == "auto")
    best = min((c for c in rows if c["checkpoints"] == "fixed"), key=lambda c: c["time_seconds"]["mean"])
    cheapest = min(paid(c) for c in rows if c["checkpoints"] == "fixed")
    time = tuned["time_seconds"]["mean"] / best["time_seconds"]["mean"] - 1
    money = paid(tuned) / cheapest - 1
    print(f"{trace.stem:58} {costs:17} tuned {tuned['time_seconds']['mean'] / 3600:7.1f} h, "
          f"best fixed {best['interval_seconds']:5.0f} s {best['time_seconds']['mean'] / 3600:7.1f} h, "
          f"regret {100 * time:+5.1f} %, of hours used {100 * money:+5.1f} %", flush=True)
    return max(time, money)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gridctl", default=str(TOP / "build/release/cmd/gridctl"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--work", default="48h")
    parser.add_argument("traces", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    traces = options.traces or sorted((TOP / "tests/data/spot").glob("*.csv"))
    worst = []  # of each trace and cost
    with tempfile.TemporaryDirectory() as folder:
        job = pathlib.Path(folder) / "job.yaml"
        job.write_text("name: spot\nrun: python train.py\n")
        for trace in traces:
            for costs in COSTS:
                worst.append(report(trace, costs, simulate(options, str(job), trace, costs)))
    print(f"worst regret of {len(worst)}: {100 * max(worst):.1f} %")


if __name__ == "__main__":
    main()
