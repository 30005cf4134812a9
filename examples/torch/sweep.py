"""The classifier of digits.py by several learning rates at once: one program, one pass for all of them.

usage: sweep.py [--rates 0.2,0.05,0.0125] [--epochs N] [--apart]
  --apart   model by model, to compare the time
"""
import argparse
import time

import tactus_train
import torch
from digits import bars
from tactus_train.fused import Fused
from torch import nn
from torch.nn import functional as F


def model_of(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 36, 8))


class Apart(nn.Module):
    """What Fused computes, one after the other."""

    def __init__(self, models):
        super().__init__()
        self.models = nn.ModuleList(models)

    def forward(self, x):
        return torch.stack([model(x) for model in self.models])

    def losses(self, loss, outputs, y):
        return torch.stack([loss(output, y) for output in outputs])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="0.2,0.05,0.0125")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--apart", action="store_true")
    options = parser.parse_args()
    rates = [float(rate) for rate in options.rates.split(",")]
    train, test = bars(8000, seed=1), bars(1000, seed=2)

    run = tactus_train.init(name="sweep")
    models = [model_of(seed=1) for _ in rates]
    fused = Apart(models) if options.apart else Fused(models)
    optimizer = torch.optim.SGD([{"params": model.parameters(), "lr": rate} for model, rate in zip(models, rates)],
                                lr=0, momentum=0.9)
    loader = run.loader(train, batch_size=64)
    run.attach(fused, optimizer, epochs=options.epochs)
    seconds = samples = 0.0
    for epoch in run.epochs():
        for x, y in loader:
            begin = time.perf_counter()
            losses = fused.losses(F.cross_entropy, fused(x), y)
            run.backward(losses.sum())
            seconds, samples = seconds + time.perf_counter() - begin, samples + len(x)
            run.step()
        right = run.evaluate(lambda x, y: {str(rate): (output.argmax(1) == y).float()
                                           for rate, output in zip(rates, fused(x))}, test, batch_size=500)
        if run.rank == 0:
            print(f"epoch {epoch}:", ", ".join(f"{rate} {share:.1%} right" for rate, share in right.items()))
    if run.rank == 0:
        print(f"{run.reason}; passes took {1e6 * seconds / samples / len(rates):.1f} us a sample and model")


if __name__ == "__main__":
    main()
