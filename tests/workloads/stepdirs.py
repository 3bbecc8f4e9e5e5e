# SPDX-License-Identifier: Apache-2.0
# An ordinary training script: each checkpoint is a new folder out/step-N of several files, the oldest are removed.
# Environment: STEPS, PACE (seconds a step takes at least), SAVE_EVERY (steps), KEEP (folders), WIDTH (of the hidden layer).
import json
import os
import shutil

import pace
import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "200"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "20"))
KEEP = int(os.environ.get("KEEP", "3"))
WIDTH = int(os.environ.get("WIDTH", "64"))

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
truth = torch.randn(32, 4)


def batch(step):
    inputs = torch.randn(64, 32, generator=torch.Generator().manual_seed(step))
    return inputs, (inputs @ truth).argmax(1)


def saved_steps():
    return sorted(int(name[5:]) for name in os.listdir("out") if name.startswith("step-"))


os.makedirs("out", exist_ok=True)
first = 1
if saved_steps():
    folder = f"out/step-{saved_steps()[-1]}"
    model.load_state_dict(torch.load(f"{folder}/model.pt"))
    optimizer.load_state_dict(torch.load(f"{folder}/optim.pt"))
    with open(f"{folder}/meta.json") as file:
        meta = json.load(file)
    first = meta["step"] + 1
    print(f"resumed after step {meta['step']}", flush=True)

for step in range(first, STEPS + 1):
    inputs, labels = batch(step)
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.6f}", flush=True)
    if step % SAVE_EVERY == 0 or step == STEPS:
        folder = f"out/step-{step}"
        os.makedirs(folder, exist_ok=True)
        torch.save(model.state_dict(), f"{folder}/model.pt")
        torch.save(optimizer.state_dict(), f"{folder}/optim.pt")
        with open(f"{folder}/meta.json", "w") as file:
            json.dump({"step": step, "loss": loss.item()}, file)
        for old in saved_steps()[:-KEEP]:
            shutil.rmtree(f"out/step-{old}")
        print(f"saved step {step}", flush=True)
    pace.rest(0.05)
print("done", flush=True)
