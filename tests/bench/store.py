#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Saves series of checkpoints with gridctl's store (encrypted), borg (not encrypted), restic, rclone, rsync and zstd, all in
one run and in turns, and prints times, what is stored, and ratios. Each save is a process of its own, and durable when it
ends; so is what was restored.

    scripts/install-deps bench; scripts/mk-images; ninja -C build/release store_bench
    tests/bench/store.py [--bench build/release/tests/bench/store_bench] [--at /dev/shm] [--series lora,full,small,torch]
                         [--peers borg,restic,rclone,rsync,zstd] [--files DIR DIR…]

torch is a real run, torch_series.py. --files adds a series of directories made elsewhere. With --at on a disk the disk's own
durable write speed is measured in the same run.
"""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

SAVES = {"lora": 5, "full": 5, "small": 5, "torch": 5}
HERE = os.path.dirname(os.path.abspath(__file__))
IMAGES = os.environ.get("GRIDCTL_TEST_IMAGES", os.path.expanduser("~/.cache/gridctl-test-images"))


def size_of(path):
    """Bytes of the files below a directory."""
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(path) for name in names)


class Tool:
    """One way to keep checkpoints in a directory of its own."""

    def __init__(self, bench, where):
        self.bench = bench
        self.where = where
        self.env = dict(os.environ)
        os.makedirs(where)

    def run(self, argv, cwd=None):
        done = subprocess.run(argv, cwd=cwd, env=self.env, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(argv)}: {done.stderr}")
        return done.stdout

    def prepare(self):
        pass

    def stored(self):
        return size_of(self.where)


class Gridctl(Tool):
    def __init__(self, bench, where):
        super().__init__(bench, where)
        self.roots = []

    def save(self, source, _):
        self.roots.append(self.run([self.bench, "save", self.where, source] + self.roots[-1:]).strip())

    def restore(self, number, target):
        self.run([self.bench, "restore", self.where, self.roots[number], target])


class Borg(Tool):
    def __init__(self, bench, where):
        super().__init__(bench, where)
        self.env["BORG_BASE_DIR"] = where + ".home"
        os.makedirs(where + ".home")
        self.env["BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK"] = "yes"

    def prepare(self):
        self.run(["borg", "init", "-e", "none", self.where])

    def save(self, source, number):
        self.run(["borg", "create", "-C", "zstd,1", f"{self.where}::{number}", "."], cwd=source)

    def restore(self, number, target):
        os.makedirs(target)
        self.run(["borg", "extract", f"{self.where}::{number}"], cwd=target)


class Restic(Tool):
    def __init__(self, bench, where):
        super().__init__(bench, where)
        self.env.update(RESTIC_PASSWORD="bench", RESTIC_REPOSITORY=where, RESTIC_CACHE_DIR=where + ".cache")
        self.ids = []

    def prepare(self):
        self.run(["restic", "init", "-q"])

    def save(self, source, _):
        self.run(["restic", "backup", "-q", "--ignore-inode", "."], cwd=source)
        self.ids.append("latest")

    def restore(self, number, target):
        self.run(["restic", "restore", "-q", self.ids[number], "--target", target])


class Zstd(Tool):
    def save(self, source, number):
        archive = os.path.join(self.where, f"{number}.tar.zst")
        self.run(["bash", "-c", f"tar -C {source} -cf - . | zstd -q -1 -T2 -o {archive}"])
        fd = os.open(archive, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)

    def restore(self, number, target):
        os.makedirs(target)
        self.run(["bash", "-c", f"zstd -q -dc {self.where}/{number}.tar.zst | tar -C {target} -xf -"])


class Rclone(Tool):
    """A copy of everything for each save."""

    def save(self, source, number):
        self.run(["rclone", "copy", source, os.path.join(self.where, str(number))])
        self.run(["sync", "-f", self.where])

    def restore(self, number, target):
        self.run(["rclone", "copy", os.path.join(self.where, str(number)), target])


class Rsync(Tool):
    """Files that have not changed are linked to those of the save before."""

    def save(self, source, number):
        base = [f"--link-dest={self.where}/{number - 1}"] if number else []
        self.run(["rsync", "-a", "--checksum", "--fsync", *base, source + "/", os.path.join(self.where, str(number))])

    def restore(self, number, target):
        self.run(["rsync", "-a", "--fsync", os.path.join(self.where, str(number)) + "/", target])

    def stored(self):
        return int(self.run(["du", "-sb", self.where]).split()[0])


TOOLS = {"gridctl": Gridctl, "borg": Borg, "restic": Restic, "rclone": Rclone, "rsync": Rsync, "zstd": Zstd}


def warm_memory(where, megabytes=1536):
    """A virtual machine may have given its free memory back, and gets it again page by page, eight times slower than it
    is filled: whoever comes first would pay for that. Used for a file before each step, it is memory for all alike."""
    path = os.path.join(where, "warm")
    with open(path, "wb") as file:
        os.unlink(path)  # nothing of it need go to a disk
        for _ in range(megabytes // 4):
            file.write(bytes(4 << 20))


def timed(where, work):
    warm_memory(where)
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def processor_seconds():
    """Of all children so far: what other programs on the machine do not lengthen much."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def equal(one, other):
    return subprocess.run(["diff", "-rq", one, other], stdout=subprocess.DEVNULL, check=False).returncode == 0


def write_speed(where, megabytes=512):
    """Bytes a second of plain writes that end durable."""
    path = os.path.join(where, "plain")
    block = os.urandom(4 << 20)

    def write():
        with open(path, "wb") as file:
            for _ in range(megabytes // 4):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
    took = timed(where, write)
    os.remove(path)
    return megabytes * (1 << 20) / took


def measure(args, series, make, saves, folder):
    """All tools take each save before the next is made: what disturbs one of them disturbs all."""
    tools = {name: TOOLS[name](args.bench, os.path.join(folder, name)) for name in ["gridctl"] + args.peers}
    for tool in tools.values():
        tool.prepare()
    times = {name: [] for name in tools}
    busy = dict.fromkeys(tools, 0.0)
    raw, source = 0, None
    for number in range(saves):
        source = make(number)
        raw += size_of(source)
        subprocess.run(["cat"] + [os.path.join(at, name) for at, _, names in os.walk(source) for name in names],
                       stdout=subprocess.DEVNULL, check=True)  # all begin with warm files
        order = list(tools)[number % len(tools):] + list(tools)[:number % len(tools)]
        for name in order:
            before = processor_seconds()
            times[name].append(timed(folder, lambda tool=tools[name]: tool.save(source, number)))
            busy[name] += processor_seconds() - before
        if number + 1 < saves and series != "files":
            shutil.rmtree(source)
    report(series, raw, times, busy, tools, saves, source, folder)


def restore_durably(tool, number, target):
    """Some tools see to it themselves; then there is nothing left to do."""
    tool.restore(number, target)
    tool.run(["sync", "-f", target])


def report(series, raw, times, busy, tools, saves, source, folder):
    print(f"\n{series}: {saves} saves, {raw / 1e6:.0f} MB", flush=True)
    ours = {}
    for name, tool in tools.items():
        target = os.path.join(folder, "out")
        os.sync()  # what others have left to be written is nobody's
        restored = timed(folder, lambda tool=tool: restore_durably(tool, saves - 1, target))
        same = equal(source, target)
        shutil.rmtree(target)
        figures = {"all": sum(times[name]), "later": sum(times[name][1:]), "restore": restored,
                   "stored": tool.stored() / raw, "busy": busy[name]}
        if name == "gridctl":
            ours = figures
        line = (f"  {name:8} saves {' '.join(f'{t:.2f}' for t in times[name])} = {figures['all']:.2f} s ({figures['busy']:.2f} s of "
                f"processor), "
                f"stored {figures['stored']:.4f} of raw, restore {restored:.2f} s{'' if same else ' DIFFERENT'}")
        if name != "gridctl":
            line += (f"  | gridctl is {figures['all'] / ours['all']:.2f}x over all, "
                     f"{figures['later'] / ours['later']:.2f}x from the second save on, "
                     f"{figures['busy'] / ours['busy']:.2f}x by processor time, "
                     f"{figures['restore'] / ours['restore']:.2f}x at restoring")
        print(line, flush=True)


class Torch:
    """All saves of torch_series.py, made at once in the image for it."""

    def __init__(self, work):
        self.folder = os.path.join(work, "trained")
        os.makedirs(self.folder)
        podman = ["podman", "--root", os.path.join(work, "podman"), "--runroot", os.path.join(work, "podman.run"),
                  "--storage-opt", f"additionalimagestore={IMAGES}/store"]

        def call(*words):
            return subprocess.run([*podman, *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True).stdout.strip()
        container = call("create", "localhost/torch:cpu", "true")
        try:
            root = call("mount", container)
            with open(os.path.join(HERE, "torch_series.py"), "rb") as script:
                subprocess.run(["unshare", "--mount", "sh", "-c",
                                f"mount --bind {self.folder} {root}/mnt && mount -t proc proc {root}/proc && "
                                f"exec chroot {root} python3 - /mnt {SAVES['torch']}"], stdin=script, check=True)
        finally:
            call("rm", "--force", container)

    def __call__(self, number):
        return os.path.join(self.folder, str(number))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(HERE, "../../build/release/tests/bench/store_bench"))
    parser.add_argument("--at", default="/dev/shm")
    parser.add_argument("--series", default="lora,full,small,torch")
    parser.add_argument("--peers", default="borg,restic,rclone,rsync,zstd")
    parser.add_argument("--files", nargs="+", default=[])
    args = parser.parse_args()
    args.bench = os.path.abspath(args.bench)
    args.peers = [name for name in args.peers.split(",") if name and (shutil.which(name) or sys.exit(f"no {name}"))]
    work = tempfile.mkdtemp(prefix="store-bench-", dir=args.at)
    try:
        if subprocess.run(["stat", "-fc", "%T", args.at], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip() != "tmpfs":
            print(f"the disk's own durable writes: {write_speed(work) / 1e6:.0f} MB/s")
        for series in [name for name in args.series.split(",") if name]:
            def make(number, kind=series):
                source = os.path.join(work, "source")
                subprocess.run([args.bench, "make", kind, str(number), source], check=True)
                return source
            if series == "torch":
                make = Torch(work)
            folder = os.path.join(work, series)
            os.makedirs(folder)
            measure(args, series, make, SAVES[series], folder)
            shutil.rmtree(os.path.join(work, "source"), ignore_errors=True)
            shutil.rmtree(folder)
        if args.files:
            folder = os.path.join(work, "files")
            os.makedirs(folder)
            measure(args, "files", lambda number: args.files[number], len(args.files), folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
