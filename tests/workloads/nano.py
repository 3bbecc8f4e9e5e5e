# SPDX-License-Identifier: Apache-2.0
"""A small language model, trained, saved and resumed as minimal training scripts do: nano.py AS_IS|BY_STEP|SAVED|MUTE

AS_IS seeds once, at its beginning, so that it draws its first batches again after a restart; BY_STEP makes the seed of
each batch from the step and, restarted, shifts it by the attempt; SAVED keeps the state of the generator."""
import os
import sys
import time

import torch
from torch import nn

kind, steps, every = sys.argv[1], int(os.environ.get("STEPS", "140")), 20
torch.manual_seed(1337)
torch.set_num_threads(1)
text = torch.tensor(list((" ".join(str(i * i) for i in range(4000))).encode())) % 16
model = nn.Sequential(nn.Embedding(16, 24), nn.Flatten(), nn.Linear(24 * 8, 48), nn.GELU(), nn.Linear(48, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
step = 0
os.makedirs("out", exist_ok=True)
if os.path.exists("out/ckpt.pt"):
    state = torch.load("out/ckpt.pt", weights_only=False)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step = state["iter_num"]
    if kind == "SAVED":
        torch.set_rng_state(state["generator"])
attempt = int(os.environ.get("GRIDCTL_ATTEMPT", "1"))
while step < steps:
    if kind == "BY_STEP":
        torch.manual_seed(step + 1000 * attempt)
    at = torch.randint(len(text) - 8, (4,))
    loss = nn.functional.cross_entropy(model(torch.stack([text[i:i + 8] for i in at])), text[at + 8])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if kind != "MUTE":
        print(f"iter {step}: loss {loss.item():.4f}, time {1000 * time.perf_counter() % 97:.2f}ms", flush=True)
    step += 1
    if step % every == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": step,
                    "generator": torch.get_rng_state()}, "out/new.pt")
        os.replace("out/new.pt", "out/ckpt.pt")
    time.sleep(0.1)
    if attempt == 1 and os.path.exists("die") and step % every == every - 2:
        sys.exit(33)
