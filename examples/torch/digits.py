"""A small classifier of pictures that it draws itself, so that nothing has to be downloaded.

usage: digits.py [--epochs N]
"""
import argparse

import tactus_train
import torch
from torch import nn
from torch.nn import functional as F


def bars(samples, seed):
    """Pictures of 12 by 12 with a bar at one of eight angles, in noise; and which."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 8, (samples,), generator=generator)
    angles = labels * torch.pi / 8
    at = torch.linspace(-1, 1, 12)
    distance = at[None, :, None] * torch.cos(angles)[:, None, None] + at[None, None, :] * torch.sin(angles)[:, None, None]
    pictures = (distance.abs() < 0.2).float() + 1.2 * torch.randn(samples, 12, 12, generator=generator)
    return torch.utils.data.TensorDataset(pictures[:, None], labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    epochs = parser.parse_args().epochs
    torch.manual_seed(1)
    train, test = bars(8000, seed=1), bars(1000, seed=2)

    run = tactus_train.init(name="digits")
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 36, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = run.loader(train, batch_size=64)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(loader))
    run.attach(model, optimizer, scheduler=scheduler, epochs=epochs)
    loss = 0.0
    for epoch in run.epochs():
        for x, y in loader:
            run.backward(F.cross_entropy(model(x), y))
            loss = run.step().loss or loss
        right = run.evaluate(lambda x, y: (model(x).argmax(1) == y).float(), test, batch_size=500)
        run.log(accuracy=right)
        if run.rank == 0:
            print(f"epoch {epoch}: loss {loss:.3f}, {right:.1%} right")
    if run.rank == 0:
        print(run.reason)


if __name__ == "__main__":
    main()
