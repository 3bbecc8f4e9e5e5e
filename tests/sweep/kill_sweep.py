# SPDX-License-Identifier: Apache-2.0
"""Kills what gridctl does at every system call that has an effect, and fails every write and sync; then looks whether
the next commands find all that was acknowledged, and nothing half-done.

    tests/integration/isolated python3 tests/sweep/kill_sweep.py                     every point of every flow: hours
    tests/integration/isolated python3 tests/sweep/kill_sweep.py --flow submit       of one
    tests/integration/isolated python3 tests/sweep/kill_sweep.py --seconds 60        a sample, as in CI
    tests/integration/isolated python3 tests/sweep/kill_sweep.py --flow pull --mode kill --point 17

Points at which the same is left are visited once: effects.hpp says which calls count. --each takes all that have any
effect, and each of several alike that fail.
"""
import argparse
import itertools
import multiprocessing
import random
import sys
import time
import traceback

import flows
import flows_background
import world

FLOWS = {flow.name: flow for flow in (*flows.COMMANDS, *flows_background.FLOWS)}
COUNTED = {"kill": "kills", "tear": "tears", "eio": "errors", "full": "errors"}
DRAWN = 5          # points of one flow in a sample, before the next flow has its turn
DRAW_SECONDS = 20  # in longer samples, one point more for each so many seconds


class Worker:
    """One world, in which one flow after another is prepared."""

    def __init__(self, each):
        self.world = self.flow = None
        self.each = each

    def enter(self, name):
        if self.flow is None or self.flow.name != name:
            if self.world is None:
                self.world = world.World()
                self.world.each = self.each
            else:
                self.world.empty()
            self.flow = FLOWS[name](self.world)
            self.flow.prepare()

    def close(self):
        if self.world is not None:
            self.world.close()
        self.world = self.flow = None

    def count(self, name):
        self.enter(name)
        return self.flow.run(None)

    def visit(self, name, mode, point):
        """(hit, "" or what is broken, lost)"""
        try:
            self.enter(name)
            return self.flow.run((mode, point)).get("hit", ""), "", False
        except Exception as broken:  # whatever it is, the other points count
            hit = self.flow.report.get("hit", "") if self.flow else ""
            text = str(broken) if isinstance(broken, world.Broken) else traceback.format_exc()
            log = ""
            try:
                with open(f"{self.world.state}/daemon.log", encoding="utf-8", errors="replace") as file:
                    log = "\n--- daemon.log\n" + "".join(file.readlines()[-12:])
            except (OSError, AttributeError):
                pass
            self.close()  # what follows begins in a new world
            return hit, text + log, getattr(broken, "lost", False)


def draw(names, seed, seconds, each, results):
    """One flow after another, some points of each, until the time is over."""
    worker, chance, end = Worker(each), random.Random(seed), time.monotonic() + seconds
    try:
        for name in itertools.cycle(names):
            if time.monotonic() > end:
                break
            report = worker.count(name)
            results.put((name, "", 0, report, "", False))
            for _ in range(max(DRAWN, int(seconds / DRAW_SECONDS))):
                mode = chance.choice(FLOWS[name].modes)
                point = 1 + int(chance.random() * report.get(COUNTED[mode], 0))
                if time.monotonic() < end:
                    results.put((name, mode, point, *worker.visit(name, mode, point)))
    except world.Broken as broken:
        results.put((name, "kill", 0, "", f"without any fault: {broken}", False))
    finally:
        worker.close()
        results.put(None)


def work(tasks, each, results):
    worker = Worker(each)
    try:
        for name, mode, point in iter(tasks.get, None):
            results.put((name, mode, point, *worker.visit(name, mode, point)))
    finally:
        worker.close()
        results.put(None)


class Table:
    def __init__(self):
        self.rows = {}

    def counted(self, name, report):
        if name not in self.rows:
            self.rows[name] = {"calls": report.get("calls", 0), "points": report, "hits": {}, "lost": 0, "repairs": 0}

    def add(self, name, mode, hit, broken, lost):
        if name not in self.rows:
            self.counted(name, {})
        row = self.rows[name]
        if hit or broken:
            row["hits"][mode] = row["hits"].get(mode, 0) + 1
        row["lost"] += bool(broken) and lost
        row["repairs"] += bool(broken) and not lost

    def show(self):
        columns = ("calls", "effects", "points", "killed", "torn", "EIO", "full", "lost", "repairs")
        print(f"\n{'flow':<16}" + "".join(f"{column:>9}" for column in columns))
        for name, row in self.rows.items():
            points = row["points"]
            cells = [row["calls"], points.get("effects", 0), sum(points.get(counted, 0) for counted in COUNTED.values()),
                     *(row["hits"].get(mode, 0) for mode in COUNTED), row["lost"], row["repairs"]]
            print(f"{name:<16}" + "".join(f"{cell:>9}" for cell in cells))
        print("calls: system calls of the watched processes in a run without a fault. effects: those that change\n"
              "something outside of the process. points: to be hit, in all modes. Points hit: killed, torn (a write cut\n"
              "in half, then killed), EIO (that call alone), full (ENOSPC from there on).")

    @property
    def broken(self):
        return sum(row["lost"] + row["repairs"] for row in self.rows.values())


def points_of(table, arguments, names):
    for name in names:
        for mode in FLOWS[name].modes:
            if arguments.mode and mode not in arguments.mode.split(","):
                continue
            last = table.rows[name]["points"].get(COUNTED[mode], 0)
            points = [arguments.point] if arguments.point else range(arguments.first, last + 1, arguments.every)
            yield from ((name, mode, point) for point in points)


def follow(table, processes, results, arguments, total=0):
    """Until all of the processes have said that they are done."""
    for process in processes:
        process.start()
    running, seen, began = len(processes), 0, time.monotonic()
    while running:
        result = results.get()
        if result is None:
            running -= 1
            continue
        name, mode, point, hit, broken, lost = result
        if not mode:
            table.counted(name, hit)
            continue
        seen += 1
        table.add(name, mode, hit, broken, lost)
        if broken:
            print(f"BROKEN {name} --mode {mode} --point {point} ({hit}){' LOST' if lost else ''}\n{broken}", flush=True)
        elif arguments.verbose:
            print(f"{name} {mode} {point}: {hit or 'not reached'}", flush=True)
        if total and seen % 100 == 0:
            print(f"{seen} of {total} points, {time.monotonic() - began:.0f} s, {table.broken} broken", flush=True)
    for process in processes:
        process.join()


def sample(table, names, arguments):
    print(f"a sample of {arguments.seconds:g} s: --seed {arguments.seed}", flush=True)
    random.Random(arguments.seed).shuffle(names)
    results = multiprocessing.Queue()
    shares = [(names[n::arguments.jobs], arguments.seed + n, arguments.seconds, arguments.each, results)
              for n in range(arguments.jobs)]
    follow(table, [multiprocessing.Process(target=draw, args=share) for share in shares], results, arguments)
    if left := [name for name in names if name not in table.rows]:
        print(f"the time was over before: {', '.join(left)}")


def sweep(table, names, arguments):
    worker = Worker(arguments.each)
    for name in names:
        table.counted(name, worker.count(name))
    worker.close()
    points = list(points_of(table, arguments, names))
    tasks, results = multiprocessing.Queue(), multiprocessing.Queue()
    for point in [*points, *[None] * arguments.jobs]:
        tasks.put(point)
    share = (tasks, arguments.each, results)
    processes = [multiprocessing.Process(target=work, args=share) for _ in range(arguments.jobs)]
    follow(table, processes, results, arguments, len(points))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flow", help=f"these, by commas: {', '.join(FLOWS)}")
    parser.add_argument("--mode", help="these, by commas: kill, tear, eio, full")
    parser.add_argument("--point", type=int, help="this one alone")
    parser.add_argument("--each", action="store_true", help="also points at which the same is left as at another")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N", help="points from this one on")
    parser.add_argument("--every", type=int, default=1, metavar="K", help="each K-th point")
    parser.add_argument("--seconds", type=float, help="points drawn at random until so much time is over")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="of what is drawn")
    parser.add_argument("--jobs", type=int, default=2, help="so many worlds side by side")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    names = arguments.flow.split(",") if arguments.flow else list(FLOWS)
    table = Table()
    try:
        (sample if arguments.seconds else sweep)(table, names, arguments)
    except world.Broken as broken:
        print(f"BROKEN without any fault\n{broken}", flush=True)
        return 1
    table.show()
    return 1 if table.broken else 0


if __name__ == "__main__":
    sys.exit(main())
