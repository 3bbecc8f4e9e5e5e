# SPDX-License-Identifier: Apache-2.0
"""Stable-Baselines3 with its CheckpointCallback."""
import glob
import os
import re
import time

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback

STEPS = int(os.environ.get("STEPS", "1600"))


class Report(BaseCallback):
    def _on_rollout_end(self):
        print(f"step {self.num_timesteps} loss {self.num_timesteps % 7:.1f}", flush=True)
        time.sleep(0.3)  # an environment that is not a toy takes its time

    def _on_step(self):
        return True


saved = sorted(glob.glob("out/ppo_*_steps.zip"), key=lambda name: int(re.search(r"(\d+)_steps", name)[1]))
if saved:
    model = PPO.load(saved[-1], env=gymnasium.make("CartPole-v1"), device="cpu")
    told = int(re.search(r"(\d+)_steps", saved[-1])[1])
    assert model.num_timesteps == told, (model.num_timesteps, told)
    print(f"resumed after step {told}", flush=True)
else:
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32, device="cpu", seed=1)
model.learn(STEPS - model.num_timesteps, reset_num_timesteps=False,
            callback=[CheckpointCallback(160, "out", name_prefix="ppo"), Report()])
print("done", flush=True)
