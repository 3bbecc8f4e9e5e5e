# SPDX-License-Identifier: Apache-2.0
"""Lightning: ModelCheckpoint writes into the checkpoint directory, ckpt_path takes the newest of it."""
import glob
import os

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

FOLDER = os.environ.get("GRIDCTL_CKPT_DIR", "checkpoints")
steps = int(os.environ.get("STEPS", "200"))


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))

    def training_step(self, batch, index):
        (x,) = batch
        return (self.net(x) - x.sum(1, keepdim=True)).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


lightning.seed_everything(0)
generator = torch.Generator().manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(4096, 16, generator=generator))
model = Model()
trainer = lightning.Trainer(
    accelerator="gpu" if torch.cuda.is_available() else "cpu",
    devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
    num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
    strategy="ddp" if int(os.environ.get("WORLD_SIZE", "1")) > 1 else "auto",
    max_steps=steps,
    callbacks=[ModelCheckpoint(dirpath=FOLDER, filename="{step}", every_n_train_steps=20, save_top_k=2,
                               monitor="step", mode="max")],
    enable_progress_bar=False,
    logger=False,
)
saved = sorted(glob.glob(os.path.join(FOLDER, "step=*.ckpt")), key=lambda path: int(path.rsplit("=", 1)[1][:-5]))
trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=32), ckpt_path=saved[-1] if saved else None)
if trainer.is_global_zero:
    print("done at step %d: %.6f" % (trainer.global_step, sum(p.sum().item() for p in model.parameters())), flush=True)
