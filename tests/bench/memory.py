#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures on real hosts of the testgrid (needs root) how much memory gridctl's processes take, on the laptop and on hosts,
while a checkpoint of one large file, and one of many small ones, is saved, pulled, and restored on another host whose
predecessor lost power. Prints the highest resident memory of each kind of process (the kernel's VmHWM, shared libraries
included). With --bucket, hosts put copies into a bucket of a real S3 server meanwhile.

    tests/bench/memory.py [large] [small] [--gb 20] [--files 100000] [--limit-mb 256] [--bucket]

The large one lies on disk three times: on its host, as the host's snapshot of it, and where it is pulled to or restored.
"""
import argparse
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import grid  # noqa: E402
import radosgw  # noqa: E402

LOOK = 0.1  # seconds between two looks at the processes
# Pieces of 4 MiB that differ and compress well: what is stored of them is small, what moves through memory is not.
LARGE = """import os
piece = bytearray(os.urandom(1024) * 4096)
with open("out/state.bin", "wb") as file:
    for _ in range({gb} * 1000 // 4):
        piece[:1 << 17] = os.urandom(1 << 17)
        file.write(piece)
"""
SMALL = """import os
for number in range({files}):
    if number % 1000 == 0:
        os.makedirs(f"out/{{number // 1000}}")
    with open(f"out/{{number // 1000}}/{{number}}.txt", "w") as file:
        file.write(f"sample {{number}}\\n" * (1 + number % 100))
"""


class Memory(threading.Thread):
    """Looks at all processes of ours until it is stopped."""

    def __init__(self):
        super().__init__(daemon=True)
        self.highest = {}  # of a kind of process: MiB
        self.stopped = threading.Event()
        self.start()

    def run(self):
        while not self.stopped.wait(LOOK):
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    self.look(pid)
                except OSError:
                    pass  # it has ended

    def look(self, pid):
        program = os.path.basename(os.readlink(f"/proc/{pid}/exe")).removesuffix(" (deleted)")
        if program not in ("gridctl", "gridctl-agent"):
            return
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")[1:3]
        words = [word for word in words if word and not word.startswith(("-", "/"))]
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            peak = next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
        kind = " ".join([program, *words])
        self.highest[kind] = max(self.highest.get(kind, 0), peak / 1024)

    def report(self, limit):
        self.stopped.set()
        self.join()
        for kind, peak in sorted(self.highest.items(), key=lambda one: -one[1]):
            print(f"  {kind:32} {peak:6.0f} MiB{'' if peak <= limit else ' MORE THAN WANTED'}")


def remove(folder):
    """By another process: Memory's looks would hold up each file."""
    subprocess.run(["rm", "-rf", folder], check=True)


def measure(the_grid, server, title, script, args):
    print(title, flush=True)
    laptop = the_grid.laptop("memory")
    if server:
        laptop.environment.update(server.environment())
        server.make_bucket("memory")
        laptop.run("store", "add", "cloud", "s3://memory/ckpt", "--endpoint", server.endpoint)
    for host in the_grid.hosts:
        laptop.register(host, engine="process")
    memory = Memory()
    began = time.monotonic()
    job = laptop.submit({"name": "memory", "resources": {"cpus": 0.5}, "checkpoint": {"path": "out", "copies": 2 if server else 1},
                         "recovery": {"lost_after": "10s"},
                         "run": "if [ \"$(ls out)\" ]; then echo RESTORED; else mkdir -p out\npython3 - <<'END'\n" + script +
                                "END\n: > out/.commit; fi\nwhile :; do sleep 1; done"})
    job.wait_checkpoint(1, deadline=1800)
    print(f"  saved after {time.monotonic() - began:.0f} s", flush=True)
    if server:
        copied = job.wait_event("checkpoint_copied", deadline=1800)
        print(f"  in the bucket after {time.monotonic() - began:.0f} s ({copied['text']})", flush=True)
    began = time.monotonic()
    target = os.path.join(laptop.folder, "pulled")
    laptop.run("checkpoint", "pull", job.id, target, timeout=1800)
    print(f"  pulled after {time.monotonic() - began:.0f} s", flush=True)
    if title.startswith("large"):
        remove(target)
    host = job.host()
    the_grid.kill(host)
    if title.startswith("large"):
        remove(the_grid.disk(host, "home/worker/.gridctl"))  # the next one needs the room
    began = time.monotonic()
    job.wait_output("RESTORED", deadline=1800)
    print(f"  restored elsewhere after {time.monotonic() - began:.0f} s", flush=True)
    laptop.run("job", "cancel", job.id, "--now")
    job.wait_state("CANCELLED")
    memory.report(args.limit_mb)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", nargs="*", default=["large", "small"])
    options.add_argument("--gb", type=int, default=20)
    options.add_argument("--files", type=int, default=100_000)
    options.add_argument("--limit-mb", type=int, default=256)
    options.add_argument("--bucket", action="store_true")
    args = options.parse_args()
    for title, script in ((f"large: one file of {args.gb} GB", LARGE.format(gb=args.gb)),
                          (f"small: {args.files} files", SMALL.format(files=args.files))):
        if title.split(":", maxsplit=1)[0] not in args.what:
            continue
        the_grid, server = grid.Grid(2), None
        try:
            if args.bucket:
                server = radosgw.Radosgw(the_grid.facts[1]["address"].rpartition(".")[0] + ".1")
            measure(the_grid, server, title, script, args)
        finally:
            if server:
                server.stop()
            the_grid.down()


if __name__ == "__main__":
    main()
