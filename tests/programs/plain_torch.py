# SPDX-License-Identifier: Apache-2.0
"""A script that guards distributed set-up by RANK, logs five times a second, and overwrites one file."""
import os
import time

import torch

if int(os.environ.get("RANK", "-1")) != -1:
    torch.distributed.init_process_group("nccl")
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
os.makedirs("out", exist_ok=True)
first = 1
if os.path.exists("out/ckpt.pt"):
    state = torch.load("out/ckpt.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["step"] + 1
    print(f"resumed after step {first - 1}", flush=True)
for step in range(first, int(os.environ.get("STEPS", "60")) + 1):
    inputs = torch.randn(32, 8, generator=torch.Generator().manual_seed(step))
    loss = (model(inputs).squeeze() - inputs.sum(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.6f}", flush=True)
    with open("out/train.log", "a") as log:
        log.write(f"{step} {loss.item()}\n")
    if step % 5 == 0:
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, "out/ckpt.pt")
    time.sleep(0.2)
print("done", flush=True)
