# SPDX-License-Identifier: Apache-2.0
# A training script with a slow disk: the one checkpoint file is written in place, part by part, so that whatever
# kills it can hit it while it writes. A torn checkpoint that comes back makes it end with 3.
# Environment: STEPS, PACE (seconds a step takes at least), SAVE_EVERY (steps), WIDTH (of the hidden layer),
# WRITE_SECONDS (one checkpoint), PARTS (of one checkpoint), DIE_AT (the step whose checkpoint a run that began
# afresh leaves half written, killing itself; 0 for none).
import io
import os
import signal
import sys
import time

import pace
import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "100"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "20"))
WIDTH = int(os.environ.get("WIDTH", "1024"))
WRITE_SECONDS = float(os.environ.get("WRITE_SECONDS", "2"))
PARTS = int(os.environ.get("PARTS", "20"))
DIE_AT = int(os.environ.get("DIE_AT", "0"))
PATH = "out/ckpt.pt"

torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
truth = torch.randn(32, 4)


def batch(step):
    inputs = torch.randn(64, 32, generator=torch.Generator().manual_seed(step))
    return inputs, (inputs @ truth).argmax(1)


def save_slowly(step, die):
    buffer = io.BytesIO()
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    data = buffer.getvalue()
    size = -(-len(data) // PARTS)
    print(f"writing step {step}", flush=True)
    with open(PATH, "wb") as file:
        for part in range(PARTS):
            file.write(data[part * size:(part + 1) * size])
            file.flush()
            os.fsync(file.fileno())
            if die and part >= PARTS // 2:
                print(f"dying in the checkpoint of step {step}", flush=True)
                # PID 1 of a container ignores its own SIGKILL; an abrupt end by exit status is the same to others
                os.kill(os.getpid(), signal.SIGKILL)
                os._exit(137)
            time.sleep(WRITE_SECONDS / PARTS)
    print(f"saved step {step}", flush=True)


first = 1
if os.path.exists(PATH):
    try:
        state = torch.load(PATH)
    except Exception as error:
        print(f"torn checkpoint: {error}", flush=True)
        sys.exit(3)
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
        save_slowly(step, die=first == 1 and step == DIE_AT)
    pace.rest(0.05)
print("done", flush=True)
