# SPDX-License-Identifier: Apache-2.0
"""FSDP2 with checkpoints of torch.distributed.checkpoint: every rank writes its shard, gridctl puts them together."""
import os
import shutil
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
steps = int(os.environ.get("STEPS", "200"))
cuda = torch.cuda.is_available()
dist.init_process_group("nccl" if cuda else "gloo")
rank, local = dist.get_rank(), int(os.environ["LOCAL_RANK"])
if cuda:
    torch.cuda.set_device(local)
mesh = dist.device_mesh.init_device_mesh("cuda" if cuda else "cpu", (dist.get_world_size(),))

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) for _ in range(4)],
                            torch.nn.Linear(16, 1))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def folders():
    """Of whole checkpoints, oldest first: the file .metadata is written last."""
    names = os.listdir(FOLDER) if os.path.isdir(FOLDER) else []
    steps = [int(n[5:]) for n in names if n.startswith("step-") and os.path.exists(os.path.join(FOLDER, n, ".metadata"))]
    return [os.path.join(FOLDER, "step-%d" % step) for step in sorted(steps)]


def save(step):
    weights, state = get_state_dict(model, optimizer)
    # What all ranks hold alike goes to the shard of rank 0: "shards: local" in job.yaml then spares hosts the others.
    dcp.save({"model": weights, "optimizer": state}, checkpoint_id=os.path.join(FOLDER, "step-%d" % step),
             planner=DefaultSavePlanner(dedup_save_to_lowest_rank=True))
    dist.barrier()
    if local == 0:  # each host tidies up what its own ranks have written; two stay
        names = sorted((n for n in os.listdir(FOLDER) if n.startswith("step-")), key=lambda n: int(n[5:]))
        for name in names[:-2]:
            shutil.rmtree(os.path.join(FOLDER, name))


def seconds_between_saves():
    try:
        with open(os.environ["GRIDCTL_CKPT_INTERVAL_FILE"]) as file:
            return float(file.read())
    except (KeyError, OSError, ValueError):
        return float(os.environ.get("GRIDCTL_CKPT_INTERVAL", "600"))


first = 0
if folders():
    newest = folders()[-1]
    weights, state = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": state}, checkpoint_id=newest)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    first = int(newest.rsplit("-", 1)[1])

last, saved = time.monotonic(), first
for step in range(first, steps):
    generator = torch.Generator().manual_seed(step * 1000 + rank)
    x = torch.randn(32, 16, generator=generator).to("cuda" if cuda else "cpu")
    loss = (model(x) - x.mean(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    due = [time.monotonic() - last >= seconds_between_saves()]
    dist.broadcast_object_list(due, src=0)
    if due[0]:
        save(step + 1)
        last, saved = time.monotonic(), step + 1

if saved != steps:
    save(steps)
total = torch.tensor([sum(p.to_local().sum().item() for p in model.parameters())])
dist.all_reduce(total)
if rank == 0:
    print("done at step %d: %.6f" % (steps, total.item()), flush=True)
dist.destroy_process_group()
