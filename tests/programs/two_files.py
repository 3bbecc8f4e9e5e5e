# SPDX-License-Identifier: Apache-2.0
"""Nobody's layout: the model, four seconds later the optimizer, six seconds later the next model. And a log.
PACE scales all of it."""
import json
import os
import time

PACE = float(os.environ.get("PACE", "0.25"))


def save(name, state):
    with open(f"out/{name}.tmp", "w") as file:
        json.dump(state, file)
    os.rename(f"out/{name}.tmp", f"out/{name}.json")
    print("saved", name, state["step"], flush=True)


os.makedirs("out", exist_ok=True)
step, value = 0, 1.0
if os.path.exists("out/model.json"):
    model, optimizer = json.load(open("out/model.json")), json.load(open("out/optimizer.json"))
    if model["step"] != optimizer["step"]:
        raise SystemExit(f"torn: model step {model['step']}, optimizer step {optimizer['step']}")
    step, value = model["step"], model["value"]
    print("resumed after step", step, flush=True)
while step < int(os.environ.get("STEPS", "16")):
    step += 1
    value = value * 1.5 % 7
    print(f"step {step} loss {value:.6f}", flush=True)
    with open("out/train.log", "a") as log:
        log.write(f"{step} {value}\n")
    save("model", {"step": step, "value": value})
    time.sleep(4 * PACE)
    save("optimizer", {"step": step, "moment": value / 2})
    time.sleep(6 * PACE)
print("done", flush=True)
