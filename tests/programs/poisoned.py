# SPDX-License-Identifier: Apache-2.0
"""Counts to STEPS and saves each step. At POISON it saves a state of which the file is valid, but that it cannot load:
it works on from it without harm, and fails when it is restored from it."""
import json
import os
import sys
import time

os.makedirs("out", exist_ok=True)
step = 0
if os.path.exists("out/state.json"):
    with open("out/state.json", encoding="utf-8") as file:
        state = json.load(file)
    print("restored", state, flush=True)
    step = state["step"]
    _ = 1 / state["scale"]
for step in range(step + 1, int(os.environ["STEPS"]) + 1):
    poisoned = step == int(os.environ["POISON"]) and os.environ["GRIDCTL_ATTEMPT"] == "1"
    with open("out/new", "w", encoding="utf-8") as file:
        json.dump({"step": step, "scale": 0 if poisoned else 1}, file)
    os.replace("out/new", "out/state.json")
    print("step", step, flush=True)
    time.sleep(float(os.environ["PACE"]))
    if poisoned:
        time.sleep(600)
