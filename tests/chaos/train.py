"""A program of PyTorch as its jobs have one: what its words say (SAMPLES SEED), until the job's `stop`."""
import sys

import tactus_train
import torch
from torch import nn


def data(samples):
    """Points, and which of five directions each goes furthest in."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(samples, 12, generator=generator)
    return torch.utils.data.TensorDataset(x, (x @ torch.randn(12, 5, generator=generator)).argmax(1))


def main():
    samples, seed = map(int, sys.argv[1:])
    torch.manual_seed(seed)
    run = tactus_train.init(seed=seed)
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 5))
    loader = run.loader(data(samples), batch_size=8)
    run.attach(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5), clip_norm=1, overlap=True)
    for _ in run.epochs():
        for x, y in loader:
            run.backward(nn.functional.cross_entropy(model(x), y))
            run.step()


if __name__ == "__main__":
    main()
