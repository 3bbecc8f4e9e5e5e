# SPDX-License-Identifier: Apache-2.0
"""What must hold of a history whatever befell the grid. Each rule gives a line for each time that it is violated."""
import re

from chaos_plan import SILENCING

POWER = ("power", "crash", "reboot")
SLACK = 3.0  # seconds between what happens and what the laptop writes down of it, on a loaded machine


def finishes(history):
    """Every job that can finish does."""
    for job in history.jobs:
        if job.shown["state"] != "SUCCEEDED":
            yield f"{job.name} is {job.shown['state']}: {job.shown.get('reason_text')}"


def right_output(history):
    """Each step had its effect exactly once, in the checkpoint and in the output."""
    for job in history.jobs:
        chain = job.chain()
        if job.shown["state"] != "SUCCEEDED":
            continue
        if job.state != chain:
            wrong = next((n for n, (is_, should) in enumerate(zip(job.state, chain)) if is_ != should), len(job.state))
            yield f"{job.name}: its last checkpoint has {len(job.state)} of {job.steps} steps, wrong from line {wrong + 1}"
        results = re.findall(r"^result (\S+)$", job.output, re.MULTILINE)
        if results != [chain[-1].split()[1]]:
            yield f"{job.name}: its output ends in {results} instead of {chain[-1].split()[1]}"
        steps = [int(step) for step in re.findall(r"^step (\d+)$", job.output, re.MULTILINE)]
        if steps != list(range(job.steps - len(steps) + 1, job.steps + 1)):
            yield f"{job.name}: the output of its last attempt has lines lost or doubled: {steps}"


def ends_once(history):
    """A final state is reached once; checkpoints are committed once, in order."""
    for job in history.jobs:
        kinds = [event["kind"] for event in job.events]
        ends = [kind for kind in kinds if kind in ("succeeded", "failed", "cancelled")]
        if ends != ["succeeded"] and job.shown["state"] == "SUCCEEDED":
            yield f"{job.name} ended as {ends}"
        numbers = [int(event["text"].split()[1]) for event in job.events if event["kind"] == "checkpoint"]
        if any(former >= latter for former, latter in zip(numbers, numbers[1:])):
            yield f"{job.name}: its checkpoints were committed as {numbers}"


def never_backwards(history):
    """No attempt begins before what an earlier one had saved when it was placed."""
    for job in history.jobs:
        begins = {note.epoch: note.step for note in history.notes if note.job == job.id and note.word == "begin"}
        order = sorted(begins)
        for former, latter in zip(order, order[1:]):
            if begins[latter] < begins[former]:
                yield f"{job.name}: epoch {former} began after step {begins[former]}, epoch {latter} after {begins[latter]}"


def gpu_held_once(history):
    """No GPU is held by two attempts: between the first and the last line of one on a GPU stands no line of another."""
    yield from history.doubles
    spans = {}
    for note in history.notes:
        if note.gpu != "-":
            span = spans.setdefault((note.host, note.gpu, note.job, note.epoch), [note.at, note.at])
            span[1] = note.at
    held = {}
    for (host, gpu, job, epoch), (since, until) in spans.items():
        held.setdefault((host, gpu), []).append((since, until, f"{job} epoch {epoch}"))
    for (host, gpu), holders in held.items():
        holders.sort()
        for former, latter in zip(holders, holders[1:]):
            if latter[0] < former[1]:
                yield f"h{host} {gpu}: {former[2]} until {former[1]:.2f}, {latter[2]} from {latter[0]:.2f}"


def nothing_left(history):
    """No container, process, lease, mount or file of any job is left on any host."""
    for host, left in history.left.items():
        for one in left:
            yield f"h{host}: {one}"


def nothing_refused_happened(history):
    """What was not accepted was not submitted, what was accepted is there."""
    names = {job.name for job in history.jobs}
    for name, why in history.refused.items():
        if name in names:
            yield f"{name} is there although its submit said: {why}"


def commands_work(history):
    """Commands end, none fails for a reason of its own, and every checkpoint verifies."""
    yield from history.problems


class Ended:
    """An attempt that did not succeed, with the times that it was placed and ended in real seconds."""

    def __init__(self, history, job, attempt):
        self.job, self.number, self.epoch = job, attempt["number"], attempt["epoch"]
        self.host = int(attempt["provider"].lstrip("h"))
        self.reason = attempt["reason"]
        mine = [event for event in job.events if event["epoch"] == self.epoch]
        placed = next(event for event in mine if event["kind"] == "placed")
        over = next((event for event in mine if event["kind"] in ("host_lost", "attempt_ended", "launch_failed")), None)
        self.since = history.real(placed["at"])
        self.until = history.real(over["at"] if over else attempt["ended_at"])
        self.text = over["text"] if over else ""

    def __str__(self):
        return f"{self.job.name} attempt {self.number} on h{self.host}: {self.reason} ({self.text[:160]})"


def overlap(fault, since, until):
    return max(0.0, min(fault.until(until), until) - max(fault.began, since))


def ground_of(history, ended):
    """The fault that cost this attempt; None when its host was there and nothing was done to it."""
    since, until = ended.since - SLACK, ended.until + SLACK
    here = [fault for fault in history.faults if fault.host == ended.host and overlap(fault, since, until) > 0
            or fault.host == ended.host and since <= fault.began <= until]
    if ended.reason == "host_lost":
        window = ended.until - ended.job.lost_after - SLACK
        silent = [fault for fault in here if fault.kind in SILENCING]
        dead = next((fault for fault in silent if fault.kind in POWER and ended.since <= fault.began <= ended.until), None)
        if dead:
            return dead  # with its host it had died, whatever was noticed first: the silence or the other boot
        total = sum(overlap(fault, window, ended.until) for fault in silent)
        return silent[-1] if total >= ended.job.lost_after / 2 else None
    kinds = {"host_rebooted": POWER, "absent": SILENCING,
             "disk_full": ("disk-full",)}.get(ended.reason)
    if kinds:
        return next((fault for fault in here if fault.kind in kinds), None)
    if ended.reason in ("vanished", "signalled", "start_failed", "exited"):
        mine = (ended.job.id, ended.epoch)
        struck = [fault for fault in here if fault.kind.startswith("kill-") and fault.attempt == mine
                  and fault.kind in ("kill-init", "kill-program", "kill-conmon", "kill-engine")]
        if ended.reason == "start_failed":
            struck += [fault for fault in here if fault.kind in ("disk-full", "power", "crash", "reboot", "kill-engine")]
        return struck[0] if struck else None
    if ended.reason == "not_started":  # nobody's fault: it never ran, and no host is blamed
        return next((fault for fault in history.faults if fault.began <= until
                     and fault.until(until) >= since - 30), None)
    return None


def no_needless_restart(history):
    """An attempt is given up only for something that was done to it or its host."""
    for job in history.jobs:
        for attempt in job.shown["attempts"]:
            if attempt["state"] in ("succeeded", "running", "starting"):
                continue
            ended = Ended(history, job, attempt)
            if ground_of(history, ended) is None:
                yield str(ended)


RULES = (finishes, right_output, ends_once, never_backwards, gpu_held_once, no_needless_restart, nothing_left,
         nothing_refused_happened, commands_work)


def violations(history):
    return [(rule.__name__.replace("_", " "), line) for rule in RULES for line in rule(history)]
