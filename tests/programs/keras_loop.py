# SPDX-License-Identifier: Apache-2.0
"""Keras with its own BackupAndRestore callback."""
import os
import time

import keras
import numpy

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
model.compile("adam", "mse")
inputs = numpy.random.default_rng(1).normal(size=(64, 8)).astype("float32")


class Report(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"step {epoch + 1} loss {logs['loss']:.6f}", flush=True)
        time.sleep(0.7)


model.fit(inputs, inputs.sum(1), epochs=int(os.environ.get("STEPS", "30")), batch_size=64, shuffle=False, verbose=0,
          callbacks=[Report(), keras.callbacks.BackupAndRestore("out/backup", delete_checkpoint=False)])
print("done", flush=True)
