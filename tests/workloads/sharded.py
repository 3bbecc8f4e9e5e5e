# SPDX-License-Identifier: Apache-2.0
# FSDP2 over Gloo, by the variables of torchrun; needs today's torch. LAYOUT=dcp: torch.distributed.checkpoint in
# out/step-N, values that all ranks hold in rank 0's shard. LAYOUT=ranks: every rank writes out/step-N/rank_R.pt; as many
# ranks as wrote them read their own only. The batch is the same whatever the number of ranks: losses can be compared.
# Environment: STEPS, PACE (seconds a step takes at least), SAVE_EVERY (steps), WIDTH, SEED, LOSE (step whose last shard is lost
# in the first attempt, which saves nothing after it).
import os
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import distribute_tensor

STEPS = int(os.environ.get("STEPS", "60"))
PACE = float(os.environ.get("PACE", "0.1"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "10"))
WIDTH = int(os.environ.get("WIDTH", "48"))
LOSE = int(os.environ.get("LOSE", "0"))
ROWS = 24  # of a batch: as many for each of 1, 2, 3 or 4 ranks
LAYOUT = os.environ.get("LAYOUT", "dcp")

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
mesh = dist.device_mesh.init_device_mesh("cpu", (world,))
torch.manual_seed(int(os.environ.get("SEED", "0")))
model = torch.nn.Sequential(torch.nn.Linear(12, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 12))
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=2.4 / WIDTH, momentum=0.9)


def state(step):
    """Every tensor by name; the momentum exists from the first step on."""
    named = {"step": torch.tensor(step)}
    for name, parameter in model.named_parameters():
        momentum = optimizer.state[parameter].setdefault("momentum_buffer", torch.zeros_like(parameter))
        named["model." + name], named["optimizer.momentum." + name] = parameter.detach(), momentum
    return named


def save(step):
    folder = f"out/step-{step}"
    if LAYOUT == "dcp":
        dcp.save(state(step), checkpoint_id=folder, planner=DefaultSavePlanner(dedup_save_to_lowest_rank=True))
        shard = f"{folder}/__{world - 1}_0.distcp"
    else:
        os.makedirs(folder, exist_ok=True)
        shard = f"{folder}/rank_{rank}.pt"
        mine = {name: one.to_local() if hasattr(one, "to_local") else one for name, one in state(step).items()}
        torch.save({"world": world, "state": mine}, shard + ".tmp")
        os.replace(shard + ".tmp", shard)
    if step == LOSE and first == 1 and rank == world - 1:
        os.unlink(shard)


def load(folder):
    named = state(0)
    if LAYOUT == "dcp":
        dcp.load(named, checkpoint_id=folder)
        return int(named["step"])
    file = f"{folder}/rank_{rank}.pt" if os.path.exists(f"{folder}/rank_{rank}.pt") else f"{folder}/rank_0.pt"
    wrote = torch.load(file)["world"]
    parts = [torch.load(f"{folder}/rank_{r}.pt")["state"] for r in ([rank] if wrote == world else range(wrote))]
    for name, one in named.items():
        if name == "step":
            continue
        if wrote == world:
            one.to_local().copy_(parts[0][name])
        else:
            one.copy_(distribute_tensor(torch.cat([part[name] for part in parts]), mesh, one.placements))
    return int(parts[0]["step"])


steps = sorted(int(name[5:]) for name in os.listdir("out") if name.startswith("step-")) if os.path.isdir("out") else []
first = 1
if steps:
    folder = f"out/step-{steps[-1]}"
    if os.environ["LOCAL_RANK"] == "0":
        print(f"rank {rank} sees {' '.join(sorted(os.listdir(folder)))}", flush=True)
    first = load(folder) + 1
    if rank == 0:
        print(f"resumed after step {first - 1}", flush=True)

for step in range(first, STEPS + 1):
    began = time.monotonic()
    batch = torch.randn(ROWS, 12, generator=torch.Generator().manual_seed(step))[rank::world]
    loss = (model(batch) - batch.flip(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print(f"step {step} loss {total.item() / world:.6f}", flush=True)
    if (step % SAVE_EVERY == 0 or step == STEPS) and not (first == 1 and 0 < LOSE < step):
        save(step)
    time.sleep(max(0.0, PACE - (time.monotonic() - began)))
print("done", flush=True)
dist.destroy_process_group()
