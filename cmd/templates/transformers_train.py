# SPDX-License-Identifier: Apache-2.0
"""Trains a model with transformers as it was planned: training_args.json, model.json, data.json and adapter.json.

    python3 train.py [--model NAME_OR_FOLDER]

Without --model the weights are random and have the shape of model.json. Replace RandomTokens with your data.
"""
import argparse
import json
import os

import torch
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

import gridctl_save


class RandomTokens(torch.utils.data.Dataset):
    def __init__(self, vocabulary, length):
        self.vocabulary, self.length = vocabulary, length

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        ids = torch.randint(self.vocabulary, (self.length,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids}


class Saving(TrainerCallback):
    """Saves when gridctl asks for it, besides each save_steps."""

    def on_step_end(self, args, state, control, **_):
        control.should_save = gridctl_save.due() or control.should_save

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in (logs or {}):
            gridctl_save.progress(state.global_step, loss=float(logs["loss"]))


def read(name, usual=None):
    if usual is not None and not os.path.exists(name):
        return usual
    with open(name, encoding="utf-8") as file:
        return json.load(file)


def load(weights, adapter, recomputes):
    half = torch.bfloat16
    if weights:
        more = {}
        if adapter and adapter["load_in_4bit"]:
            from transformers import BitsAndBytesConfig
            more["quantization_config"] = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4",
                                                             bnb_4bit_compute_dtype=half)
        model = AutoModelForCausalLM.from_pretrained(weights, dtype=half if adapter else torch.float32, **more)
    elif adapter and adapter["load_in_4bit"]:
        raise SystemExit("QLoRA needs weights: python3 train.py --model NAME_OR_FOLDER")
    else:
        shape = read("model.json")
        config = AutoConfig.for_model(shape.pop("model_type"), **shape)
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=half if adapter else torch.float32)
    model.config.use_cache = False
    if adapter:
        from peft import LoraConfig, get_peft_model
        if recomputes:
            model.enable_input_require_grads()
        model = get_peft_model(model, LoraConfig(**{key: value for key, value in adapter.items() if key != "load_in_4bit"}))
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="")
    weights = parser.parse_args().model
    arguments = read("training_args.json")
    arguments["output_dir"] = os.environ.get("GRIDCTL_CKPT_DIR", arguments["output_dir"])
    arguments.setdefault("max_steps", 1000)
    arguments.update(save_total_limit=2, report_to="none", use_cpu=not torch.cuda.is_available())
    if "deepspeed" in arguments:  # stage 3 divides the model while it is made, and asks then how many ranks there are
        import deepspeed
        deepspeed.init_distributed()
    arguments = TrainingArguments(**arguments)
    recomputes = arguments.gradient_checkpointing or "activation_checkpointing" in json.dumps(arguments.fsdp_config or {})
    model = load(weights, read("adapter.json", usual={}), recomputes)
    data = RandomTokens(model.config.vocab_size, read("data.json")["sequence"])
    trainer = Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Saving()])
    trainer.train(resume_from_checkpoint=get_last_checkpoint(arguments.output_dir) if os.path.isdir(arguments.output_dir) else None)
    if trainer.is_world_process_zero():
        print(f"done at step {trainer.state.global_step}", flush=True)


main()
