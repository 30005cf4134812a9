"""Fine-tunes a small text model by low-rank adapters: first the whole model learns one text, then adapters alone another.

usage: lora.py FIRST SECOND [--steps N] [--rank R]
"""
import argparse
import pathlib

import tactus_train
import torch
from torch import nn
from torch.nn import functional as F

CONTEXT = 32


class Windows(torch.utils.data.Dataset):
    """CONTEXT bytes of a text, and the same one byte on."""

    def __init__(self, path):
        self.text = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()), dtype=torch.uint8).long()

    def __len__(self):
        return (len(self.text) - 1) // CONTEXT

    def __getitem__(self, i):
        window = self.text[i * CONTEXT:(i + 1) * CONTEXT + 1]
        return window[:-1], window[1:]


class Lora(nn.Module):
    """A linear layer that stays as it is, and beside it one of a low rank that begins with nothing."""

    def __init__(self, layer, rank):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / rank)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T @ self.up.T


def train(model, path, steps, rate):
    """The loss that it ends with."""
    loss = 0.0
    with tactus_train.init(name="lora") as run:
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate)
        loader = run.loader(Windows(path), batch_size=16)
        run.attach(model, optimizer, clip_norm=1.0, steps=steps)
        for _ in run.epochs():
            for x, y in loader:
                run.backward(F.cross_entropy(model(x).flatten(0, 1), y.flatten()))
                loss = run.step().loss or loss
    return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rank", type=int, default=4)
    said = parser.parse_args()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(256, 48), nn.Linear(48, 96), nn.GELU(), nn.Linear(96, 256))
    print(f"the whole model: loss {train(model, said.first, said.steps, 3e-3):.3f}")
    model.requires_grad_(False)
    for place in (1, 3):
        model[place] = Lora(model[place], said.rank)
    few = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"{few} numbers beside it: loss {train(model, said.second, said.steps, 1e-2):.3f}")


if __name__ == "__main__":
    main()
