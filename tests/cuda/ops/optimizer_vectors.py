"""Prints the vectors of optimizer_vectors_test.cc: python3 tests/cuda/ops/optimizer_vectors.py

Computed once with torch 1.13.0 of Debian 12, on a CPU.
"""
import torch

PARAMETERS = [0.5, -1.25, 0.0, 3.0, -0.001]
GRADIENTS = [
    [0.1, -0.2, 0.3, 1.0, 1e-4],
    [-0.3, 0.4, 0.05, 2.0, -2e-4],
    [0.2, 0.2, -0.6, -1.5, 3e-4],
    [0.0, -0.7, 0.25, 0.5, -1e-4],
]
CASES = {
    "Sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "SgdDecay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05),
    "SgdMomentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SgdMomentumDecay": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.05),
    "SgdNesterovDecay": lambda p: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, weight_decay=0.05, nesterov=True
    ),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamDecay": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95), weight_decay=0.03),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
}


def parameters_after_all_steps(make_optimizer):
    parameters = torch.tensor(PARAMETERS, requires_grad=True)
    optimizer = make_optimizer([parameters])
    for gradients in GRADIENTS:
        parameters.grad = torch.tensor(gradients)
        optimizer.step()
    return parameters.detach().tolist()


for name, make_optimizer in CASES.items():
    values = ", ".join("%.9g" % value for value in parameters_after_all_steps(make_optimizer))
    print(f"{name}: {{{values}}}")
