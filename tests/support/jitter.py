#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command while its descendants are paused at random, each for up to 0.2 s, as a busy machine pauses them.

What passes without this and fails with it relies on one process being quicker than another: in a test, or in the
program. Limits of a few seconds may run out as well, for what waits on many processes takes several times as long; and
what a test stops by itself may go on.

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


# They stop themselves when their child is stopped, for a shell to notice.
STOP_WITH_THEIR_CHILD = ("nsenter", "unshare", "su", "sudo", "runuser")


def descendants(root):
    """The (pid, state, comm of the parent) of all processes below `root`, with the kernel's letters for states."""
    children, names = {}, {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                head, _, rest = file.read().rpartition(")")
        except OSError:
            continue
        fields, names[int(name)] = rest.split(), head.partition("(")[2]
        children.setdefault(int(fields[1]), []).append((int(name), fields[0]))
    found, left = [], [root]
    while left:
        parent = left.pop()
        below = children.get(parent, [])
        found += [(pid, state, names.get(parent, "")) for pid, state in below]
        left += [pid for pid, _ in below]
    return found


def filters(pid):
    """How many filters its system calls pass."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return int(next((line.split()[1] for line in file if line.startswith("Seccomp_filters:")), "0"))
    except OSError:
        return 1 << 30  # it has ended


def is_confined(pid):
    """Whether it may do less than we: sshd's filter does not know restart_syscall, by which a wait goes on."""
    return filters(pid) > filters("self")


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass  # it has ended


def pause_some(draws, root):
    # What a test has stopped itself stays stopped.
    running = [pid for pid, state, parent in descendants(root)
               if state in "RSD" and parent not in STOP_WITH_THEIR_CHILD and not is_confined(pid)]
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
