# SPDX-License-Identifier: Apache-2.0
"""A line of log five times a second, and now and then a whole state.json. SAVE_EVERY seconds, STEPS saves."""
import json
import os
import time

every = float(os.environ.get("SAVE_EVERY", "5"))
os.makedirs("out", exist_ok=True)
step = json.load(open("out/state.json"))["step"] if os.path.exists("out/state.json") else 0
while step < int(os.environ.get("STEPS", "12")):
    due = time.time() + every
    while time.time() < due:
        with open("out/train.log", "a") as log:
            log.write(f"{time.time()} step {step}\n")
        time.sleep(min(0.2, every))
    step += 1
    with open("out/state.json.tmp", "w") as file:
        json.dump({"step": step, "at": time.time()}, file)
    os.rename("out/state.json.tmp", "out/state.json")
    print(f"step {step} loss {step:.1f}", flush=True)
print("done", flush=True)
