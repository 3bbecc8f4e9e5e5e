#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command while its descendants are paused at random, each for up to 0.2 s, as a busy machine pauses them.

What passes without this and fails with it relies on one process being quicker than another: in a test, or in the
program. Limits of a few seconds may run out as well, for what waits on many processes takes several times as long.

    tests/support/jitter.py ctest --preset release -R program_test
    sudo tests/support/jitter.py tests/integration/isolated python3 tests/integration/failover_test.py

Ends with the command's exit status. The seed repeats the draws, not the machine.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time


def descendants(root):
    """The (pid, state) of all processes below `root`, kernel's letters for states."""
    children = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append((int(name), fields[0]))
    found, left = [], [root]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += [pid for pid, _ in below]
    return found


def is_confined(pid):
    """Whether system calls are filtered: sshd's filter does not know restart_syscall, by which a wait goes on."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return "\nSeccomp:\t2\n" in file.read()
    except OSError:
        return True


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass  # it has ended


def pause_some(draws, root):
    # What a test has stopped itself stays stopped.
    running = [pid for pid, state in descendants(root) if state in "RSD" and not is_confined(pid)]
    if not running:
        return
    # Often the newest: what has just begun has not done yet what others take for granted.
    chosen = [max(running)] if draws.random() < 0.5 else draws.sample(running, min(len(running), draws.choice([1, 1, 1, 2, 3])))
    send(chosen, signal.SIGSTOP)
    try:
        time.sleep(draws.choice([0.005, 0.02, 0.05, 0.1, 0.2]))
    finally:
        send(chosen, signal.SIGCONT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("a command is needed")
    draws = random.Random(options.seed)
    with subprocess.Popen(options.command) as running:
        while running.poll() is None:
            pause_some(draws, running.pid)
            time.sleep(draws.choice([0, 0.005, 0.02]))
    print(f"paused at random with --seed {options.seed}", file=sys.stderr)
    sys.exit(running.returncode if running.returncode >= 0 else 128 - running.returncode)


if __name__ == "__main__":
    main()
