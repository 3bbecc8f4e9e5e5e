# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.checkpoint over Gloo, one folder that is saved into again."""
import os
import time

import torch
import torch.distributed.checkpoint as dcp

torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def one(step):
    inputs = torch.randn(32, 8, generator=torch.Generator().manual_seed(step))
    loss = (model(inputs).squeeze() - inputs.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    return loss


one(0)
for parameter in model.parameters():  # the optimizer's state must exist before it is loaded
    parameter.grad.zero_()
first = 1
if os.path.exists("out/latest/.metadata"):
    optimizer.step()
    loaded = {"model": model.state_dict(), "optim": optimizer.state_dict(), "step": torch.zeros(1)}
    dcp.load(loaded, checkpoint_id="out/latest")
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optim"])
    first = int(loaded["step"]) + 1
    print(f"resumed after step {first - 1}", flush=True)
for step in range(first, int(os.environ.get("STEPS", "60")) + 1):
    loss = one(step)
    optimizer.step()
    print(f"step {step} loss {loss.item():.6f}", flush=True)
    if step % 10 == 0:
        dcp.save({"model": model.state_dict(), "optim": optimizer.state_dict(), "step": torch.tensor([float(step)])},
                 checkpoint_id="out/latest")
    time.sleep(0.2)
torch.distributed.destroy_process_group()
print("done", flush=True)
