# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning with the Transformers Trainer, as its documentation shows it: checkpoints in out/, resumed from the last."""
import os
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed
from transformers.trainer_utils import get_last_checkpoint

set_seed(1)
EVERY = int(os.environ.get("SAVE_EVERY", "5"))


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        ids = (torch.arange(8) * (index % 5 + 1) + index) % 32
        return {"input_ids": ids, "labels": ids}


class Report(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in (logs or {}):
            print(f"step {state.global_step} loss {float(logs['loss']):.4f}", flush=True)
            time.sleep(0.15)
        if os.path.exists("die") and os.environ.get("GRIDCTL_ATTEMPT") == "1" and state.global_step % EVERY == EVERY - 1:
            os._exit(33)


model = GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=8, n_embd=16, n_layer=1, n_head=1, resid_pdrop=0, embd_pdrop=0,
                                   attn_pdrop=0))
arguments = TrainingArguments("out", max_steps=int(os.environ.get("STEPS", "60")), save_steps=EVERY, logging_steps=1,
                              save_total_limit=3, per_device_train_batch_size=4, report_to=[], disable_tqdm=True, use_cpu=True)
os.makedirs("out", exist_ok=True)
trainer = Trainer(model=model, args=arguments, train_dataset=Numbers(), callbacks=[Report()])
trainer.train(resume_from_checkpoint=get_last_checkpoint("out"))
print("done", flush=True)
