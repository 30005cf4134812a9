"""Gradients go to the other members while the rest of a backward pass is computed."""

from __future__ import annotations

import torch

from .errors import UsageError

_ADVICE = "Or leave overlap=True out of run.attach()."


class Overlap:
    """Tells the library of each parameter whose gradient is complete, as it becomes so, in the last pass of a step.

    A gradient that is told leaves, and its memory is the library's until the step. So a batch has one pass then, and what came
    behind it is an error that says so: never a sum that is not the gradients'.
    """

    def __init__(self, flat, ready):
        """ready: takes the number of a parameter whose gradient is complete."""
        self._flat, self._ready = flat, ready
        self._hooks: list = []  # (what holds it, its handle), by parameter
        self._early = 0  # so many parameters, from the first one on, may be told in this batch
        self._passing = False
        self._told: dict[int, int] = {}  # parameter: its gradient's count of changes then

    def begin_batch(self, early: int):
        """early: as tactus_request has it. Nothing is hooked before there is somebody to send to."""
        self._early = early
        self._told.clear()
        while len(self._hooks) < early:
            self._hooks.append(self._hook(len(self._hooks)))

    def __enter__(self):
        self.require_nothing_told("run.backward(loss) was called again for this batch", "Add the losses up, and call it once.")
        self._passing = True

    def __exit__(self, *_):
        self._passing = False

    def require_nothing_told(self, what: str, instead: str):
        if self._told:
            raise UsageError(f"{what}, when gradients were with the other members already. {instead} {_ADVICE}")

    def check_told(self, versions: list[int]):
        """That those have not changed since. Behind a pass; versions: of all gradients, now."""
        for i, was in self._told.items():
            if versions[i] != was:
                self._refuse_change(i)

    def release(self):
        for _, handle in self._hooks:
            handle.remove()
        self._hooks.clear()

    def _hook(self, i: int):
        parameter = self._flat.parameters[i]
        if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch 2.1
            return None, parameter.register_post_accumulate_grad_hook(lambda _: self._complete(i))
        with torch.enable_grad():
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]  # adds to .grad; there as long as somebody holds it
        return node, node.register_hook(lambda *_: self._complete(i))

    def _complete(self, i: int):
        if not self._passing or i >= self._early:
            return
        if i in self._told:  # of passes within a pass, such as those of checkpoint(use_reentrant=True)
            self._refuse_change(i)
        version = self._flat.version_at_home(i)
        if version is None:
            return  # somebody took the view away: it is brought home behind the pass, and final then
        self._told[i] = version
        self._ready(i)

    def _refuse_change(self, i: int):
        raise UsageError(f"the gradient of {self._flat.names[i]} was changed when it was with the other members already: by a hook on "
                         f"the parameter, or by a part of the model that has a backward pass of its own. {_ADVICE}", self._flat.names[i])
