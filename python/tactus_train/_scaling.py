"""Loss scaling, for passes in float16: gradients that are too small for it, and those that became too large."""

from __future__ import annotations

import math

import torch

from .errors import UsageError

_WANTED = ("is_enabled", "scale", "update", "get_scale", "get_growth_factor", "get_backoff_factor", "get_growth_interval")


def of_scaler(scaler, flat) -> "LossScale | None":
    """None: nothing is to be scaled."""
    if scaler is None:
        return None
    if missing := [name for name in _WANTED if not callable(getattr(scaler, name, None))]:
        raise UsageError(f"scaler: found a {type(scaler).__name__} without {missing[0]}(), wanted is a GradScaler of torch's.", "scaler")
    return LossScale(scaler, flat) if scaler.is_enabled() else None


class LossScale:
    """What a GradScaler does, for run.backward() and run.step().

    Each gradient is divided on its way into .grad, so that what is added up, combined with the other members' and looked at is never
    scaled. One that became infinite is as any that is not finite: all members leave the round out, and so all scale alike.
    """

    def __init__(self, scaler, flat):
        self._scaler = scaler
        scaler.scale(flat.parameters[0].new_zeros(()))  # it has no scale before
        self.scale = self._first = float(scaler.get_scale())
        self._good = 0  # rounds in a row
        self._passing = False
        self._parameters = flat.parameters
        self._hooks: list = []

    def __enter__(self):
        if not self._hooks:
            self._hooks = [parameter.register_hook(self._divide) for parameter in self._parameters]
        self._passing = True

    def __exit__(self, *_):
        self._passing = False

    @property
    def rounds_to_find_it(self) -> int:
        """So many that are not finite may come in a row while the scale falls to 1."""
        falls = -math.log2(self._scaler.get_backoff_factor())
        return math.ceil(max(0.0, math.log2(self.scale)) / falls) if falls > 0 else 0

    def begin_group(self) -> None:
        """As at first: who joins knows no other scale, and all are to have the same."""
        self._good = 0
        if self.scale != self._first:
            self.scale = self._first
            self._scaler.update(self.scale)

    def round_closed(self, applied: bool) -> None:
        factor = 1.0
        self._good = self._good + 1 if applied else 0
        if not applied:
            factor = self._scaler.get_backoff_factor()
        elif self._good == self._scaler.get_growth_interval():
            factor, self._good = self._scaler.get_growth_factor(), 0
        scale = self.scale * factor
        if scale != self.scale and scale < torch.finfo(torch.float32).max:
            self.scale = scale
            self._scaler.update(scale)

    def release(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _divide(self, gradient: torch.Tensor) -> torch.Tensor | None:
        return gradient * (1 / self.scale) if self._passing else None
