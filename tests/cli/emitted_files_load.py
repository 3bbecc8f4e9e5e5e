#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of `gridctl plan train --emit` are loaded by the packages that they are for.

    emitted_files_load.py GRIDCTL

Run by a Python that has torch, deepspeed, accelerate and transformers; what it lacks is passed over, and said. Exits
with 77 when it has none of them.
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

GRIDCTL = os.path.abspath(sys.argv[1])


def emit(folder, target, *options):
    out = os.path.join(folder, target + str(len(os.listdir(folder))))
    subprocess.run([GRIDCTL, "plan", "train", "--model", "llama-3-8b", "--gpu", "H100:8x2", "--tokens", "1B", "--emit",
                    target, out, *options], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=120, env=dict(os.environ, GRIDCTL_STATE=os.path.join(folder, ".state")))
    return out


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def deepspeed(folder):
    from deepspeed.runtime import config as module
    DeepSpeedConfig = module.DeepSpeedConfig
    # It asks the running group for its size, and takes 1 when there is none.
    module.dist.get_rank, module.dist.get_world_size = (lambda *_: 0), (lambda *_: 16)
    for stage in (1, 2, 3):  # 8 billion parameters do not fit unsharded
        config = DeepSpeedConfig(os.path.join(emit(folder, "deepspeed", "--layout", f"dp=16,zero={stage}"), "ds_config.json"))
        assert config.zero_optimization_stage == stage, config.zero_optimization_stage
        assert config.train_batch_size == 512 and config.bfloat16_config.enabled
    offloaded = DeepSpeedConfig(os.path.join(emit(folder, "deepspeed", "--layout", "dp=16,zero=3,offload=all"), "ds_config.json"))
    assert offloaded.zero_config.offload_param.device == "cpu"


def accelerate(folder):
    from accelerate.commands.config.config_args import load_config_from_file
    for stage, kind in ((3, "FSDP"), (2, "FSDP"), (1, "DEEPSPEED")):
        config = load_config_from_file(os.path.join(emit(folder, "accelerate", "--layout", f"dp=16,zero={stage}"), "accelerate.yaml"))
        assert kind in str(config.distributed_type), config.distributed_type
        assert config.num_processes == 16 and config.num_machines == 2


def transformers(folder):
    from transformers import TrainingArguments
    import dataclasses
    arguments = json.loads(text_of(emit(folder, "fsdp", "--layout", "dp=16,zero=3"), "training_args.json"))
    known = {field.name for field in dataclasses.fields(TrainingArguments)}
    unknown = set(arguments) - known
    assert not unknown, f"no arguments of transformers: {unknown}"
    arguments.update(output_dir=folder, use_cpu=True, bf16=False)
    loaded = TrainingArguments(**arguments)
    assert loaded.per_device_train_batch_size == arguments["per_device_train_batch_size"]
    assert loaded.fsdp is True or "full_shard" in str(loaded.fsdp), loaded.fsdp
    assert loaded.fsdp_config["reshard_after_forward"] is True, loaded.fsdp_config


def torchtitan(folder):
    try:
        from torchtitan.config import JobConfig
    except ImportError:
        return torchtitan_by_arguments(folder)
    import dataclasses
    import tomllib
    config = tomllib.loads(text_of(emit(folder, "torchtitan"), "titan.toml"))
    sections = {field.name: field for field in dataclasses.fields(JobConfig)}
    for section, values in config.items():
        assert section in sections, section
        kind = sections[section].default_factory
        known = {field.name for field in dataclasses.fields(kind)}
        assert set(values) <= known, (section, set(values) - known)


def torchtitan_by_arguments(folder):
    """From 0.3 on it is configured by functions of a registry and arguments, not by TOML."""
    from torchtitan.config.manager import ConfigManager
    for layout, recompute in (("dp=8,tp=2,zero=3", "none"), ("dp=8,pp=2,zero=3,recompute=full", "full")):
        words = text_of(emit(folder, "torchtitan", "--layout", layout), "titan.args").split()
        config = ConfigManager().parse_args(words)
        assert config.parallelism.data_parallel_shard_degree == 8, config.parallelism
        assert config.parallelism.tensor_parallel_degree == (2 if "tp=2" in layout else 1), config.parallelism
        assert config.parallelism.pipeline_parallel_degree == (2 if "pp=2" in layout else 1), config.parallelism
        assert config.training.seq_len == 8192 and config.training.global_batch_size == 512, config.training
        kind = type(config.activation_checkpoint).__qualname__.lower() if config.activation_checkpoint else "none"
        assert recompute == "none" or recompute in kind, (recompute, kind)


def main():
    done, missing = [], []
    with tempfile.TemporaryDirectory() as folder:
        for check in (deepspeed, accelerate, transformers, torchtitan):
            if importlib.util.find_spec(check.__name__) is None:
                missing.append(check.__name__)
                continue
            try:
                check(folder)
            except ImportError as lacking:
                missing.append(f"{check.__name__}: {lacking}")
                continue
            done.append(check.__name__)
    print("loaded by", ", ".join(done) or "nothing", *([f"(not here: {', '.join(missing)})"] if missing else []))
    if not done:
        print(f"SKIPPED {sys.executable} has none of deepspeed, accelerate, transformers and torchtitan")
        sys.exit(77)


main()
