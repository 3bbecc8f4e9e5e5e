# SPDX-License-Identifier: Apache-2.0
"""Accelerate with its own save_state, into a new folder each time that is renamed when it is whole."""
import json
import os
import shutil
import time

import torch
from accelerate import Accelerator

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
steps = int(os.environ.get("STEPS", "200"))
accelerator = Accelerator(cpu=not torch.cuda.is_available())
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2))


def folders():
    names = os.listdir(FOLDER) if os.path.isdir(FOLDER) else []
    return [os.path.join(FOLDER, "step-%d" % s) for s in sorted(int(n[5:]) for n in names if n.startswith("step-"))]


def save(step):
    """Each host writes the random states of its ranks, the first one the model too."""
    path = os.path.join(FOLDER, "step-%d" % step)
    accelerator.save_state(os.path.join(FOLDER, "tmp-%d" % step))
    accelerator.wait_for_everyone()
    if accelerator.is_local_main_process:
        with open(os.path.join(FOLDER, "tmp-%d" % step, "step.json"), "w") as file:
            json.dump({"step": step}, file)
        os.replace(os.path.join(FOLDER, "tmp-%d" % step), path)
        for old in folders()[:-2]:
            shutil.rmtree(old)
    accelerator.wait_for_everyone()


def seconds_between_saves():
    try:
        with open(os.environ["GRIDCTL_CKPT_INTERVAL_FILE"]) as file:
            return float(file.read())
    except (KeyError, OSError, ValueError):
        return float(os.environ.get("GRIDCTL_CKPT_INTERVAL", "600"))


first = 0
if folders():
    first = int(folders()[-1].rsplit("-", 1)[1])
    accelerator.load_state(folders()[-1])

last = time.monotonic()
for step in range(first, steps):
    generator = torch.Generator().manual_seed(step * 1000 + accelerator.process_index)
    x = torch.randn(32, 16, generator=generator).to(accelerator.device)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    due = torch.tensor([time.monotonic() - last >= seconds_between_saves()], device=accelerator.device).int()
    if accelerator.num_processes > 1:
        torch.distributed.broadcast(due, src=0)
    if due.item():
        save(step + 1)
        last = time.monotonic()

if not folders() or not folders()[-1].endswith("step-%d" % steps):
    save(steps)
if accelerator.is_main_process:
    print("done at step %d: %.6f" % (steps, sum(p.sum().item() for p in model.parameters())), flush=True)
