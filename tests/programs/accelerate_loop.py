# SPDX-License-Identifier: Apache-2.0
"""A training loop with Accelerate, which saves its state into the same folder again and again."""
import os
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

set_seed(1)
accelerator = Accelerator(cpu=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.9)
model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)


class Progress:
    step = 0

    def state_dict(self):
        return {"step": self.step}

    def load_state_dict(self, state):
        self.step = state["step"]


progress = Progress()
accelerator.register_for_checkpointing(progress)
if os.path.isdir("out/state"):
    accelerator.load_state("out/state")
    print(f"resumed after step {progress.step}", flush=True)
for step in range(progress.step + 1, int(os.environ.get("STEPS", "60")) + 1):
    inputs = torch.randn(32, 8, generator=torch.Generator().manual_seed(step))
    loss = (model(inputs).squeeze() - inputs.sum(1)).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.6f}", flush=True)
    progress.step = step
    if step % 10 == 0:
        accelerator.save_state("out/state")
    time.sleep(0.2)
print("done", flush=True)
