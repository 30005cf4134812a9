"""What the planner and the engine must know of an optimizer."""

from __future__ import annotations

import torch


def _common(optimizer, key, default=None):
    """The value that all its groups have; `default` where they differ or have none."""
    values = {repr(group.get(key)): group.get(key) for group in optimizer.param_groups}
    return next(iter(values.values())) if len(values) == 1 else default


def of_optimizer(optimizer, states: int) -> dict:
    """As sdk/program.h has it."""
    facts = {"kind": "other", "buffers": states, "linear": False, "counts_steps": True, "second_decay": 0.0}
    if isinstance(optimizer, torch.optim.SGD):
        momentum = _common(optimizer, "momentum", 0.0)
        facts.update(kind="sgd", linear=states == 0, counts_steps=False, nesterov=bool(_common(optimizer, "nesterov", False)),
                     momentum=momentum, weight=1 - _common(optimizer, "dampening", 0.0))
        del facts["second_decay"]
    elif isinstance(optimizer, (torch.optim.Adam, torch.optim.AdamW)):
        beta1, beta2 = _common(optimizer, "betas", (0.9, 0.999))
        decoupled = isinstance(optimizer, torch.optim.AdamW)
        facts.update(kind="adamw" if decoupled else "adam", momentum=beta1, weight=1 - beta1, second_decay=beta2)
    return facts
