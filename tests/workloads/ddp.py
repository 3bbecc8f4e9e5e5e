# SPDX-License-Identifier: Apache-2.0
# DistributedDataParallel over Gloo, by the variables of torchrun. Rank 0 saves out/ckpt.pt; SHARDS=1: every rank saves
# out/step-N/rank_R.pt and refuses another rank's. Data follow from step and rank: losses can be compared digit by digit.
# Environment: STEPS, PACE (seconds a step takes at least), SAVE_EVERY (steps), SHARDS, BUSY (products of matrices in each
# step, whose time every rank tells).
import json
import os
import shutil
import time

import pace
import torch
import torch.distributed as dist
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "60"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "10"))
SHARDS = os.environ.get("SHARDS") == "1"
BUSY = int(os.environ.get("BUSY", "0"))

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
truth = torch.randn(16, 4, generator=torch.Generator().manual_seed(99))


def path_of(step):
    return f"out/step-{step}/rank_{rank}.pt" if SHARDS else "out/ckpt.pt"


def newest():
    if not SHARDS:
        return "out/ckpt.pt" if os.path.exists("out/ckpt.pt") else None
    steps = sorted(int(name[5:]) for name in os.listdir("out") if name.startswith("step-")) if os.path.isdir("out") else []
    return path_of(steps[-1]) if steps else None


def save(step):
    if not SHARDS and rank != 0:
        return
    path = path_of(step)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".tmp", "wb") as file:
        torch.save({"step": step, "rank": rank, "model": model.module.state_dict(),
                    "optimizer": optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".tmp", path)
    if SHARDS and step > SAVE_EVERY and int(os.environ["LOCAL_RANK"]) == 0:
        shutil.rmtree(f"out/step-{step - 2 * SAVE_EVERY}", ignore_errors=True)


def work(step):
    matrix, began = torch.ones(200, 200), time.monotonic()
    for _ in range(BUSY):
        matrix = (matrix @ matrix).clamp(0, 1)
    with open(os.environ["GRIDCTL_METRICS"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"step": step, "rank": rank, "step_s": time.monotonic() - began}) + "\n")


first = 1
if newest():
    state = torch.load(newest())
    assert not SHARDS or state["rank"] == rank, f"rank {rank} was given the file of rank {state['rank']}"
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"] + 1
    print(f"resumed after step {state['step']}", flush=True)

for step in range(first, STEPS + 1):
    if BUSY:
        work(step)
    inputs = torch.randn(32, 16, generator=torch.Generator().manual_seed(step * 100 + rank))
    loss = nn.functional.cross_entropy(model(inputs), (inputs @ truth).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print(f"step {step} loss {total.item() / world:.6f}", flush=True)
    if step % SAVE_EVERY == 0 or step == STEPS:
        save(step)
    pace.rest(0.1)
print("done", flush=True)
