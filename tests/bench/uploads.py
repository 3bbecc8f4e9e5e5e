#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures on real hosts of the testgrid (needs root) how long a checkpoint takes into a bucket of a real S3 server when
this machine's uplink is thin: put by the host that made it, sent from here (the host has no curl that works), and, as a
peer in the same run, sent from here by rclone, where that is installed. Prints seconds from the commit to the copy, and
what crossed the uplink.

    scripts/install-deps test bench; tests/bench/uploads.py [--state-mb 64] [--uplink 20mbit]
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import grid  # noqa: E402
import radosgw  # noqa: E402

NO_CURL = "printf '#!/bin/sh\\nexit 7\\n' > /usr/local/bin/curl; chmod +x /usr/local/bin/curl"


def command(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def make_thin(port, rate):
    """What goes from here to the server; hosts reach it by another device."""
    command("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb")
    command("tc", "class", "add", "dev", "lo", "parent", "1:", "classid", "1:7", "htb", "rate", rate, "burst", "256k", "quantum",
            "60000")
    command("iptables", "-t", "mangle", "-A", "POSTROUTING", "-o", "lo", "-p", "tcp", "--dport", str(port), "-j", "CLASSIFY",
            "--set-class", "1:7")


def sent_from_here():
    return int(re.search(r"Sent (\d+) bytes", command("tc", "-s", "class", "show", "dev", "lo"))[1])


def copy_once(the_grid, server, name, megabytes):
    laptop = the_grid.laptop(name)
    laptop.environment.update(server.environment())
    laptop.register(1)
    server.make_bucket(name)
    laptop.run("store", "add", "cloud", f"s3://{name}/ckpt", "--endpoint", server.endpoint)
    before = sent_from_here()
    job = laptop.submit({"name": name, "resources": {"cpus": 0.5}, "checkpoint": {"path": "out", "copies": 2},
                         "run": f"mkdir -p out; head -c {megabytes}M /dev/urandom > out/state; : > out/.commit; sleep 1000"})
    copied = job.wait_event("checkpoint_copied", deadline=600)
    seconds = grid.iso(copied["at"]) - grid.iso(job.wait_event("checkpoint")["at"])
    sent = sent_from_here() - before
    laptop.run("job", "cancel", job.id)
    packs = os.path.join(laptop.state, "store", "packs")
    print(f"{name:10} {seconds:7.1f} s, {sent / 1e6:6.1f} MB over the uplink   ({copied['text']})", flush=True)
    return seconds, packs


def rclone(server, packs):
    server.make_bucket("rclone")
    env = dict(server.environment(), RCLONE_CONFIG_S_TYPE="s3", RCLONE_CONFIG_S_PROVIDER="Ceph",
               RCLONE_CONFIG_S_ENV_AUTH="true", RCLONE_CONFIG_S_ENDPOINT=server.endpoint)
    before, began = sent_from_here(), time.monotonic()
    subprocess.run(["rclone", "--config", "/dev/null", "copy", packs, "s:rclone/packs"], env=env, check=True)
    seconds = time.monotonic() - began
    print(f"{'rclone':10} {seconds:7.1f} s, {(sent_from_here() - before) / 1e6:6.1f} MB over the uplink", flush=True)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state-mb", type=int, default=64)
    parser.add_argument("--uplink", default="20mbit")
    options = parser.parse_args()
    the_grid = grid.Grid(1)
    server = None
    try:
        server = radosgw.Radosgw(the_grid.facts[1]["address"].rpartition(".")[0] + ".1")
        make_thin(server.port, options.uplink)
        by_host, _ = copy_once(the_grid, server, "from-host", options.state_mb)
        the_grid.enter(1, NO_CURL)
        from_here, packs = copy_once(the_grid, server, "from-here", options.state_mb)
        print(f"the host is {from_here / by_host:.1f}x as fast as we are over {options.uplink}")
        if shutil.which("rclone"):
            print(f"and {rclone(server, packs) / by_host:.1f}x as fast as rclone")
    finally:
        if server:
            server.stop()
        the_grid.down()


if __name__ == "__main__":
    isolated = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration", "isolated")
    if "GRIDCTL_ISOLATED" not in os.environ:
        os.execv(isolated, [isolated, sys.executable, "-B", *sys.argv])
    main()
