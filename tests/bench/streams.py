#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Streams of a running job beside `ssh -L`: throughput, first byte, and what a thousand of them do to heartbeats.

    sudo tests/integration/isolated python3 tests/bench/streams.py
"""
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "integration"))
import grid  # noqa: E402

PORT = 8888
LINKS = {"1 Gbit/s": ("1000mbit", "1ms", 400 << 20), "50 Mbit/s, 40 ms": ("50mbit", "40ms", 40 << 20)}


def ask(port, line, read=True):
    """Bytes that came, seconds to the first and to the last of them."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(line.encode() + b"\n")
        first, count = None, 0
        while read and (data := connection.recv(1 << 20)):
            first = first or time.monotonic() - began
            count += len(data)
        return count, first, time.monotonic() - began


class Heartbeats(threading.Thread):
    """Polls an agent over a connection of its own, as the daemon does, each 50 ms."""

    def __init__(self, ssh, agent):
        super().__init__(daemon=True)
        self.process = subprocess.Popen([*ssh, f"exec {agent} connect"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.times, self.over = [], False
        while not self.process.stdout.readline().startswith(b"GRIDCTL-AGENT"):
            pass
        self.ask({"op": "hello", "version_min": 1, "version_max": 1, "features": [], "controller": "bench"})

    def ask(self, request):
        payload = json.dumps(request).encode()
        head = b"GF\x01\x00" + struct.pack(">II", 1, len(payload))
        self.process.stdin.write(head + struct.pack(">I", zlib.crc32(head + payload)) + payload)
        self.process.stdin.flush()
        answer = self.process.stdout.read(16)
        self.process.stdout.read(struct.unpack(">I", answer[8:12])[0])

    def run(self):
        while not self.over:
            began = time.monotonic()
            self.ask({"op": "poll", "echo_ns": 0, "lease_ms": 60000, "attempts": []})
            self.times.append(time.monotonic() - began)
            time.sleep(0.05)

    def p99(self, seconds):
        self.times = []
        time.sleep(seconds)
        return sorted(self.times)[int(len(self.times) * 0.99)] * 1000


def wait_port(line):
    return int(line.rsplit(":", 1)[1])


def main():
    the_grid = grid.up(1)
    laptop = the_grid.laptop()
    laptop.register(1, None, "process")
    job = laptop.submit({"name": "server", "run": f"python3 ports.py {PORT}", "workdir": grid.WORKLOADS, "ports": [PORT]})
    job.wait_output("listening")
    facts = the_grid.facts[1]
    ssh = ["ssh", "-F", os.path.join(the_grid.environment["GRIDCTL_TESTGRID"], "ssh_config"), "-i", the_grid.key,
           f"worker@{facts['address']}"]
    forward = laptop.spawn("job", "forward", job.id, f"0:{PORT}")
    ours = wait_port(forward.stdout.readline())
    theirs = 18888
    tunnel = subprocess.Popen([ssh[0], "-N", "-L", f"127.0.0.1:{theirs}:127.0.0.1:{PORT}", *ssh[1:]])
    time.sleep(2)
    agent = the_grid.as_worker(1, "ls -t ~/.gridctl/bin/*/gridctl-agent | head -1").strip()
    beats = Heartbeats(ssh, agent)
    beats.start()
    for name, (rate, delay, size) in LINKS.items():
        the_grid.command("shape", 1, rate, delay)
        rates = {"ours": [], "ssh -L": []}
        for _ in range(3):
            for who, port in (("ours", ours), ("ssh -L", theirs)):
                count, _, seconds = ask(port, f"give {size}")
                assert count == size, (who, count)
                rates[who].append(size * 8 / seconds / 1e6)
        best = {who: max(several) for who, several in rates.items()}
        print(f"{name}: ours {best['ours']:.0f} Mbit/s, ssh -L {best['ssh -L']:.0f} Mbit/s, "
              f"ratio {best['ours'] / best['ssh -L']:.2f}", flush=True)
        firsts = {who: statistics.median(ask(port, "who")[1] for _ in range(20)) * 1000
                  for who, port in (("ours", ours), ("ssh -L", theirs))}
        print(f"{name}: first byte of a new stream, median: ours {firsts['ours']:.1f} ms, ssh -L {firsts['ssh -L']:.1f} ms",
              flush=True)
    the_grid.command("shape", 1, "50mbit", "40ms")
    print(f"heartbeat p99 at rest: {beats.p99(10):.0f} ms", flush=True)
    bulk = subprocess.Popen([*ssh, "cat /dev/zero"], stdout=subprocess.DEVNULL)
    time.sleep(3)
    alone = beats.p99(15)
    streams = [socket.create_connection(("127.0.0.1", ours), 60) for _ in range(1000)]
    over = False

    def talk():  # each says a little in turn
        while not over:
            for stream in streams:
                stream.sendall(b"x" * 64)
            time.sleep(0.2)

    for stream in streams:
        stream.sendall(b"echo\n")
        stream.setblocking(True)
    threading.Thread(target=talk, daemon=True).start()
    time.sleep(3)
    beside = beats.p99(15)
    over = True
    print(f"heartbeat p99 beside a bulk transfer: {alone:.0f} ms; with 1000 streams besides: {beside:.0f} ms, "
          f"ratio {beside / alone:.2f}", flush=True)
    for process in (bulk, tunnel, forward):
        process.terminate()


if __name__ == "__main__":
    try:
        main()
    finally:
        grid.the_grid.down()
