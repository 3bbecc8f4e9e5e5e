# SPDX-License-Identifier: Apache-2.0
"""JAX with Orbax's CheckpointManager."""
import os
import time

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

weights = {"w": jnp.zeros(8), "momentum": jnp.zeros(8)}


@jax.jit
def update(state, inputs):
    def loss_of(w):
        return jnp.mean((inputs @ w - inputs.sum(1)) ** 2)

    loss, gradient = jax.value_and_grad(loss_of)(state["w"])
    momentum = 0.9 * state["momentum"] + gradient
    return {"w": state["w"] - 0.01 * momentum, "momentum": momentum}, loss


with ocp.CheckpointManager(os.path.abspath("out"), options=ocp.CheckpointManagerOptions(max_to_keep=3)) as manager:
    first = 1
    if manager.latest_step() is not None:
        weights = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(weights))
        first = manager.latest_step() + 1
        print(f"resumed after step {first - 1}", flush=True)
    for step in range(first, int(os.environ.get("STEPS", "60")) + 1):
        weights, loss = update(weights, jax.random.normal(jax.random.key(step), (32, 8)))
        print(f"step {step} loss {float(loss):.6f}", flush=True)
        if step % 10 == 0:
            manager.save(step, args=ocp.args.StandardSave(weights))
        time.sleep(0.2)
    manager.wait_until_finished()
print("done", flush=True)
