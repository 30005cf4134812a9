"""Several models of one shape, such as those of a sweep, computed in one pass.

    models = [make_model(seed) for seed in range(4)]
    fused = Fused(models)
    optimizer = torch.optim.SGD([{"params": model.parameters(), "lr": lr} for model, lr in zip(models, rates)], lr=0)
    ...
    losses = fused.losses(F.cross_entropy, fused(x), y)     # one of each model
    losses.sum().backward()

Parameters are stacked, and vmap runs each operation once for all. What is of one model stays its own: parameters, gradients, buffers,
and as the program likes optimizer, schedule, clipping and end.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterable, Iterator

import torch
from torch import nn

from .errors import ModelError, UnavailableError, UsageError

try:
    from torch.func import vmap
except ImportError:  # before torch 2.0
    try:
        from functorch import vmap
    except ImportError as error:
        raise UnavailableError("tactus_train.fused needs torch.func, of torch 2.0 or later, or functorch beside torch 1.13.") from error


class _Places:
    """Where a model keeps its tensors; a place is empty where the model can do without, as without a bias."""

    def __init__(self, model: nn.Module):
        self.names: list[str] = []
        self.are_buffers: list[bool] = []
        self._places: list[tuple[dict, str]] = []
        for path, module in model.named_modules():
            for tensors in (module._parameters, module._buffers):
                for name in tensors:
                    self.names.append(f"{path}.{name}" if path else name)
                    self.are_buffers.append(tensors is module._buffers)
                    self._places.append((tensors, name))

    def take(self) -> list[torch.Tensor | None]:
        return [tensors[name] for tensors, name in self._places]

    def put(self, values: list[torch.Tensor | None]) -> None:
        for (tensors, name), value in zip(self._places, values):
            tensors[name] = value

    @contextlib.contextmanager
    def holding(self, values: list[torch.Tensor | None]) -> Iterator[None]:
        own = self.take()
        self.put(values)
        try:
            yield
        finally:
            self.put(own)

    def first_of_each(self) -> list[int]:
        """For each place the first one with the same tensor: weights may be tied."""
        first: dict[int, int] = {}
        return [first.setdefault(id(value), place) for place, value in enumerate(self.take())]


class Fused(nn.Module):
    """Models of one structure, which differ in the values of their tensors alone. Called with a batch it gives what each of them
    gives, with a first dimension [models] in front.

    own_inputs  every model has a batch of its own: inputs and targets have that first dimension, too. Else one batch is for all.

    The code that runs is the first model's, once: it must not branch on values of tensors, and what of a model is neither parameter
    nor buffer has to be alike. Random numbers, as of dropout, are drawn for each model. A pass copies the parameters into their
    stack. Between passes the models are themselves; one that is to go on no more is left out of the next Fused.
    Raises ModelError, which names the first difference.
    """

    def __init__(self, models: Iterable[nn.Module], *, own_inputs: bool = False):
        super().__init__()
        self.models = nn.ModuleList(models)
        self.own_inputs = own_inputs
        if not self.models:
            raise UsageError("Fused() of no models.", "models")
        self._places = [_Places(model) for model in self.models]
        for number in range(len(self.models)):
            self._require_alike(number)
        firsts = self._places[0].first_of_each()
        values = self._places[0].take()
        self._stacked = [place for place, first in enumerate(firsts) if first == place and values[place] is not None]
        self._of_place = [None if value is None else self._stacked.index(first) for value, first in zip(values, firsts)]
        self._buffers_stacked = [place for place in self._stacked if self._places[0].are_buffers[place]]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Of tensors, or tuples, lists and dicts of them. `kwargs` are the same for all models."""
        if any(model.training != self.models[0].training for model in self.models):
            raise UsageError("some of the models are in training mode and some are not. Call train() or eval() of the Fused.")
        taken = [places.take() for places in self._places]
        stacks = [torch.stack([of_model[place] for of_model in taken]) for place in self._stacked]

        def of_one(tensors, *own):
            values = [None if index is None else tensors[index] for index in self._of_place]
            with self._places[0].holding(values):
                result = self.models[0](*own, **kwargs)
                after = self._places[0].take()
            return result, [after[place] for place in self._buffers_stacked]

        result, after = vmap(of_one, in_dims=(0, *self._dims(inputs)), randomness="different")(stacks, *inputs)
        for place, rows in zip(self._buffers_stacked, after):
            self._bring_home(place, rows, taken)
        return result

    def losses(self, loss: Callable[..., torch.Tensor], outputs: Any, *targets: Any) -> torch.Tensor:
        """`loss(output, *targets)` of each model [models]. Train by their sum: each model's gradient is then that of its own loss,
        where the mean's would be smaller by the number of models."""
        return vmap(loss, in_dims=(0, *self._dims(targets)), randomness="different")(outputs, *targets)

    # ---- Within

    def _dims(self, arguments: tuple) -> tuple[int | None, ...]:
        return (0 if self.own_inputs else None,) * len(arguments)

    @staticmethod
    @torch.no_grad()
    def _bring_home(place: int, rows: torch.Tensor, taken: list[list]) -> None:
        """What the pass made of a buffer, such as a running mean. One that it only read, such as a mask, is not written: backward passes
        may need it as it is. Versions do not tell, as not every operation under vmap counts them."""
        for of_model, row in zip(taken, rows):
            if not torch.equal(of_model[place], row):
                of_model[place].copy_(row)

    def _require_alike(self, number: int) -> None:
        first, model = self.models[0], self.models[number]
        who = f"model {number}"
        for module in model.modules():
            # Neither reads its parameters where they are put: all would be computed with the first model's.
            if isinstance(module, (nn.RNNBase, torch.jit.ScriptModule)):
                raise ModelError(f"{who} has a {type(module).__name__}, which keeps its parameters to itself; it cannot be fused.")
        for mine, its in zip(repr(first).splitlines(), repr(model).splitlines()):
            if mine != its:
                raise ModelError(f"{who} is not built as model 0: found {its.strip()!r}, wanted {mine.strip()!r}.")
        here, there = self._places[0], self._places[number]
        if here.names != there.names:
            odd = sorted(set(here.names) ^ set(there.names))
            raise ModelError(f"{who} is not built as model 0: {odd[0] if odd else 'the order of its parameters'} is in one of them alone.")
        for name, mine, its in zip(here.names, here.take(), there.take()):
            if _kind_of(mine) != _kind_of(its):
                raise ModelError(f"{who}: {name} is {_kind_of(its)}, that of model 0 is {_kind_of(mine)}.", name)
        if _ties(here) != _ties(there):
            raise ModelError(f"{who} is not built as model 0: other parameters are tied.")


def _kind_of(value: torch.Tensor | None) -> str:
    return "nothing" if value is None else f"{str(value.dtype)[6:]} {list(value.shape)} on {value.device}"


def _ties(places: _Places) -> list[int]:
    return [first for first, value in zip(places.first_of_each(), places.take()) if value is not None]
