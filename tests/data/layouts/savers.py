# SPDX-License-Identifier: Apache-2.0
"""Tiny programs that save as people do, each with the framework's own calls. savers.py NAME OUT"""
import os
import shutil
import sys

SAVERS = {}


def saver(function):
    SAVERS[function.__name__.replace("_", "-")] = function
    return function


def saved(out, number):
    """The framework's call returned. What it wrote is kept as it is now, for the next save may write over it."""
    shutil.copytree(out, os.path.join(os.path.dirname(out), f"at-{number}"), ignore=shutil.ignore_patterns(".save-*"))
    with open(os.path.join(out, f".save-{number}"), "w", encoding="utf-8"):
        pass


def small_gpt():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(vocab_size=32, n_positions=8, n_embd=8, n_layer=1, n_head=1))


def trainer(out, sharded=False, peft=False):
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            ids = torch.arange(4) + index
            return {"input_ids": ids, "labels": ids}

    class Mark(TrainerCallback):
        count = 0

        def on_save(self, args, state, control, **_):
            Mark.count += 1
            saved(out, Mark.count)

    model = small_gpt()
    if peft:
        from peft import LoraConfig, get_peft_model
        model = get_peft_model(model, LoraConfig(r=1, target_modules=["c_attn"], fan_in_fan_out=True))
    if sharded:
        plain = model.save_pretrained
        model.save_pretrained = lambda *args, **kwargs: plain(*args, **{**kwargs, "max_shard_size": "2KB"})
    arguments = TrainingArguments(out, max_steps=2, save_steps=1, per_device_train_batch_size=4, report_to=[],
                                  disable_tqdm=True, use_cpu=True)
    Trainer(model=model, args=arguments, train_dataset=Data(), callbacks=[Mark()]).train()


@saver
def transformers(out):
    trainer(out)


@saver
def transformers_sharded(out):
    trainer(out, sharded=True)


@saver
def transformers_peft(out):
    trainer(out, peft=True)


@saver
def accelerate(out):
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    data = torch.utils.data.DataLoader(torch.ones(4, 2), shuffle=True)
    model, optimizer, schedule, data = accelerator.prepare(model, optimizer, schedule, data)

    class Counter:
        def state_dict(self):
            return {"n": 1}

        def load_state_dict(self, state):
            pass

    accelerator.register_for_checkpointing(Counter())
    for number in (1, 2):  # twice into the same folder
        for batch in data:
            accelerator.backward(model(batch).sum())
            optimizer.step()
        accelerator.save_state(os.path.join(out, "state"))
        saved(out, number)


@saver
def lightning(out):
    import lightning
    import torch

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch, _):
            return self.layer(batch).sum()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    class Mark(lightning.pytorch.callbacks.ModelCheckpoint):
        count = 0

        def _save_checkpoint(self, trainer, path):
            super()._save_checkpoint(trainer, path)
            Mark.count += 1
            saved(out, Mark.count)

    lightning.Trainer(max_steps=4, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
                      callbacks=[Mark(out, every_n_train_steps=2, save_top_k=-1)]).fit(
                          Model(), torch.utils.data.DataLoader(torch.ones(8, 2)))


@saver
def distributed(out):
    """torch.distributed.checkpoint, twice into the same folder."""
    import torch
    import torch.distributed.checkpoint as dcp
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    for number in (1, 2):
        dcp.save({"model": model.state_dict(), "optim": optimizer.state_dict()}, checkpoint_id=os.path.join(out, "step"))
        saved(out, number)


def rank_of_two(rank, out, port):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    model = torch.nn.Linear(4, 4)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    for number in (1, 2):
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optim": moments}, checkpoint_id=os.path.join(out, f"step-{number}"))
        dist.barrier()
        if rank == 0:
            saved(out, number)
    dist.destroy_process_group()


@saver
def fsdp(out):
    """FSDP2 on two ranks, sharded by torch.distributed.checkpoint."""
    import torch.multiprocessing as mp
    mp.spawn(rank_of_two, (out, 29517), nprocs=2)


def deepspeed_rank(rank, out, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank),
                      DS_ACCELERATOR="cpu")
    import torch
    import deepspeed as library
    library.init_distributed("gloo")
    model = torch.nn.Linear(4, 4)
    engine, _, _, _ = library.initialize(model=model, config={
        "train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Adam", "params": {"torch_adam": True}},
        "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True})
    for number in (1, 2):
        engine.backward(engine(torch.ones(1, 4)).sum())
        engine.step()
        engine.save_checkpoint(out)
        torch.distributed.barrier()
        if rank == 0:
            saved(out, number)


@saver
def deepspeed(out):
    """ZeRO 1 on two ranks."""
    import torch.multiprocessing as mp
    mp.spawn(deepspeed_rank, (out, 29518), nprocs=2)


@saver
def orbax(out):
    import numpy
    import orbax.checkpoint as library
    with library.CheckpointManager(out) as manager:
        for number in (1, 2):
            state = {"w": numpy.ones(4, numpy.float32), "step": number}
            manager.save(number, args=library.args.StandardSave(state))
            manager.wait_until_finished()
            saved(out, number)


def small_keras():
    import keras
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    import numpy
    model.fit(numpy.ones((4, 2)), numpy.ones((4, 1)), verbose=0)
    return model


@saver
def tensorflow(out):
    import tensorflow as library
    weights = library.Variable([1.0, 2.0])
    manager = library.train.CheckpointManager(library.train.Checkpoint(weights=weights), out, max_to_keep=3)
    for number in (1, 2):
        manager.save()
        saved(out, number)


@saver
def keras(out):
    model = small_keras()
    for number in (1, 2):  # the same file twice
        model.save(os.path.join(out, "model.keras"))
        saved(out, number)


@saver
def stable_baselines(out):
    from stable_baselines3 import PPO
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, policy_kwargs={"net_arch": [2]}, device="cpu")
    for number in (1, 2):
        model.save(os.path.join(out, f"ppo_{number * 8}_steps"))
        saved(out, number)


@saver
def safetensors(out):
    """save_pretrained, in shards with an index, twice into the same folder."""
    model = small_gpt()
    for number in (1, 2):
        model.save_pretrained(os.path.join(out, "model"), max_shard_size="2KB")
        saved(out, number)


@saver
def peft(out):
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(small_gpt(), LoraConfig(r=1, target_modules=["c_attn"], fan_in_fan_out=True))
    for number in (1, 2):
        model.save_pretrained(os.path.join(out, f"step-{number}"))
        saved(out, number)


@saver
def torch(out):
    import torch as library
    model = library.nn.Linear(2, 2)
    optimizer = library.optim.Adam(model.parameters())
    for number in (1, 2):
        library.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": number},
                     os.path.join(out, "ckpt.pt"))
        saved(out, number)


if __name__ == "__main__":
    SAVERS[sys.argv[1]](sys.argv[2])
