#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what gridctl's benchmark says of the first OpenCL device with clpeak, which runs beside it: turn and turn
about, several rounds, one ratio per figure and round. Without a GPU the device is PoCL's, on the processors.

    tests/bench/gpu.py [--helper build/release/bin/gridctl-gpubench] [--rounds 5] [--clock wall|cpu]

Both take the best of their vector widths. Copies: clpeak's memory on the host is not page-locked, so that only our
pageable copies are judged; it tells the mean of 20, blocking and not, of which the better is taken, where ours is the
best of half a second. Load by others therefore makes our ratios higher. On a machine that others use too, --clock cpu
gives both programs the processor time that they have used as their only clock (tests/support/cpu_clock.c; only for
devices that are processors): what they wait for others then counts for neither.

Ctrl-C ends it after the rounds that are done. Ends with 1 when the median of a ratio is further from 1 than --within
(0.15), with 77 when there is no clpeak. The tests run short rounds of it in processor time, three at most, beside other
tests: with --closest the nearest of the rounds to 1 counts, and it ends when all are within.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARTS = [("rates", "--compute-sp"), ("memory", "--global-bandwidth"), ("copies", "--transfer-bandwidth")]
# Title, unit, our figure, clpeak's lines, of which the best counts.
FIGURES = [("fp32", "GFLOPS", "fp32_gflops", r"Single-precision compute.*?\n\n"),
           ("memory read", "GB/s", "read_gbs", r"Global memory bandwidth.*?\n\n"),
           ("host to device", "GB/s", "h2d_gbs", r"enqueueWriteBuffer.*?$"),
           ("host to device, pageable", "GB/s", "h2d_pageable_gbs", r"enqueueWriteBuffer.*?$"),
           ("device to host", "GB/s", "d2h_gbs", r"enqueueReadBuffer.*?$"),
           ("device to host, pageable", "GB/s", "d2h_pageable_gbs", r"enqueueReadBuffer.*?$")]
UNLIKE = ("host to device", "device to host")  # page-locked, which clpeak does not measure


def run(argv, environment, text=None):
    done = subprocess.run(argv, env=environment, input=text, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{argv[0]} ended with {done.returncode}: {done.stdout}")
    return done.stdout


def ours(helper, part_ms, environment):
    said = "".join(run([helper, test, "opencl", "0", f"part_ms={part_ms}"], environment, "seed 1\n") for test, _ in PARTS)
    return (re.search(r"^text name (.*)$", said, re.M)[1].strip(),
            {name: float(value) for name, value in re.findall(r"^number (\S+) (\S+)$", said, re.M)})


def clpeak(environment):
    said = "".join(run(["clpeak", "-p", "0", "-d", "0", option], environment) for _, option in PARTS)
    return re.search(r"Device: (.*)$", said, re.M)[1].strip(), said


def best(said, pattern):
    places = re.findall(pattern, said, re.M | (re.S if r"\n" in pattern else 0))
    values = [float(value) for place in places for value in re.findall(r": ([\d.]+)", place)]
    if not values:
        sys.exit(f"clpeak did not say {pattern}:\n{said}")
    return max(values)


def ratio_of(pairs, closest):
    ratios = [mine / theirs for mine, theirs in pairs]
    return min(ratios, key=lambda one: abs(one - 1)) if closest else statistics.median(ratios)


def outside(title, pairs, args):
    return title not in UNLIKE and abs(ratio_of(pairs, args.closest) - 1) > args.within


def cpu_clock(folder):
    library = os.path.join(folder, "cpu_clock.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library,
                    os.path.join(SOURCE, "tests", "support", "cpu_clock.c")], check=True)
    return library


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--helper", default=os.path.join(SOURCE, "build", "release", "bin", "gridctl-gpubench"))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options.add_argument("--within", type=float, default=0.15)
    options.add_argument("--closest", action="store_true")
    options.add_argument("--part-ms", type=int, default=800)
    args = options.parse_args()
    if not shutil.which("clpeak"):
        print("SKIPPED clpeak is not installed")
        return 77
    environment = dict(os.environ)
    pairs = {title: [] for title, *_ in FIGURES}
    with tempfile.TemporaryDirectory() as folder:
        if args.clock == "cpu":
            environment["LD_PRELOAD"] = cpu_clock(folder)
        rounds = 0
        try:
            while rounds < args.rounds:
                first = ours(args.helper, args.part_ms, environment) if rounds % 2 == 0 else None
                other_name, said = clpeak(environment)
                name, figures = first or ours(args.helper, args.part_ms, environment)
                if name != other_name:
                    sys.exit(f"two devices: '{name}' and '{other_name}'")
                for title, _, figure, pattern in FIGURES:
                    pairs[title].append((figures[figure], best(said, pattern)))
                rounds += 1
                print(f"round {rounds} of {args.rounds} done", file=sys.stderr, flush=True)
                if args.closest and not any(outside(title, pairs[title], args) for title in pairs):
                    break
        except KeyboardInterrupt:
            if rounds == 0:
                return 1
    print(f"{name}; {'closest' if args.closest else 'medians'} of {rounds} rounds, {args.clock} clock")
    print(f"{'':26}{'gridctl':>10}{'clpeak':>10}{'ratio':>8}   lowest to highest")
    wrong = 0
    for title, unit, *_ in FIGURES:
        ratios = sorted(mine / theirs for mine, theirs in pairs[title])
        is_wrong = outside(title, pairs[title], args)
        wrong += is_wrong
        print(f"{title:26}{statistics.median(mine for mine, _ in pairs[title]):10.2f}"
              f"{statistics.median(theirs for _, theirs in pairs[title]):10.2f}{ratio_of(pairs[title], args.closest):8.2f}   "
              f"{ratios[0]:.2f} to {ratios[-1]:.2f}  {unit}{'  OUTSIDE' if is_wrong else '  not judged' if title in UNLIKE else ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
