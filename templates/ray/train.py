# SPDX-License-Identifier: Apache-2.0
"""Ray tasks over all hosts. Results are saved as they come; after a restart only what is missing is computed."""
import json
import os

import ray

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
PATH = os.path.join(FOLDER, "results.json")
tasks = int(os.environ.get("STEPS", "50"))
ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)


@ray.remote(max_retries=5)
def evaluate(number):
    """Yours: a trial, a simulation, a part of the data."""
    return sum(i * i % (number + 7) for i in range(20_000))


def save(results):
    os.makedirs(FOLDER, exist_ok=True)
    with open(PATH + ".tmp", "w") as file:
        json.dump(results, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(PATH + ".tmp", PATH)


results = {}
if os.path.exists(PATH):
    with open(PATH) as file:
        results = json.load(file)
waiting = {evaluate.remote(n): str(n) for n in range(tasks) if str(n) not in results}
while waiting:
    done, _ = ray.wait(list(waiting), num_returns=min(10, len(waiting)), timeout=60)
    for one in done:
        results[waiting.pop(one)] = ray.get(one)
    save(results)
print("done at step %d: %d" % (len(results), sum(results.values())), flush=True)
