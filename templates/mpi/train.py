# SPDX-License-Identifier: Apache-2.0
"""mpi4py: every rank works on its part, rank 0 saves. The file is read by rank 0 and sent to the others."""
import os
import pickle
import time

import numpy as np
from mpi4py import MPI

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
PATH = os.path.join(FOLDER, "state.pickle")
steps = int(os.environ.get("STEPS", "200"))
world = MPI.COMM_WORLD
rank = world.Get_rank()


def save(step, field):
    parts = world.gather(field, root=0)
    if rank == 0:
        os.makedirs(FOLDER, exist_ok=True)
        with open(PATH + ".tmp", "wb") as file:
            pickle.dump({"step": step, "field": np.concatenate(parts)}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(PATH + ".tmp", PATH)


def seconds_between_saves():
    try:
        with open(os.environ["GRIDCTL_CKPT_INTERVAL_FILE"]) as file:
            return float(file.read())
    except (KeyError, OSError, ValueError):
        return float(os.environ.get("GRIDCTL_CKPT_INTERVAL", "600"))


state = None
if rank == 0 and os.path.exists(PATH):
    with open(PATH, "rb") as file:
        state = pickle.load(file)
state = world.bcast(state, root=0)
whole = state["field"] if state else np.sin(np.arange(1024) / 50.0)
field = np.array_split(whole, world.Get_size())[rank]

last = time.monotonic()
for step in range(state["step"] if state else 0, steps):
    left, right = world.sendrecv(field[-1], (rank + 1) % world.Get_size(), source=(rank - 1) % world.Get_size()), None
    right = world.sendrecv(field[0], (rank - 1) % world.Get_size(), source=(rank + 1) % world.Get_size())
    padded = np.concatenate(([left], field, [right]))
    field = field + 0.1 * (padded[:-2] - 2 * field + padded[2:])
    if world.bcast(time.monotonic() - last >= seconds_between_saves(), root=0):
        save(step + 1, field)
        last = time.monotonic()

save(steps, field)
total = world.reduce(float(np.abs(field).sum()), root=0)
if rank == 0:
    print("done at step %d: %.6f" % (steps, total), flush=True)
