# SPDX-License-Identifier: Apache-2.0
"""Boosting in rounds, the model overwritten in place after each few."""
import os
import time

import numpy
import xgboost

random = numpy.random.default_rng(1)
inputs = random.normal(size=(200, 8))
data = xgboost.DMatrix(inputs, inputs.sum(1) + random.normal(size=200))
model, first = None, 0
os.makedirs("out", exist_ok=True)
if os.path.exists("out/model.json"):
    model = xgboost.Booster(model_file="out/model.json")
    first = model.num_boosted_rounds()
    print(f"resumed after step {first}", flush=True)
for step in range(first + 1, int(os.environ.get("STEPS", "40")) + 1):
    model = xgboost.train({"max_depth": 3, "nthread": 1, "seed": 1}, data, 1, xgb_model=model)
    print(f"step {step} loss {float(model.eval(data).rpartition(':')[2]):.5f}", flush=True)
    if step % 4 == 0:
        model.save_model("out/model.json")
    time.sleep(0.3)
print("done", flush=True)
