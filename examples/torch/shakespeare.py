"""A small transformer that learns to continue a text, byte by byte.

usage: shakespeare.py TEXT [--steps N] [--width N]
"""
import argparse
import pathlib

import tactus_train
import torch
from torch import nn
from torch.nn import functional as F

CONTEXT = 64


class Windows(torch.utils.data.Dataset):
    """The stretches of CONTEXT bytes of a text, and each one's next bytes."""

    def __init__(self, text: bytes):
        self.bytes = torch.tensor(list(text))

    def __len__(self):
        return (len(self.bytes) - 1) // CONTEXT

    def __getitem__(self, index):
        stretch = self.bytes[index * CONTEXT:(index + 1) * CONTEXT + 1]
        return stretch[:-1], stretch[1:]


class Transformer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 256)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1), persistent=False)

    def forward(self, x):
        places = torch.arange(x.shape[1])
        return self.head(self.layers(self.bytes(x) + self.places(places), self.mask[:x.shape[1], :x.shape[1]]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(1)

    run = tactus_train.init(name="shakespeare")
    model = Transformer(options.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loader = run.loader(Windows(options.text.read_bytes()), batch_size=16)
    run.attach(model, optimizer, steps=options.steps, clip_norm=1.0)
    for _ in run.epochs():
        for x, y in loader:
            run.backward(F.cross_entropy(model(x).transpose(1, 2), y))
            step = run.step()
            if step and run.round % 20 == 0 and run.rank == 0:
                print(f"step {run.round}: loss {step.loss:.3f}")
    if run.rank == 0:
        print(run.reason)


if __name__ == "__main__":
    main()
