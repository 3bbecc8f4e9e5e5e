# SPDX-License-Identifier: Apache-2.0
"""Yours: model, data, loss. What gridctl needs stands in the lines with gridctl_save."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gridctl_save

steps = int(os.environ.get("STEPS", "200"))
cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
if cuda:
    torch.cuda.set_device(local)
device = torch.device("cuda", local) if cuda else torch.device("cpu")

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
model = DistributedDataParallel(model, device_ids=[local] if cuda else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 50, 0.5)
step = gridctl_save.load(model, optimizer, scheduler)

for step in range(step, steps):
    # By step and rank, not by what was drawn before: the same data after a restart.
    generator = torch.Generator().manual_seed(step * 1000 + rank)
    x = torch.randn(32, 16, generator=generator).to(device)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    gridctl_save.computed()
    loss.backward()
    optimizer.step()
    scheduler.step()
    gridctl_save.progress(step + 1, loss=loss.item())
    if gridctl_save.due():
        gridctl_save.save(step + 1, model, optimizer, scheduler)

gridctl_save.save(steps, model, optimizer, scheduler)
if rank == 0:
    print("done at step %d: %.6f" % (steps, sum(p.sum().item() for p in model.parameters())), flush=True)
dist.destroy_process_group()
