"""CIFAR-10 from its binary batches, by a small convolutional network; pictures are cropped and flipped at random.

usage: cifar.py FOLDER [--epochs N] [--save FILE]
       tactus run --workers 4 -- python3 cifar.py FOLDER
"""
import argparse
import pathlib

import numpy
import tactus_train
import torch
from torch import nn
from torch.nn import functional as F

RECORD = 1 + 3 * 32 * 32  # a label and a picture


def read(paths):
    records = numpy.concatenate([numpy.fromfile(path, numpy.uint8).reshape(-1, RECORD) for path in paths])
    pictures = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).astype(numpy.float32)) / 127.5 - 1
    return torch.utils.data.TensorDataset(pictures, torch.from_numpy(records[:, 0].astype(numpy.int64)))


class Varied(torch.utils.data.Dataset):
    """The pictures, each time moved by a few pixels and perhaps mirrored."""

    def __init__(self, pictures):
        self.pictures = pictures

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        picture, label = self.pictures[i]
        down, right = torch.randint(0, 9, (2,)).tolist()
        moved = F.pad(picture, (4, 4, 4, 4))[:, down:down + 32, right:right + 32]
        return (moved.flip(2) if torch.rand(()) < 0.5 else moved), label


def network():
    def block(inside, outside):
        return [nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*block(3, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(64 * 16, 10))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--save")
    said = parser.parse_args()
    torch.manual_seed(1)
    train, test = read(sorted(said.folder.glob("data_batch_*.bin"))), read([said.folder / "test_batch.bin"])

    run = tactus_train.init(name="cifar")
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    loader = run.loader(Varied(train), batch_size=64)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=said.epochs * len(loader) + 1)
    run.attach(model, optimizer, scheduler=scheduler, epochs=said.epochs)
    loss = 0.0
    for epoch in run.epochs():
        for pictures, labels in loader:
            run.backward(F.cross_entropy(model(pictures), labels))
            loss = run.step().loss or loss
        right = run.evaluate(lambda x, y: (model(x).argmax(1) == y).float(), test, batch_size=500)
        if run.rank == 0:
            print(f"epoch {epoch}: loss {loss:.3f}, {right:.1%} right, batches {run.plan.batch_sizes}")
    if said.save:
        run.save(said.save)


if __name__ == "__main__":
    main()
