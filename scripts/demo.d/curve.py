# SPDX-License-Identifier: Apache-2.0
"""curve.py plot|resumed|complete|seam|reference FOLDER [STEPS]: compares the loss curves of the demo's attempts.

FOLDER holds attempt-1.log, attempt-2.log and reference.log with lines "step N loss X". Ends with 0 when the claim holds.
"""
import re
import sys

ROWS, COLUMNS = 12, 72


def read(name):
    with open(f"{FOLDER}/{name}.log", errors="replace") as file:
        text = file.read()
    losses = {int(step): loss for step, loss in re.findall(r"\bstep (\d+) loss (\S+)", text)}
    resumed = re.search(r"resumed after step (\d+)", text)
    return losses, int(resumed.group(1)) if resumed else 0


def plot():
    # in logarithmic bins of the loss, since it falls fast at first
    from math import log
    every = {**first, **second}
    if not every:
        print("no step was logged")
        return False
    values = [log(max(float(loss), 1e-6)) for loss in every.values()]
    low, high, last = min(values), max(values), max(every)
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    for mark, losses in (("1", first), ("2", second)):
        for step, loss in losses.items():
            row = round((high - log(max(float(loss), 1e-6))) / ((high - low) or 1) * (ROWS - 1))
            column = (step - 1) * COLUMNS // last
            grid[row][column] = "B" if grid[row][column] not in (" ", mark) else mark
    print("loss, by attempt (B: both)")
    for row in grid:
        print("  |" + "".join(row))
    print("  +" + "-" * COLUMNS + f" step {last}")
    print(f"attempt 1: steps {min(first, default='-')} to {max(first, default='-')}, "
          f"attempt 2: resumed after step {resumed}, steps {min(second, default='-')} to {max(second, default='-')}")
    for step in sorted(set(first) & set(second))[:3]:
        print(f"  step {step}: {first[step]} in attempt 1, {second[step]} in attempt 2")
    return True


def is_resumed():
    return resumed > 0 and resumed in first and min(second, default=0) == resumed + 1


def is_complete():
    missing = [step for step in range(1, int(sys.argv[3]) + 1) if step not in first and step not in second]
    if missing:
        print("      missing:", missing[:10])
    return not missing


def same(one, other):
    wrong = [step for step in sorted(set(one) & set(other)) if one[step] != other[step]]
    for step in wrong[:5]:
        print(f"      step {step}: {one[step]} and {other[step]}")
    return not wrong


def is_reference():
    reference, _ = read("reference")
    every = {**first, **second}
    return bool(every) and set(every) == set(reference) and same(every, reference)


FOLDER = sys.argv[2]
first, _ = read("attempt-1")
second, resumed = read("attempt-2")
claims = {"plot": plot, "resumed": is_resumed, "complete": is_complete, "seam": lambda: bool(second) and same(first, second),
          "reference": is_reference}
sys.exit(0 if claims[sys.argv[1]]() else 1)
