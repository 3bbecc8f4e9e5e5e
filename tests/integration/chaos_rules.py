# SPDX-License-Identifier: Apache-2.0
"""What must hold of a history whatever befell the grid. Each rule gives a line for each time that it is violated."""
import os
import re

from chaos_plan import LAPTOP, SILENCING

POWER = ("power", "crash", "reboot")
SLACK = 3.0  # seconds between what happens and what the laptop writes down of it, on a loaded machine
NO_SPACE = re.compile(r"\n\[gridctl: (\d+) bytes of output lost: the host's disk was full\]\n")


def finishes(history):
    """Every job that can finish does."""
    if not history.jobs:
        yield "no job was ever accepted"
    for job in history.jobs:
        if job.shown["state"] != "SUCCEEDED":
            yield f"{job.name} is {job.shown['state']}: {job.shown.get('reason_text')}"


def right_result(history):
    """Each step had its effect exactly once in what the job has made."""
    for job in history.jobs:
        chain = job.chain()
        if job.shown["state"] == "SUCCEEDED" and job.state != chain:
            wrong = next((n for n, (is_, should) in enumerate(zip(job.state, chain)) if is_ != should), len(job.state))
            yield f"{job.name}: its last checkpoint has {len(job.state)} of {job.steps} steps, wrong from line {wrong + 1}"


def fault_in(should, output, whole):
    """What is wrong with this output of a program that should have printed that, or None. Unless it is to be whole its
    end may lack. What else lacks must be told as lost for want of space."""
    if not whole:
        output = output[:output.rfind("\n") + 1]
    parts = NO_SPACE.split(re.sub(r"^cannot save step \d+\n", "", output, flags=re.MULTILINE)) + ["0"]
    at = room = 0
    for part, lost in zip(parts[::2], parts[1::2]):
        if part:
            found = should.find(part, at, at + room + len(part))
            if found < 0:
                same = len(os.path.commonprefix([should[at:], part]))
                return f"after {should[:at + same][-20:]!r} comes {part[same:same + 30]!r}, not {should[at + same:at + same + 30]!r}"
            at, room = found + len(part), 0
        room += int(lost)
    return f"its end {should[at:][-30:]!r} is missing" if whole and at + room < len(should) else None


def right_output(history):
    """All that a program printed up to its end is in its output, once and in order; of one that was ended, the beginning."""
    notes = history.notes_of_attempts()
    for job in history.jobs:
        for attempt in job.shown["attempts"]:
            output = job.outputs.get(attempt["number"], "")
            resumed = re.match(r"resumed after step (\d+)\n", output)
            begins = [note.step for note in notes.get((job.id, attempt["epoch"]), []) if note.word == "begin"]
            begin = begins[0] if begins else int(resumed[1]) if resumed else 0
            wrong = fault_in(job.text(begin), output, attempt["state"] == "succeeded")
            if wrong:
                yield f"{job.name} attempt {attempt['number']}: in its output {wrong}"


def stored_until(history, notes):
    """The time until which what this attempt printed must have been stored. What is in the pipe when the power goes, or
    when its program is killed while no supervisor reads, nobody can keep; nor what finds no space."""
    first, last = (history.booted + notes[end].at for end in (0, -1))
    ends = [fault.began for fault in history.faults if fault.began <= last + SLACK and (
        fault.attempt == (notes[0].job, notes[0].epoch) and fault.kind.endswith("-supervisor")
        or fault.host == notes[0].host and (fault.kind in POWER and fault.began >= first
                                            or fault.kind == "disk-full" and fault.until(last) >= first))]
    return min(ends) - SLACK if ends else last


def keeps_output(history):
    """What a program printed while its host had power and its supervisor ran is kept, also when the attempt is lost."""
    notes = history.notes_of_attempts()
    for job in history.jobs:
        for attempt in job.shown["attempts"]:
            mine = notes.get((job.id, attempt["epoch"]), [])
            until = stored_until(history, mine) if mine else 0
            stored = [note.step for note in mine if note.word == "step" and history.booted + note.at <= until]
            output = job.outputs.get(attempt["number"], "")
            if len(stored) > 1 and f"step {stored[-2]}\n" not in output:  # the last was noted, perhaps not printed
                yield f"{job.name} attempt {attempt['number']}: step {stored[-2]} is not in its output, which ends in {output[-30:]!r}"


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
    """An attempt begins from the newest checkpoint that is safe, and none before where an earlier one began."""
    for job in history.jobs:
        newest = "from the beginning"
        for event in job.events:
            if event["kind"] == "checkpoint":
                newest = f"from checkpoint {event['text'].split()[1]}"
            elif event["kind"] == "placed" and f", {newest}:" not in event["text"]:
                yield f"{job.name}: not {newest}: {event['text'].splitlines()[0][:150]}"
        begins = {note.epoch: note.step for note in history.notes if note.job == job.id and note.word == "begin"}
        order = sorted(begins)
        for former, latter in zip(order, order[1:]):
            if begins[latter] < begins[former]:
                yield f"{job.name}: epoch {former} began after step {begins[former]}, epoch {latter} after {begins[latter]}"


def gpu_held_once(history):
    """No GPU is held by two attempts: between the first and the last line of one on a GPU stands no line of another."""
    yield from history.doubles
    if not history.sights and any(note.gpu != "-" for note in history.notes):
        yield "programs held GPUs, and the watch never saw one"
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
    """What was not accepted was not submitted."""
    for name, why in history.refused.items():
        if name in history.listed:
            yield f"{name} is there although its submit said: {why}"


def commands_work(history):
    """Commands end, none fails for a reason of its own, every checkpoint verifies; and the faults are really done."""
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
            struck += [fault for fault in here if fault.kind in POWER + ("disk-full", "kill-engine")]
        if ended.reason == "vanished":  # the job's first process may find no block for its first file
            struck += [fault for fault in here if fault.kind == "disk-full"]
        return struck[0] if struck else None
    if ended.reason == "not_started":  # it never ran, and no host is blamed: something was in the way to this one
        return next((fault for fault in history.faults if (fault.host == ended.host or fault.kind in LAPTOP)
                     and fault.began <= until and fault.until(until) >= since - 30), None)
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


RULES = (finishes, right_result, right_output, keeps_output, ends_once, never_backwards, gpu_held_once, no_needless_restart, nothing_left,
         nothing_refused_happened, commands_work)


def violations(history):
    return [(rule.__name__.replace("_", " "), line) for rule in RULES for line in rule(history)]
