# SPDX-License-Identifier: Apache-2.0
# DistributedDataParallel over Gloo on any number of hosts, with the same batch on each: FULL parts, as many as hosts at
# most, which the ranks share out among themselves by $GRIDCTL_WORLD_SCALE. Data follow from step and part: losses can be
# compared whatever the size was. Rank 0 saves out/ckpt.pt.
# Environment: STEPS, PACE (seconds a step takes at least), SAVE_EVERY (steps).
import contextlib
import os
import time

import pace
import torch
import torch.distributed as dist
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "60"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "10"))
SCALE = float(os.environ["GRIDCTL_WORLD_SCALE"])

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
full = round(SCALE * world)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
truth = torch.randn(16, 4, generator=torch.Generator().manual_seed(99))

first = 1
if os.path.exists("out/ckpt.pt"):
    state = torch.load("out/ckpt.pt")
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"] + 1
if rank == 0:
    print(f"begins at step {first} with {world} of {full}", flush=True)


def loss_of(step, part):
    inputs = torch.randn(32, 16, generator=torch.Generator().manual_seed(step * 100 + part))
    return nn.functional.cross_entropy(model(inputs), (inputs @ truth).argmax(1))


def save(step):
    os.makedirs("out", exist_ok=True)
    with open("out/ckpt.pt.tmp", "wb") as file:
        torch.save({"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace("out/ckpt.pt.tmp", "out/ckpt.pt")


for step in range(first, STEPS + 1):
    optimizer.zero_grad()
    total = torch.zeros(())
    parts = list(range(rank, full, world))
    for part in parts:
        with contextlib.nullcontext() if part == parts[-1] else model.no_sync():
            loss = loss_of(step, part)
            (loss / SCALE).backward()  # the ranks' sums are divided by their number: together that is by all parts
            total += loss.detach()
    optimizer.step()
    dist.all_reduce(total)
    if rank == 0:
        print(f"step {step} loss {total.item() / full:.6f} at {time.time():.2f}", flush=True)
        if step % SAVE_EVERY == 0 or step == STEPS:
            save(step)
    pace.rest(0.1)
print("done", flush=True)
