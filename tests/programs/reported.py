# SPDX-License-Identifier: Apache-2.0
"""Ways of saving that public bug reports tell of, for habits.py, whose helpers they use: `table` and `checks`."""
import glob
import os
import shutil
import time

import habits as h

PAUSE = 0.3  # in which a host may die


# Lightning-AI/pytorch-lightning #1150: the former checkpoint is deleted before the next is written; killed between the
# two, a program has none.
def deleted_first(o, n):
    for old in glob.glob(f"{o}/epoch=*.ckpt"):
        os.unlink(old)
    time.sleep(PAUSE)
    h.torch(f"{o}/epoch={n}.ckpt", n)


# huggingface/transformers #37260: folders of an earlier run have higher numbers than those of this one.
def beside_an_old_run(o, n):
    if not os.path.exists(f"{o}/checkpoint-700"):
        h.trainer(o, 700)
        time.sleep(PAUSE)
    h.trainer(o, n)


def newest_folder(o):
    return h.number_in(max(glob.glob(f"{o}/checkpoint-*/model.safetensors"), key=os.path.getmtime))


# huggingface/transformers #25129: with a limit of one, all checkpoints are gone when training ends; the model is left.
def emptied(o, n):
    if n < 3:
        return h.trainer(o, n)
    for old in glob.glob(f"{o}/checkpoint-*"):
        shutil.rmtree(old)
    h.tensors(f"{o}/model.safetensors", n)


# ray-project/ray #30073: the state of an experiment names checkpoints that were deleted meanwhile.
def named_by_a_state(o, n):
    h.raw(f"{o}/checkpoint_{n:06d}/state.raw", n)
    h.text(f"{o}/experiment_state.json", '{"latest": %d}' % n)
    shutil.rmtree(f"{o}/checkpoint_{n - 2:06d}", ignore_errors=True)


def what_the_state_names(o):
    with open(f"{o}/experiment_state.json") as file:
        n = int(file.read()[11:-1])
    assert h.number_in(f"{o}/checkpoint_{n:06d}/state.raw") == n
    return n


# deepspeedai/DeepSpeed #5405: shards of other ranks stay in folders whose names say that they are temporary.
def shards_in_temporary_folders(o, n):
    h.torch(f"{o}/tmp-checkpoint-{n}/global_step{n}/rank_1.pt", n)
    h.torch(f"{o}/checkpoint-{n}/global_step{n}/rank_0.pt", n)


# Paperspace/gradient-cli #114: a job is cancelled while its best model is exchanged for a better one.
def exchanged(o, n):
    if os.path.exists(f"{o}/best.pt"):
        os.unlink(f"{o}/best.pt")
    time.sleep(PAUSE)
    h.torch(f"{o}/best.pt", n)


# NVIDIA-NeMo/Automodel #3261: what is being saved has a mark, which goes when all is there.
def marked_while_written(o, n):
    folder = f"{o}/epoch_0_step_{n}"
    h.text(f"{folder}/.in_progress", "")
    h.torch(f"{folder}/model.pt", n, False)
    time.sleep(PAUSE)
    h.torch(f"{folder}/optim.pt", n)
    os.unlink(f"{folder}/.in_progress")


def newest_unmarked(o):
    folders = [f for f in glob.glob(f"{o}/epoch_0_step_*") if not os.path.exists(f"{f}/.in_progress")]
    n = max((int(folder.rsplit("_", 1)[1]) for folder in folders), default=0)
    for name in ("model.pt", "optim.pt") if n else ():
        assert h.number_in(f"{o}/epoch_0_step_{n}/{name}") == n
    return n


# TensorAuto/OpenTau #396: ranks name their folder after the second in which they began, and two of them disagree.
def two_clocks(o, n):
    h.raw(f"{o}/12-00-49_run/rank_0.raw", n)
    h.raw(f"{o}/12-00-50_run/rank_1.raw", n)


# goodfire-ai/spd #677: whether it is to stop, a program looks only between two steps, and steps take long.
def long_step(o, n):
    time.sleep(5 if n == 4 else 0)
    h.torch(f"{o}/ckpt.pt", n)


# EveryVoiceTTS/EveryVoice #183: after a preemption the next run saves beside the file of the former one.
def second_version(o, n):
    if not os.path.exists(f"{o}/last.ckpt"):
        h.torch(f"{o}/last.ckpt", 100)
        time.sleep(PAUSE)
    h.torch(f"{o}/last-v1.ckpt", n)


def newest_version(o):
    n = h.number_in(max(glob.glob(f"{o}/last*.ckpt"), key=os.path.getmtime))
    assert n < 100, "the file of the former run is the newer one"
    return n


table = {
    "deleted before the next": (deleted_first, ["epoch={n}.ckpt"]),
    "beside an old run": (beside_an_old_run, ["checkpoint-{n}/model.safetensors", "checkpoint-700/optimizer.pt"]),
    "emptied at the end": (emptied, ["model.safetensors"]),
    "named by a state": (named_by_a_state, ["checkpoint_{n:06d}/state.raw", "experiment_state.json"]),
    "shards in temporary folders": (shards_in_temporary_folders, ["tmp-checkpoint-{n}/global_step{n}/rank_1.pt",
                                                                  "checkpoint-{n}/global_step{n}/rank_0.pt"]),
    "exchanged": (exchanged, ["best.pt"]),
    "marked while it is written": (marked_while_written, ["epoch_0_step_{n}/model.pt", "epoch_0_step_{n}/optim.pt"]),
    "two clocks": (two_clocks, ["12-00-49_run/rank_0.raw", "12-00-50_run/rank_1.raw"]),
    "a long step": (long_step, ["ckpt.pt"]),
    "a second version": (second_version, ["last-v1.ckpt", "last.ckpt"]),
}
checks = {
    "beside an old run": newest_folder,
    "emptied at the end": lambda o: 1 if os.listdir(o) else 0,
    "named by a state": what_the_state_names,
    "shards in temporary folders": lambda o: 1 if glob.glob(f"{o}/checkpoint-*") else 0,
    "marked while it is written": newest_unmarked,
    "a second version": newest_version,
}
