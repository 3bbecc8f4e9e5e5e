# SPDX-License-Identifier: Apache-2.0
"""Ray Train: the model's state travels to the first host with each report, and is saved there."""
import os

import ray
import torch
from ray.train import ScalingConfig, get_context
from ray.train.torch import TorchTrainer, prepare_model

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
PATH = os.path.join(FOLDER, "state.pt")
steps = int(os.environ.get("STEPS", "100"))
ray.init(address=os.environ.get("RAY_ADDRESS"))


@ray.remote(num_cpus=0)
class Keeper:
    """On the first host, where gridctl takes checkpoints. Gives the newest state, and writes it whole or not at all."""

    def load(self):
        return torch.load(PATH, weights_only=False) if os.path.exists(PATH) else None

    def save(self, state):
        os.makedirs(FOLDER, exist_ok=True)
        with open(PATH + ".tmp", "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(PATH + ".tmp", PATH)


here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
keeper = Keeper.options(scheduling_strategy=here).remote()


def train(settings):
    torch.manual_seed(0)
    model = prepare_model(torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    bare = getattr(model, "module", model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    state = ray.get(settings["keeper"].load.remote())
    if state:
        bare.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    rank = get_context().get_world_rank()
    for step in range(state["step"] if state else 0, settings["steps"]):
        x = torch.randn(32, 16, generator=torch.Generator().manual_seed(step * 1000 + rank))
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and ((step + 1) % 20 == 0 or step + 1 == settings["steps"]):
            ray.get(settings["keeper"].save.remote(
                {"step": step + 1, "model": bare.state_dict(), "optimizer": optimizer.state_dict()}))


workers = int(os.environ.get("GRIDCTL_NUM_NODES", "1"))
gpu = torch.cuda.is_available()
TorchTrainer(train, train_loop_config={"steps": steps, "keeper": keeper},
             scaling_config=ScalingConfig(num_workers=workers, use_gpu=gpu)).fit()
state = ray.get(keeper.load.remote())
print("done at step %d: %.6f" % (state["step"], sum(t.sum().item() for t in state["model"].values())), flush=True)
