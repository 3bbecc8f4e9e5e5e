#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what README.md claims and writes the table there, with machine, date and commit.

    scripts/install-deps bench; ninja -C build/release store_bench
    tests/bench/figures.py [--bench build/release/tests/bench/store_bench] [--gridctl build/release/cmd/gridctl]
                           [--packages VENV/lib/python3.11/site-packages] [--write]

Storing: a series of LoRA checkpoints and one of full fine-tuning, by gridctl (encrypted) and its peers, as store.py does.
Processor time is told, which other programs on the machine do not lengthen much. Recovery: on the testgrid, from the loss
of a host until the program runs again; needs root, by tests/integration/isolated. With --packages, a training on two hosts
beside torchrun and Slurm, as gangs.py does.
"""
import argparse
import datetime
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(HERE, "..", "integration")]
import store  # noqa: E402  (beside this file)

SERIES = {"lora": "5 LoRA checkpoints", "full": "5 checkpoints of full fine-tuning"}
PEERS = ("borg", "restic", "rclone", "zstd")
MARKS = re.compile(r"(<!-- figures: [^>]*-->\n)(.*?)(\n## What it does not)", re.DOTALL)
LOST_AFTER = 10


def processor(work):
    before = store.processor_seconds()
    work()
    return store.processor_seconds() - before


def storing(bench, kind, work):
    """Rows: tool, share of the bytes that is stored, processor seconds of all saves and of one restore."""
    folder = os.path.join(work, kind)
    os.makedirs(folder)
    tools = {name: store.TOOLS[name](bench, os.path.join(folder, name))
             for name in ("gridctl", *PEERS) if name == "gridctl" or shutil.which(name)}
    for tool in tools.values():
        tool.prepare()
    saved, raw, source = dict.fromkeys(tools, 0.0), 0, os.path.join(work, "source")
    for number in range(store.SAVES[kind]):
        shutil.rmtree(source, ignore_errors=True)
        subprocess.run([bench, "make", kind, str(number), source], check=True)
        raw += store.size_of(source)
        for name, tool in tools.items():
            saved[name] += processor(lambda tool=tool: tool.save(source, number))
    rows = []
    for name, tool in tools.items():
        target = os.path.join(folder, "out")
        restored = processor(lambda tool=tool: tool.restore(store.SAVES[kind] - 1, target))
        if not store.equal(source, target):
            sys.exit(f"{name} restored something else")
        shutil.rmtree(target)
        rows.append((name, tool.stored() / raw, saved[name], restored))
    shutil.rmtree(folder)
    return raw, rows


def recovery(gridctl):
    """Seconds until the program runs again: after silence, and after a reboot, which proves death."""
    os.environ["GRIDCTL"] = os.path.abspath(gridctl)
    import grid
    the_grid = grid.Grid(2)
    try:
        laptop = the_grid.laptop()
        for host in the_grid.hosts:
            laptop.register(host)
        found = {}
        for name, strike in (("silence", the_grid.kill), ("reboot", the_grid.reboot)):
            job = laptop.submit(grid.plain(name, envs={"STEPS": 400}, recovery={"lost_after": f"{LOST_AFTER}s"}))
            job.wait_checkpoint(2)
            host = job.host()
            begin = datetime.datetime.now(datetime.timezone.utc).timestamp()
            strike(host)
            job.wait_attempt(2)
            found[name] = grid.iso(job.attempts()[1]["started_at"]) - begin
            laptop.run("job", "cancel", job.id, "--now", "--wait", timeout=60)
            the_grid.heal_all()
        return found
    finally:
        the_grid.down()


def gangs(packages, patience):
    """Rows: who, seconds until the next step after one of two hosts lost power, and after one of two ranks was killed."""
    import gangs as bench
    import grid
    the_grid = grid.Grid(4)
    try:
        return bench.loss(the_grid, packages, patience, rounds=3)
    finally:
        the_grid.down()


def bags(gridctl):
    """Rows: what of bags was measured, and the median."""
    def told_by(script, *words):
        return subprocess.run([sys.executable, os.path.join(HERE, script), *words], env=dict(os.environ, GRIDCTL=gridctl), check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    rate = told_by("bags.py", "--agent", os.path.join(os.path.dirname(gridctl), "..", "bin", "gridctl-agent"), "--parallel")
    rows = [("10,000 × `true`: rate of a worker, in that of a loop in C with the same duties",
             re.search(r"median ratio to the loop (\S+)", rate).group(1)),
            ("the same, in that of GNU parallel on the same machine", statistics.median(map(int, re.findall(r"we are (\d+) times", rate))))]
    for what, times in re.findall(r"FIGURE (array of ten × .*?), s beyond .*?: \[(.*?)\]", told_by("bag_hosts.py", "small")):
        rows.append((f"{what}: time of the whole beyond that of its tasks", f"{statistics.median(map(float, times.split(', '))):.1f} s"))
    return rows


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*:\s*(.*)", file.read())
    commit = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True,
                            check=False).stdout.strip()
    return (f"{model.group(1) if model else os.uname().machine}, {os.cpu_count()} cores, "
            f"{datetime.date.today().isoformat()}, commit {commit or 'unknown'}")


def table(bench, gridctl, packages, work):
    lines = [f"Measured by [tests/bench/figures.py](tests/bench/figures.py) on {machine()}.", ""]
    lines += ["| checkpoints | tool | stored | CPU time to save | CPU time to restore one |", "|---|---|---|---|---|"]
    for kind, what in SERIES.items():
        raw, rows = storing(bench, kind, work)
        for name, share, saved, restored in rows:
            shown = f"**{name}**, encrypted" if name == "gridctl" else name
            lines.append(f"| {what}, {raw / 1e6:.0f} MB | {shown} | {share:.1%} | {saved:.1f} s | {restored:.1f} s |")
    if gridctl:
        found = recovery(gridctl)
        lines += ["", f"| a host is lost, `lost_after: {LOST_AFTER}s` | program runs again after |", "|---|---|",
                  f"| power loss: silence | {found['silence']:.1f} s |",
                  f"| reboot: proof of death | {found['reboot']:.1f} s |"]
        lines += ["", "| bags of tasks | |", "|---|---|"] + [f"| {what} | {value} |" for what, value in bags(gridctl)]
    if packages:
        patience = 200

        def shown(value):
            return f"{value:.1f} s" if value else f"not within {patience} s"

        lines += ["", "| two ranks of PyTorch on two hosts: next training step after | a host lost power (10 s of silence) | a rank was killed |",
                  "|---|---|---|"]
        lines += [f"| {'**gridctl**' if name == 'gridctl' else name} | {shown(row['host'])} | {shown(row['rank'])} |"
                  for name, row in gangs(packages, patience)]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(SOURCE, "build/release/tests/bench/store_bench"))
    parser.add_argument("--gridctl", default="", help="measure recovery, too, with this program")
    parser.add_argument("--packages", default="", help="a folder with torch: measure a training on two hosts, too")
    parser.add_argument("--at", default="/dev/shm")
    parser.add_argument("--write", action="store_true", help="into README.md")
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="figures-", dir=args.at)
    try:
        text = table(os.path.abspath(args.bench), args.gridctl, args.packages, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(text)
    if args.write:
        readme = os.path.join(SOURCE, "README.md")
        with open(readme, encoding="utf-8") as file:
            content = file.read()
        with open(readme, "w", encoding="utf-8") as file:
            file.write(MARKS.sub(lambda match: match.group(1) + "\n## Figures\n\n" + text + match.group(3), content, count=1))


if __name__ == "__main__":
    main()
