# SPDX-License-Identifier: Apache-2.0
"""What befalls a grid, when and for how long: drawn from a seed, before anything happens."""
import dataclasses
import random

# Faults of one lane exclude each other on one host; those of different lanes may meet.
HOST = ("power", "crash", "reboot", "cut-both", "cut-in", "cut-out", "slow", "disk-full", "sshd-limits", "sshd-gone", "reset")
PROCESS = ("kill-agent", "kill-supervisor", "kill-init", "kill-program", "kill-conmon", "kill-engine",
           "stop-agent", "stop-supervisor", "stop-init", "stop-program", "stop-session")
LAPTOP = ("kill-daemon", "stop-daemon", "clock-step", "offline")
WEIGHTS = {"power": 3, "crash": 2, "reboot": 2, "cut-both": 2, "cut-in": 2, "cut-out": 2, "slow": 3, "disk-full": 2,
           "sshd-limits": 2, "sshd-gone": 2, "reset": 2,
           "kill-agent": 3, "kill-supervisor": 3, "kill-init": 2, "kill-program": 1, "kill-conmon": 1, "kill-engine": 1,
           "stop-agent": 2, "stop-supervisor": 2, "stop-init": 1, "stop-program": 1, "stop-session": 1,
           "kill-daemon": 3, "stop-daemon": 2, "clock-step": 2, "offline": 1}
SILENCING = ("power", "crash", "reboot", "cut-both", "cut-in", "cut-out", "sshd-gone")  # the host cannot be reached
EITHER = SILENCING + ("stop-agent", "stop-supervisor", "stop-init", "stop-program", "stop-session", "stop-daemon", "offline")
SMALL_DISK_HOST = 1
CLOCK_STEPS = tuple(hours * 3600 for hours in (-48, -24, -12, -6, 6, 12, 24, 48))  # any two further apart than a run is long


@dataclasses.dataclass
class Fault:
    number: int
    kind: str
    at: float     # seconds after the start of the run
    lasts: float  # seconds until it is healed; 0: it is over at once
    host: int     # 0: none, or wherever a process of the wanted kind is
    pick: float   # in [0, 1): which of the processes, which step of the clock
    # What became of it, in real seconds since the epoch.
    began: float = None
    ended: float = None
    hit: str = ""          # what was struck, in words
    attempt: tuple = None  # (job, epoch) whose process it was

    def until(self, now):
        return self.ended if self.ended is not None else now


def lane(fault):
    return "host" if fault.kind in HOST else "process" if fault.kind in PROCESS else "laptop"


def length(chance, kind, lost_after):
    """Of silences either surely too short or surely long enough to give a host up: between them there is no rule."""
    if kind in EITHER and kind != "reboot":
        return chance.uniform(0.05, 0.2) * lost_after if chance.random() < 0.5 else chance.uniform(1.5, 3) * lost_after
    if kind in ("slow", "disk-full", "sshd-limits"):
        return chance.uniform(0.5, 2) * lost_after
    return chance.uniform(0.2, 5) if kind == "kill-daemon" else 0


def draw(seed, hosts, seconds, lost_after, every):
    """The faults of a run, by their time; about one in `every` seconds. Half of the hosts can always be reached."""
    chance = random.Random(seed)
    faults, busy = [], {host: 0 for host in range(1, hosts + 1)}
    silent, laptop_busy = {}, 0
    at = chance.uniform(1, every)
    while at < seconds:
        kind = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        lasts, host, pick = length(chance, kind, lost_after), 0, chance.random()
        allowed = True
        if kind in HOST:
            free = [each for each in busy if busy[each] <= at and (kind != "disk-full" or each == SMALL_DISK_HOST)]
            allowed = bool(free)
            host = chance.choice(free) if free else 0
            if kind in SILENCING:
                allowed = allowed and sum(end > at for end in silent.values()) < hosts // 2
        elif kind in LAPTOP:
            allowed = laptop_busy <= at
        if allowed:
            faults.append(Fault(len(faults) + 1, kind, at, lasts, host, pick))
            # what was healed gets a little time, so that a short silence does not join the next
            if host:
                busy[host] = at + lasts + 0.5 * lost_after
            if kind in SILENCING:
                silent[host] = busy[host]
            if kind in LAPTOP:
                laptop_busy = at + lasts + 1
        at += chance.expovariate(1 / every) if allowed else 0.1
    return faults
