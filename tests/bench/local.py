#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what needs no hosts and prints it beside a peer measured in the same run: start-up time, listing time, sizes.

    tests/bench/local.py [--gridctl build/release/cmd/gridctl] [--jobs 10000] [--events 1000000]
"""
import argparse
import json
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


def fill_providers(state, count):
    """Adds hosts with inventories of ordinary length: two thirds with GPUs, of eight models, in nine countries."""
    models = [("NVIDIA GeForce RTX 4090", 24564), ("NVIDIA GeForce RTX 3090", 24576), ("NVIDIA A100-SXM4-80GB", 81920),
              ("NVIDIA H100 80GB HBM3", 81559), ("NVIDIA L40S", 46068), ("NVIDIA RTX A6000", 49140),
              ("AMD Instinct MI300X", 196592), ("Intel Data Center GPU Max 1100", 49152)]
    countries = ["DE", "FI", "SE", "FR", "US", "CA", "JP", "PL", "NL"]

    def facts(n):
        name, mib = models[n % 8]
        vendor = "amd" if n % 8 == 6 else "intel" if n % 8 == 7 else "nvidia"
        gpus = [{"vendor": vendor, "name": name, "uuid": f"GPU-{n:08d}-{i}", "memory_bytes": mib << 20,
                 "driver": f"{535 + n % 20}.104.05", "pci": f"00000000:0{i}:00.0", "index": i,
                 "gaps": [{"attribute": f"attribute.{k}", "reason": "not_reported", "detail": "nothing tells it"}
                          for k in range(8)]} for i in range(0 if n % 3 == 0 else 1 + n % 8)]
        inventory = {"version": 2, "machine_id": f"{n:032x}", "boot_id": f"{n:036d}", "hostname": f"host{n}",
                     "kernel": "6.1.0-18-amd64", "arch": "x86_64", "os": "Debian GNU/Linux 12 (bookworm)",
                     "cpu_model": "AMD EPYC 7742 64-Core Processor", "cpus": 8 << n % 5, "memory_bytes": (32 << n % 5) << 30,
                     "disk_free_bytes": (100 + n % 900) << 30, "disk_total_bytes": 2 << 40, "cuda": "12.4", "gpus": gpus}
        return {"name": f"host{n:05d}", "address": f"ssh://me@10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "user": "me",
                "host": f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "port": 22, "identities": [], "jump": "", "alias": "",
                "transport": "libssh2", "engine": "auto", "price": n % 400 / 100, "region": countries[n % 9], "site": "",
                "class": ["home", "market", "datacenter"][n % 3], "labels": {"rack": str(n % 40)},
                "registered_ms": 1_800_000_000_000, "inventory": json.dumps(inventory)}

    db = sqlite3.connect(os.path.join(state, "state.db"))
    with db:
        db.executemany("INSERT INTO providers(name, facts, drained, liveness, last_seen_ms) VALUES(?,?,0,'answering',?)",
                       ((f"host{n:05d}", json.dumps(facts(n)), 1_800_000_000_000 + n) for n in range(count)))
        db.executemany("INSERT INTO figures(provider, numbers) VALUES(?,?)",
                       ((f"host{n:05d}", f"failures={n % 7} mtbf={20 + n % 500} mtbf_high=900 mtbf_low=9 reliability="
                         f"{1 - n % 100 / 1000} rtt={n % 90} total_flops={n % 900} watched=700") for n in range(count)))
    db.close()


def measure_providers(gridctl, state, args):
    fill_providers(state, args.providers)
    listing = [gridctl, "--state", state, "provider", "ls"]
    begin = time.perf_counter()
    subprocess.run(listing + ["num_gpus>64"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"{args.providers} providers; their narrow rows are made once, in {time.perf_counter() - begin:.1f} s")
    query = "gpu_name=RTX_4090 num_gpus>=2 reliability>0.98 region in [DE,FI]"
    for what, arguments in (("a query", [query, "-o", "price"]), ("the same, --json", [query, "--json"]),
                            ("all of them", [])):
        print(f"provider ls, {what:18}    {median_ms(listing + arguments, args.runs):8.1f} ms")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--gridctl", default="build/release/cmd/gridctl")
    options.add_argument("--jobs", type=int, default=10_000)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--providers", type=int, default=10_000)
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
        measure_providers(gridctl, state, args)
    finally:
        shutil.rmtree(state)

    for name, path in (("gridctl", gridctl),
                       ("gridctl-agent", os.path.join(os.path.dirname(gridctl), "..", "bin", "gridctl-agent.stripped"))):
        if os.path.exists(path):
            print(f"size of {name:18} {os.path.getsize(path) / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
