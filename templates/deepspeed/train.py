# SPDX-License-Identifier: Apache-2.0
"""ZeRO stage 1. DeepSpeed writes a file for each rank and `latest` last; gridctl waits for all of them."""
import os
import time

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed  # noqa: E402  (after the accelerator is chosen)

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
steps = int(os.environ.get("STEPS", "100"))
deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo", auto_mpi_discovery=False)
rank = int(os.environ["RANK"])

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
config = {
    "train_micro_batch_size_per_gpu": 32,
    "optimizer": {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}},
    "zero_optimization": {"stage": 1},
}
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
_, client = engine.load_checkpoint(FOLDER) if os.path.exists(os.path.join(FOLDER, "latest")) else (None, None)
first = client["step"] if client else 0


def seconds_between_saves():
    try:
        with open(os.environ["GRIDCTL_CKPT_INTERVAL_FILE"]) as file:
            return float(file.read())
    except (KeyError, OSError, ValueError):
        return float(os.environ.get("GRIDCTL_CKPT_INTERVAL", "600"))


last = time.monotonic()
for step in range(first, steps):
    generator = torch.Generator().manual_seed(step * 1000 + rank)
    x = torch.randn(32, 16, generator=generator).to(engine.device)
    loss = (engine(x) - x.sum(1, keepdim=True)).pow(2).mean()
    engine.backward(loss)
    engine.step()
    due = [time.monotonic() - last >= seconds_between_saves()]
    torch.distributed.broadcast_object_list(due, src=0)
    if due[0]:
        engine.save_checkpoint(FOLDER, client_state={"step": step + 1})
        last = time.monotonic()

engine.save_checkpoint(FOLDER, client_state={"step": steps})
if rank == 0:
    print("done at step %d: %.6f" % (steps, sum(p.sum().item() for p in engine.module.parameters())), flush=True)
