#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Puts packs into a real S3 server on this machine and gets them back, with gridctl's backend and with rclone, in turns
and in one run, and prints MB/s and ratios.

    scripts/install-deps test bench; ninja -C build/release s3_bench
    tests/bench/s3.py [--bench build/release/tests/bench/s3_bench] [--packs 6] [--rounds 3] [--threads 1,4]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "integration"))
import radosgw  # noqa: E402

PACK = 64 << 20  # bytes


def timed(argv, env):
    began = time.monotonic()
    done = subprocess.run(argv, env=env, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: {done.stdout}")
    return time.monotonic() - began


def same(one, other):
    return subprocess.run(["diff", "-rq", one, other], check=False, stdout=subprocess.DEVNULL).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(SOURCE, "build/release/tests/bench/s3_bench"))
    parser.add_argument("--packs", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,4")
    chosen = parser.parse_args()
    if radosgw.missing() or shutil.which("rclone") is None:
        sys.exit("needs scripts/install-deps test bench")
    server = radosgw.Radosgw()
    work = tempfile.mkdtemp(prefix="gridctl-s3bench.", dir="/dev/shm")
    try:
        measure(chosen, server, work)
    finally:
        server.stop()
        shutil.rmtree(work)


def measure(chosen, server, work):
    env = dict(server.environment(), RCLONE_CONFIG=os.path.join(work, "rclone.conf"))
    with open(env["RCLONE_CONFIG"], "w", encoding="ascii") as file:
        file.write(f"[s3]\ntype = s3\nprovider = Ceph\nenv_auth = true\nendpoint = {server.endpoint}\n")
    source = os.path.join(work, "source")
    os.mkdir(source)
    for number in range(chosen.packs):
        with open(os.path.join(source, f"{number}.pack"), "wb") as file:
            file.write(os.urandom(PACK))
    subprocess.run([chosen.bench, "make", "-", "-", "0"], env=env, check=True)
    megabytes = chosen.packs * PACK / 1e6
    for threads in chosen.threads.split(","):
        rates = {}
        for turn in range(chosen.rounds):
            for tool in ("gridctl", "rclone"):
                target = os.path.join(work, "target")
                os.mkdir(target)
                prefix = f"{tool}-{threads}-{turn}"
                if tool == "gridctl":
                    put, get = ([chosen.bench, verb, where, prefix, threads] for verb, where in (("put", source), ("get", target)))
                else:
                    there, more = f"s3:bench/{prefix}", ["--transfers", threads, "--s3-no-check-bucket"]
                    put, get = ["rclone", "copy", source, there, *more], ["rclone", "copy", there, target, *more]
                rates.setdefault((tool, "put"), []).append(megabytes / timed(put, env))
                rates.setdefault((tool, "get"), []).append(megabytes / timed(get, env))
                if not same(source, target):
                    sys.exit(f"{tool} gave back other bytes")
                shutil.rmtree(target)
                subprocess.run(["rclone", "purge", f"s3:bench/{prefix}"], env=env, check=True)
        for verb in ("put", "get"):
            ours, theirs = (statistics.median(rates[tool, verb]) for tool in ("gridctl", "rclone"))
            print(f"{verb} {chosen.packs} x {PACK >> 20} MiB, {threads} at once: gridctl {ours:.0f} MB/s, "
                  f"rclone {theirs:.0f} MB/s, ratio {ours / theirs:.2f}", flush=True)


if __name__ == "__main__":
    main()
