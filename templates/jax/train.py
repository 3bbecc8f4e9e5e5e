# SPDX-License-Identifier: Apache-2.0
"""Data parallel in JAX: the batch is spread over all devices of all hosts, the parameters are everywhere."""
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
PATH = os.path.join(FOLDER, "state.npz")
steps = int(os.environ.get("STEPS", "200"))
processes = int(os.environ.get("JAX_NUM_PROCESSES", "1"))
if processes > 1:  # a lost peer is noticed after ten seconds, not after ninety
    jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], processes, int(os.environ["JAX_PROCESS_ID"]),
                               heartbeat_timeout_seconds=10)
mesh = Mesh(np.array(jax.devices()), ("data",))
spread, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())


def loss_of(weights, x):
    return jnp.mean((x @ weights["w"] + weights["b"] - x.sum(1)) ** 2)


@jax.jit
def train(weights, x):
    loss, gradient = jax.value_and_grad(loss_of)(weights, x)
    return jax.tree.map(lambda w, g: w - 0.05 * g, weights, gradient), loss


def save(step, weights):
    if jax.process_index() == 0:
        os.makedirs(FOLDER, exist_ok=True)
        with open(PATH + ".tmp", "wb") as file:
            np.savez(file, step=step, **{name: np.asarray(value) for name, value in weights.items()})
            file.flush()
            os.fsync(file.fileno())
        os.replace(PATH + ".tmp", PATH)


def seconds_between_saves():
    try:
        with open(os.environ["GRIDCTL_CKPT_INTERVAL_FILE"]) as file:
            return float(file.read())
    except (KeyError, OSError, ValueError):
        return float(os.environ.get("GRIDCTL_CKPT_INTERVAL", "600"))


first, start = 0, {"w": np.zeros(16, np.float32), "b": np.zeros((), np.float32)}
if os.path.exists(PATH):
    with np.load(PATH) as saved:
        first, start = int(saved["step"]), {name: saved[name] for name in ("w", "b")}
weights = jax.device_put(start, everywhere)

last, each = time.monotonic(), 32 // processes
for step in range(first, steps):
    x = np.random.default_rng(step * 1000 + jax.process_index()).standard_normal((each, 16)).astype(np.float32)
    weights, loss = train(weights, jax.make_array_from_process_local_data(spread, x))
    if time.monotonic() - last >= seconds_between_saves():  # process 0 alone writes: no vote is needed
        save(step + 1, weights)
        last = time.monotonic()

save(steps, weights)
if processes > 1:
    multihost_utils.sync_global_devices("end")
if jax.process_index() == 0:
    print("done at step %d: %.6f" % (steps, float(weights["w"].sum() + weights["b"])), flush=True)
