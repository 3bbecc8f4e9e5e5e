# SPDX-License-Identifier: Apache-2.0
"""A LightningModule with ModelCheckpoint(every_n_train_steps), resumed from `last`."""
import os
import time

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

lightning.seed_everything(1, verbose=False)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch, index):
        # Lightning begins its data anew when it goes on in the middle of an epoch: what is seen follows from the step.
        batch = torch.randn(32, 8, generator=torch.Generator().manual_seed(self.global_step))
        loss = (self.layers(batch).squeeze() - batch.sum(1)).square().mean()
        print(f"step {self.global_step + 1} loss {loss.item():.6f}", flush=True)
        time.sleep(0.1)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 32 * 200

    def __getitem__(self, index):
        return torch.randn(8, generator=torch.Generator().manual_seed(index))


saver = ModelCheckpoint("out", every_n_train_steps=5, save_last=True, save_top_k=1)
trainer = lightning.Trainer(max_steps=int(os.environ.get("STEPS", "80")), accelerator="cpu", callbacks=[saver], logger=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Model(), torch.utils.data.DataLoader(Data(), batch_size=32),
            ckpt_path="out/last.ckpt" if os.path.exists("out/last.ckpt") else None)
print("done", flush=True)
