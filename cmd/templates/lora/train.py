# SPDX-License-Identifier: Apache-2.0
"""LoRA with PEFT: $MODEL of the hub, else a tiny model to try it with. Only adapters are trained and saved."""
import os

import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

import gridctl_save

steps = int(os.environ.get("STEPS", "100"))
cuda = torch.cuda.is_available()
if int(os.environ.get("WORLD_SIZE", "1")) > 1:
    dist.init_process_group("nccl" if cuda else "gloo")
rank, local = int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "0"))
if cuda:
    torch.cuda.set_device(local)
device = torch.device("cuda", local) if cuda else torch.device("cpu")

torch.manual_seed(0)
if os.environ.get("MODEL"):
    base = AutoModelForCausalLM.from_pretrained(os.environ["MODEL"], torch_dtype=torch.bfloat16)
    config = LoraConfig(r=16, lora_alpha=32, task_type="CAUSAL_LM")
else:
    base = GPT2LMHeadModel(GPT2Config(vocab_size=128, n_positions=64, n_embd=32, n_layer=2, n_head=2))
    config = LoraConfig(r=4, target_modules=["c_attn"], fan_in_fan_out=True)
model = get_peft_model(base, config).to(device)


class Adapters(torch.nn.Module):
    """What is saved: the adapters alone, a few megabytes."""

    def state_dict(self, *args, **kwargs):
        return get_peft_model_state_dict(model)

    def load_state_dict(self, state, *args, **kwargs):
        return set_peft_model_state_dict(model, state)


adapters = Adapters()
trained = DistributedDataParallel(model, device_ids=[local] if cuda else None) if dist.is_initialized() else model
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
step = gridctl_save.load(adapters, optimizer)

vocabulary = base.config.vocab_size
for step in range(step, steps):
    generator = torch.Generator().manual_seed(step * 1000 + rank)
    tokens = torch.randint(vocabulary, (4, 32), generator=generator).to(device)  # yours: a batch of texts
    loss = trained(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad()
    gridctl_save.computed()
    loss.backward()
    optimizer.step()
    gridctl_save.progress(step + 1, loss=loss.item())
    if gridctl_save.due():
        gridctl_save.save(step + 1, adapters, optimizer)

gridctl_save.save(steps, adapters, optimizer)
if rank == 0:
    print("done at step %d: %.6f" % (steps, sum(t.sum().item() for t in adapters.state_dict().values())), flush=True)
if dist.is_initialized():
    dist.destroy_process_group()
