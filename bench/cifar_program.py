"""A loop of PyTorch's that trains a TorchScript model on CIFAR-10 by sgd, to be compared with the C++ worker of the same model
and data: tactus runs it as a job's program.

usage: cifar_program.py MODEL DATA RATE MOMENTUM
"""
import sys

import torch
from torch.nn.functional import cross_entropy

import tactus_train
from snapshots import images


def main():
    model_path, data, rate, momentum = sys.argv[1:]
    torch.set_num_threads(1)
    run = tactus_train.init()
    model = torch.jit.load(model_path)
    optimizer = torch.optim.SGD(model.parameters(), lr=float(rate), momentum=float(momentum))
    # In passes as long as the C++ worker's, which has no bound on them.
    loader = run.loader(torch.utils.data.TensorDataset(*images(data)), batch_size=32, micro_batch=64)
    run.attach(model, optimizer)
    for _ in run.epochs():
        for pictures, labels in loader:
            run.backward(cross_entropy(model(pictures), labels))
            run.step()


if __name__ == "__main__":
    # As the C++ worker runs it: TorchScript's optimizing executor makes these passes longer.
    with torch.jit.optimized_execution(False):
        main()
