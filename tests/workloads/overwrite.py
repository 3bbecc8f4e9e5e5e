# SPDX-License-Identifier: Apache-2.0
# An ordinary training script: one checkpoint file, overwritten in place, loaded when it is there.
# Environment: STEPS, PACE (seconds a step takes at least), SAVE_EVERY (steps), WIDTH (of the hidden layer).
import os

import pace
import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "200"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "20"))
WIDTH = int(os.environ.get("WIDTH", "64"))
PATH = "out/ckpt.pt"

torch.set_num_threads(1)  # the same sums in the same order, so that losses can be compared digit by digit
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
truth = torch.randn(32, 4)


def batch(step):
    inputs = torch.randn(64, 32, generator=torch.Generator().manual_seed(step))
    return inputs, (inputs @ truth).argmax(1)


first = 1
if os.path.exists(PATH):
    state = torch.load(PATH)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"] + 1
    print(f"resumed after step {state['step']}", flush=True)

os.makedirs("out", exist_ok=True)
for step in range(first, STEPS + 1):
    inputs, labels = batch(step)
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.6f}", flush=True)
    if step % SAVE_EVERY == 0 or step == STEPS:
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, PATH)
        print(f"saved step {step}", flush=True)
    pace.rest(0.05)
print("done", flush=True)
