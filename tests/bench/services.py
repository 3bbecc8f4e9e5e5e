#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A service that loses a host, beside HAProxy over `ssh -L` in the hands of an expert, in one run.

    sudo GRIDCTL=build/release/cmd/gridctl tests/integration/isolated python3 tests/bench/services.py [--seconds 60] [--rate 150]

Three replicas answer in 30 ms. A third of the time after the beginning, the host of one loses power. Each line tells how many
requests were answered and failed, and how long answers took. Ends with an error if one of gridctl's failed.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
import grid  # noqa: E402  # pylint: disable=wrong-import-position
import services_test  # noqa: E402  # pylint: disable=wrong-import-position

PEER_PORT, PEER_HERE = 8300, 19100  # of the peer's servers there, and of its tunnels here
EXPERT = """
global
  maxconn 2000
  nbthread 1
  tune.bufsize 131072
  stats socket {folder}/peer.sock mode 600 level admin
defaults
  mode http
  timeout http-request 30s
  timeout connect 2s
  timeout client 10m
  timeout server 10m
  timeout queue 60s
  timeout check 2s
  option http-no-delay
  option http-buffer-request
  option abortonclose
  option redispatch 1
  retries 3
  retry-on conn-failure empty-response 503
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  balance leastconn
  option httpchk GET /health
  http-check expect status 200
  default-server check inter 1s fastinter 250ms downinter 1s fall 2 rise 2 observe layer4 error-limit 3 on-error mark-down on-marked-down shutdown-sessions
{servers}
"""


def load(name, url, options, the_grid, host):
    with services_test.Clients(url, rate=options.rate) as clients:
        time.sleep(options.seconds / 3)
        the_grid.kill(host)
        time.sleep(options.seconds * 2 / 3)
    clients.tell(name)
    took = sorted(seconds for _, seconds, _ in clients.answers)
    grid.figure(f"{name}, p99.9", f"{took[len(took) * 999 // 1000]:.2f} s")
    return len(clients.failures)


def peer(the_grid, options):
    """The servers run by hand; each port comes here through a tunnel that notices a dead host after 3 s."""
    running, servers = [], ""
    for host in (1, 2, 3):
        facts = the_grid.facts[host]
        with open(os.path.join(grid.WORKLOADS, "server.py"), encoding="utf-8") as source, \
             open(the_grid.disk(host, "tmp/peer_server.py"), "w", encoding="utf-8") as copy:
            copy.write(source.read())
        the_grid.as_worker(host, f"PORT={PEER_PORT} setsid python3 /tmp/peer_server.py > /dev/null 2>&1 < /dev/null & true")
        tunnel = ["ssh", "-N", "-i", the_grid.key, "-p", str(facts["port"]), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                  "-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=3", "-o", "ExitOnForwardFailure=yes",
                  "-L", f"127.0.0.1:{PEER_HERE + host}:127.0.0.1:{PEER_PORT}", f"worker@{facts['address']}"]
        running.append(subprocess.Popen(tunnel, stderr=subprocess.DEVNULL))
        servers += f"  server r{host} 127.0.0.1:{PEER_HERE + host}\n"
    path = os.path.join(the_grid.folder, "peer.cfg")
    with open(path, "w", encoding="utf-8") as file:
        file.write(EXPERT.format(port=PEER_HERE, servers=servers, folder=the_grid.folder))
    program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
    running.append(subprocess.Popen([program, "-db", "-q", "-f", path]))
    try:
        time.sleep(5)
        failed = load("HAProxy over ssh -L", f"http://127.0.0.1:{PEER_HERE}", options, the_grid, 1)
    finally:
        for one in running:
            one.send_signal(signal.SIGTERM)
            one.wait()
        the_grid.heal_all()
    return failed


def ours(the_grid, options):
    laptop = the_grid.laptop()
    for host in the_grid.hosts:
        laptop.register(host, engine="process")
    job = laptop.submit(services_test.Services.file("steady", 3))
    grid.wait_until("three ready replicas", 120, lambda: laptop.run("service", "show", job.id, "--json").json["ready"] == 3)
    shown = laptop.run("service", "show", job.id, "--json").json
    failed = load("gridctl", shown["url"], options, the_grid, int(shown["replicas"][1]["provider"].lstrip("h")))
    laptop.run("service", "stop", job.id, "--now", "--wait", timeout=120)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=150)
    options = parser.parse_args()
    the_grid = grid.up(4)
    try:
        peer(the_grid, options)
        failed = ours(the_grid, options)
    finally:
        the_grid.down()
    if failed:
        sys.exit(f"{failed} requests to gridctl's service failed")


if __name__ == "__main__":
    main()
