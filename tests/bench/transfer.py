#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures on real hosts of the testgrid (needs root) how checkpoints and inputs cross slow and far links, with scp (and
rsync, where it is installed) over the same link in the same run as the peers. Bytes are those of the host's wire, of TCP and
SSH headers too.

    tests/bench/transfer.py [first] [input] [lora] [peers] [--links 100mbit/40ms,1gbit/80ms]
                            [--first-mb 256] [--base-mb 128] [--saves 3]

For each link: the first save of bytes that do not compress, as a share of the link; a start that sends such bytes to the
host; and the saves of a LoRA series, where 12 MB of fp32 change beside frozen bf16 weights.
"""
import argparse
import json
import os
import shutil
import sqlite3
import statistics
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import grid  # noqa: E402

MB = 10**6
LOOK = 0.02           # seconds between two looks at the counters
BEGUN = 256 * 1024    # bytes beyond which a transfer has begun: more than heartbeats and a login
ADAPTER = 12 * MB     # of a LoRA series: the adapter and its two Adam moments, fp32
SERIES = "tmp/series"


def weights(count, width):
    """`count` little-endian floats of `width` bytes (2: bf16, 4: fp32) whose exponents are spread like a Gaussian's."""
    shares = [0.317, 0.300, 0.191, 0.101, 0.051, 0.026, 0.014]  # of N(0, s): in [s, 4s) and halves of that downwards
    exponents = [124 - n for n, share in enumerate(shares) for _ in range(round(share * 256))]
    exponents = (exponents + [117] * 256)[:256]
    drawn, rest = os.urandom(count), os.urandom(count)

    def together(one, two):
        return (int.from_bytes(one, "little") | int.from_bytes(two, "little")).to_bytes(count, "little")

    high = together(drawn.translate(bytes(e >> 1 for e in exponents)), rest.translate(bytes(b & 0x80 for b in range(256))))
    low = together(drawn.translate(bytes((e & 1) << 7 for e in exponents)), rest.translate(bytes(b & 0x7F for b in range(256))))
    out = bytearray(count * width)
    out[width - 1::width], out[width - 2::width] = high, low
    for place in range(width - 2):
        out[place::width] = os.urandom(count)
    return bytes(out)


def safetensors(tensors):
    """tensors: (name, dtype, bytes)."""
    header, at = {}, 0
    for name, dtype, data in tensors:
        width = {"BF16": 2, "F32": 4}[dtype]
        header[name] = {"dtype": dtype, "shape": [len(data) // width], "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *(data for _, _, data in tensors)])


class Wire:
    """Samples the host's counters until it is stopped."""

    def __init__(self, the_grid, host):
        with open(os.path.join(the_grid.environment["GRIDCTL_TESTGRID"], f"h{host}", "pid"), encoding="ascii") as file:
            self.path = f"/proc/{int(file.read().split()[0])}/net/dev"
        self.samples = []  # (seconds, received, sent), from the host's point of view
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def now(self):
        with open(self.path, encoding="ascii") as file:
            words = next(line for line in file if "eth0:" in line).split(":")[1].split()
        return int(words[0]), int(words[8])

    def watch(self):
        while True:
            self.samples.append((time.monotonic(), *self.now()))
            if self.stopped.wait(LOOK):
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def moved(self, way):
        return self.samples[-1][way] - self.samples[0][way]

    def begun(self, way):
        return next(sample[0] for sample in self.samples if sample[way] - self.samples[0][way] > BEGUN)

    def ended(self, way):
        """When the last piece of bulk had passed: heartbeats go on."""
        last = self.samples[-1][way] - 64 * 1024
        return next(sample[0] for sample in self.samples if sample[way] >= last)


RECEIVED, SENT = 1, 2


class Bench:
    def __init__(self, the_grid, host, link):
        self.grid, self.host, self.link = the_grid, host, link
        rate, self.delay = link.split("/")
        self.bits = float(rate[:-4]) * {"m": 1e6, "g": 1e9}[rate[-4]]
        the_grid.command("shape", host, rate, self.delay)
        self.laptop = the_grid.laptop(link.replace("/", "-"))
        self.laptop.register(host, engine="process")
        self.measure_no_links()

    def measure_no_links(self):
        """Their bytes would be taken for ours: the day's are spent."""
        spent = json.dumps({"day": int(time.time()) // 86400, "bytes_today": 1 << 40})
        db = sqlite3.connect(os.path.join(self.laptop.state, "state.db"))
        with db:
            db.execute("INSERT OR REPLACE INTO host_reports(provider, kind, at_ms, body) VALUES(?,'network',?,?)",
                       (f"h{self.host}", int(time.time() * 1000), spent))
        db.close()

    def share(self, payload, seconds):
        rate = payload / seconds
        return f"{rate / MB:6.1f} MB/s = {rate * 8 / self.bits * 100:5.1f} % of {self.link}"

    def committed(self, job):
        db = sqlite3.connect(f"file:{self.laptop.state}/state.db?mode=ro", uri=True)
        try:
            return db.execute("SELECT count(*) FROM events WHERE job = ? AND kind = 'checkpoint'", (job.id,)).fetchone()[0]
        finally:
            db.close()

    def series_path(self, number):
        return self.grid.disk(self.host, f"{SERIES}/{number}")

    def offer(self, number, content):
        """The job copies it into its checkpoint when it is there."""
        os.makedirs(self.grid.disk(self.host, SERIES), exist_ok=True)
        with open(self.series_path(f"{number}.part"), "wb") as file:
            file.write(content)
        os.rename(self.series_path(f"{number}.part"), self.series_path(number))

    def job(self, name):
        script = ("mkdir -p out; n=1; while :; do\n"
                  f"  until [ -e /{SERIES}/$n ]; do sleep 0.05; done\n"
                  f"  rm -f out/.commit; cp /{SERIES}/$n out/{name}; : > out/.commit; n=$((n+1))\ndone")
        job = self.laptop.submit({"name": "series", "resources": {"cpus": 0.5}, "run": script,
                                  "checkpoint": {"path": "out", "interval": "1s"}, "recovery": {"lost_after": "60s"}})
        job.wait_state("RUNNING")
        return job

    def save(self, job, number, content):
        """How long its bytes crossed until it was committed, and how many bytes crossed."""
        with Wire(self.grid, self.host) as wire:
            self.offer(number, content)
            grid.wait_until(f"save {number}", 300, lambda: self.committed(job) >= number, job.evidence)
            end = time.monotonic()
        return end - wire.begun(SENT), wire.moved(SENT)

    def end(self, job):
        self.laptop.run("job", "cancel", job.id, "--now")
        job.wait_state("CANCELLED")
        shutil.rmtree(self.grid.disk(self.host, SERIES), ignore_errors=True)

    def stored(self):
        folder = os.path.join(self.laptop.state, "store", "packs")
        return sum(entry.stat().st_size for entry in os.scandir(folder)) if os.path.isdir(folder) else 0

    def first_save(self, size):
        job = self.job("state.bin")  # as safetensors it would never be whole
        seconds, moved = self.save(job, 1, os.urandom(size))
        print(f"first save of {size / MB:.0f} MB that do not compress: {self.share(size, seconds)}, {moved / size:.3f} of it moved")
        self.end(job)
        return size / seconds

    def start_with(self, size):
        folder = os.path.join(self.laptop.folder, "input")
        os.makedirs(folder)
        with open(os.path.join(folder, "data"), "wb") as file:
            file.write(os.urandom(size))
        with Wire(self.grid, self.host) as wire:
            job = self.laptop.submit({"name": "inputs", "workdir": folder, "resources": {"cpus": 0.5},
                                      "checkpoint": {"interval": "off"}, "run": "sleep 1000", "recovery": {"lost_after": "60s"}})
            job.wait_state("RUNNING", deadline=300)
        seconds = wire.ended(RECEIVED) - wire.begun(RECEIVED)
        print(f"input of {size / MB:.0f} MB that do not compress:      {self.share(size, seconds)}, "
              f"{wire.moved(RECEIVED) / size:.3f} of it moved")
        self.end(job)

    def lora(self, base, saves):
        frozen = weights(base // 2, 2)
        job = self.job("model.safetensors")
        ratios, moves, times = [], [], []
        for number in range(1, saves + 2):
            adapter = weights(ADAPTER // 4, 4)
            content = safetensors([("base", "BF16", frozen), ("adapter", "F32", adapter)])
            before = self.stored()
            seconds, moved = self.save(job, number, content)
            kept = self.stored() - before
            if number == 1:
                print(f"LoRA, first save of {len(content) / MB:.0f} MB:                 {self.share(len(content), seconds)}, "
                      f"{moved / len(content):.3f} of it moved")
            else:
                ratios.append(moved / kept)
                moves.append(moved)
                times.append(seconds)
            self.content = content
        self.end(job)
        print(f"LoRA, later saves: {ADAPTER / MB:.0f} MB change, {statistics.mean(moves) / MB:.2f} MB move: "
              f"{statistics.mean(ratios):.3f} of what the store grows by, {statistics.mean(moves) / ADAPTER:.3f} of the change, "
              f"{statistics.mean(times):.1f} s each")
        return statistics.mean(moves)

    # --- Peers, over the same link -----------------------------------------------------------------------------------

    def ssh(self):
        facts = self.grid.facts[self.host]
        known = os.path.join(self.laptop.folder, "known_hosts")
        with open(known, "w", encoding="ascii") as file:
            file.write(f"[{facts['address']}]:{facts['port']},{facts['address']} {facts['host_key']}\n")
        return ["-F", "none", "-i", self.grid.key, "-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=no",
                "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"], f"worker@{facts['address']}", facts["port"]

    def peer(self, name, command):
        with Wire(self.grid, self.host) as wire:
            began = time.monotonic()
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            seconds = time.monotonic() - began
        return seconds, wire.moved(SENT), name

    def scp(self, size):
        options, where, port = self.ssh()
        path = self.grid.disk(self.host, "tmp/peer")
        with open(path, "wb") as file:
            file.write(os.urandom(size))
        os.chmod(path, 0o644)
        target = os.path.join(self.laptop.folder, "peer")
        seconds, moved, _ = self.peer("scp", ["scp", "-q", "-P", str(port), *options, f"{where}:/tmp/peer", target])
        print(f"scp of {size / MB:.0f} MB that do not compress:        {self.share(size, seconds)}, {moved / size:.3f} of it moved")
        os.remove(path)
        return size / seconds

    def rsync(self, base):
        if shutil.which("rsync") is None:
            print("rsync is not installed")
            return
        options, where, port = self.ssh()
        shell = " ".join(["ssh", "-p", str(port), *options])
        frozen = weights(base // 2, 2)
        source, target = self.grid.disk(self.host, "tmp/peer"), os.path.join(self.laptop.folder, "rsynced")
        for number in (1, 2):
            with open(source, "wb") as file:
                file.write(safetensors([("base", "BF16", frozen), ("adapter", "F32", weights(ADAPTER // 4, 4))]))
            os.chmod(source, 0o644)
            seconds, moved, _ = self.peer("rsync", ["rsync", "-z", "--no-whole-file", "--ignore-times", "-e", shell, f"{where}:/tmp/peer", target])
        print(f"rsync -z, later save: {moved / MB:.2f} MB move: {moved / ADAPTER:.3f} of the change, {seconds:.1f} s")
        os.remove(source)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", default=["first", "input", "lora", "peers"])
    options.add_argument("--links", default="100mbit/40ms,1gbit/80ms")
    options.add_argument("--first-mb", type=int, default=256)
    options.add_argument("--base-mb", type=int, default=128)
    options.add_argument("--saves", type=int, default=3)
    args = options.parse_args()
    for link in args.links.split(","):
        the_grid = grid.Grid(1)
        try:
            bench = Bench(the_grid, 1, link)
            print(f"--- {link}", flush=True)
            ours = bench.first_save(args.first_mb * MB) if "first" in args.what else None
            if "input" in args.what:
                bench.start_with(args.first_mb * MB)
            if "lora" in args.what:
                bench.lora(args.base_mb * MB, args.saves)
            if "peers" in args.what:
                peer = bench.scp(args.first_mb * MB)
                if ours:
                    print(f"first save against scp: ratio {ours / peer:.2f}")
                bench.rsync(args.base_mb * MB)
        finally:
            the_grid.down()


if __name__ == "__main__":
    main()
