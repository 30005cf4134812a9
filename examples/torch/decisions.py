"""A picture of a run: loss and batch sizes by round, with a line where the plan changed (pip install matplotlib).

usage: decisions.py PICTURE [--epochs N]        alone it prints the reasons; those of a group are told by tactus
"""
import argparse

import tactus_train
import torch
from digits import bars
from torch import nn
from torch.nn import functional as F


def changes(rounds):
    """(round, what is new in its plan) of each that began with another plan than the one before."""
    for (_, _, former), (number, _, plan) in zip(rounds, rounds[1:]):
        for name in ("batch_sizes", "synchronization", "period", "aggregation", "learning_rate"):
            if getattr(plan, name) != getattr(former, name):
                yield number, f"{name}: {getattr(plan, name)}"


def draw(rounds, path):
    """rounds: (round, loss, plan) of each."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, (losses, sizes) = pyplot.subplots(2, sharex=True, figsize=(9, 5), constrained_layout=True)
    losses.plot([number for number, _, _ in rounds], [loss for _, loss, _ in rounds], linewidth=1)
    losses.set_ylabel("training loss")
    for member in range(max(len(plan.batch_sizes) for _, _, plan in rounds)):
        shares = [(number, plan.batch_sizes[member]) for number, _, plan in rounds if member < len(plan.batch_sizes)]
        sizes.step(*zip(*shares), where="post", label=f"member {member}")
    sizes.set(xlabel="round", ylabel="samples a step", ylim=(0, None))
    sizes.legend()
    for number, what in changes(rounds):
        for axes in (losses, sizes):
            axes.axvline(number, color="gray", linewidth=0.5)
        losses.annotate(what, (number, 1), xycoords=("data", "axes fraction"), rotation=90, va="top", ha="right",
                        fontsize=6)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(1)

    # How a group adapts is its job's to say.
    run = tactus_train.init(name="digits", adapt={"batch": "auto", "learning_rate": "adascale"})
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 36, 8))
    loader = run.loader(bars(8000, seed=1), batch_size=32)
    run.attach(model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), epochs=options.epochs)
    rounds = []
    for _ in run.epochs():
        for x, y in loader:
            run.backward(F.cross_entropy(model(x), y))
            step = run.step()
            if step.round_closed:
                plan = run.plan
                rounds.append((run.round, step.loss, plan))
                for found in plan.decisions:
                    change = f"{found['axis']} {found['from'] or 'begins'} -> {found['to']}"
                    print(f"round {found['round']}: {change}: {found['reason']}")
    if run.rank == 0:
        draw(rounds, options.picture)


if __name__ == "__main__":
    main()
