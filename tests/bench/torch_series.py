# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model (12.6 million parameters, AdamW) on the text of its standard library and saves it by
torch.save into OUT/0, OUT/1, …, 10 steps apart. Runs in the image localhost/torch:cpu, for tests/bench/store.py.

    torch_series.py OUT SAVES
"""
import os
import sys

import torch

CONTEXT, WIDTH, STEPS = 32, 512, 10


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(256, WIDTH)
        self.place = torch.nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, norm_first=True, dropout=0.0)
        self.layers = torch.nn.TransformerEncoder(layer, 4)
        self.head = torch.nn.Linear(WIDTH, 256)

    def forward(self, tokens):
        hidden = self.embed(tokens) + self.place[: tokens.shape[1]]
        mask = torch.nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.layers(hidden, mask))


def main():
    out, saves = sys.argv[1], int(sys.argv[2])
    torch.manual_seed(7)
    with open(os.__file__, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for number in range(saves):
        for _ in range(STEPS):
            at = torch.randint(len(text) - CONTEXT - 1, (1,))
            batch = torch.stack([text[i : i + CONTEXT + 1] for i in at])
            loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        os.makedirs(f"{out}/{number}")
        torch.save({"step": (number + 1) * STEPS, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
                   f"{out}/{number}/ckpt.pt")


if __name__ == "__main__":
    main()
