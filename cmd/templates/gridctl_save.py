# SPDX-License-Identifier: Apache-2.0
"""Saves and loads the state of a PyTorch training, whole or not at all. Rank 0 writes; every rank loads.

    step = gridctl_save.load(model, optimizer, scheduler)       # 0 on a fresh start
    for step in range(step, steps):
        ...
        if gridctl_save.due(): gridctl_save.save(step + 1, model, optimizer, scheduler)
"""
import os
import random
import time

import torch
import torch.distributed as dist

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
_PATH = os.path.join(FOLDER, "state.pt")
_last = time.monotonic()


def _many():
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _rank():
    return dist.get_rank() if _many() else 0


def _bare(model):
    return getattr(model, "module", model)  # of DistributedDataParallel


def _rng():
    state = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def _set_rng(state):
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def _seconds():
    """How long to wait between two saves: gridctl tunes it while the job runs."""
    try:
        with open(os.environ["GRIDCTL_CKPT_INTERVAL_FILE"]) as file:
            return float(file.read())
    except (KeyError, OSError, ValueError):
        return float(os.environ.get("GRIDCTL_CKPT_INTERVAL", "600"))


def due():
    """Whether it is time to save. All ranks get the same answer: rank 0 decides."""
    global _last
    answer = [time.monotonic() - _last >= _seconds()]
    if _many():
        dist.broadcast_object_list(answer, src=0)
    if answer[0]:
        _last = time.monotonic()
    return answer[0]


def save(step, model, optimizer=None, scheduler=None, **more):
    """Call it on all ranks: each gives the state of its random numbers. Everything goes to a temporary name first."""
    rngs = [_rng()]
    if _many():
        rngs = [None] * dist.get_world_size()
        dist.all_gather_object(rngs, _rng())
    if _rank() == 0:
        state = {"step": step, "model": _bare(model).state_dict(), "rng": rngs, "more": more}
        if optimizer is not None:
            state["optimizer"] = optimizer.state_dict()
        if scheduler is not None:
            state["scheduler"] = scheduler.state_dict()
        os.makedirs(FOLDER, exist_ok=True)
        with open(_PATH + ".tmp", "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(_PATH + ".tmp", _PATH)
    if _many():
        dist.barrier()


def load(model, optimizer=None, scheduler=None):
    """The step to go on with. Also when the number of ranks has changed: then random numbers begin anew."""
    if not os.path.exists(_PATH):
        return 0
    state = torch.load(_PATH, map_location="cpu", weights_only=False)
    _bare(model).load_state_dict(state["model"])
    if optimizer is not None and "optimizer" in state:
        optimizer.load_state_dict(state["optimizer"])
    if scheduler is not None and "scheduler" in state:
        scheduler.load_state_dict(state["scheduler"])
    if len(state["rng"]) == (dist.get_world_size() if _many() else 1):
        _set_rng(state["rng"][_rank()])
    return state["step"]


_began, _busy = time.monotonic(), None


def computed():
    """Call it in each step before the ranks wait for each other (before loss.backward()): it shows which rank is slow."""
    global _busy
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    _busy = time.monotonic() - _began


def progress(step, **numbers):
    """Writes one line of $GRIDCTL_METRICS: gridctl sees that the job makes progress, and which rank is slow."""
    import json

    global _began, _busy
    if _busy is not None:
        numbers.setdefault("step_s", round(_busy, 6))
    _began, _busy = time.monotonic(), None
    path = os.environ.get("GRIDCTL_METRICS")
    if path:
        with open(path, "a") as file:
            file.write(json.dumps({"step": step, "rank": _rank(), **numbers}) + "\n")
