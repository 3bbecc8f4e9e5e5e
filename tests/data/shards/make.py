#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the .metadata files beside it: what torch.distributed.checkpoint says of a model on four ranks.

    VENV/bin/python tests/data/shards/make.py

lowest.metadata   values that all ranks hold go to rank 0, as with DefaultSavePlanner(dedup_save_to_lowest_rank=True)
spread.metadata   the same state with torch's usual planner, which spreads them over all ranks
hybrid.metadata   two shards, each on two ranks
short.metadata    a tensor of three rows: the last rank has nothing of it
"""
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as multiprocessing
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

HERE = os.path.dirname(os.path.abspath(__file__))
WORLD = 4


def trained(mesh):
    model = torch.nn.Linear(8, 8)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    weights, state = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": state, "step": 7}


def save(state, folder, name, **options):
    checkpoint = os.path.join(folder, name)
    dcp.save(state, checkpoint_id=checkpoint, planner=DefaultSavePlanner(**options))
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.copy(os.path.join(checkpoint, ".metadata"), os.path.join(HERE, name + ".metadata"))


def rank_of(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=WORLD)
    mesh = dist.device_mesh.init_device_mesh("cpu", (WORLD,))
    state = trained(mesh)
    save(state, folder, "lowest", dedup_save_to_lowest_rank=True)
    save(state, folder, "spread")
    two = dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "shards"))
    save({"w": distribute_tensor(torch.ones(8, 8), two, [Replicate(), Shard(0)])}, folder, "hybrid",
         dedup_save_to_lowest_rank=True)
    save({"w": distribute_tensor(torch.ones(8, 8), mesh, [Shard(0)]),
          "short": distribute_tensor(torch.ones(3, 8), mesh, [Shard(0)])}, folder, "short", dedup_save_to_lowest_rank=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    with tempfile.TemporaryDirectory() as meeting:
        multiprocessing.spawn(rank_of, (meeting,), WORLD)
