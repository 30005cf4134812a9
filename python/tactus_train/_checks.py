"""What is looked at before and while a run trains, so that a mistake is one line that says what to do."""

from __future__ import annotations

import multiprocessing
import operator
import re
import sys

import torch

from .errors import Error, UnavailableError, UsageError

OLDEST_TORCH = (1, 13)
_SEEN_ROUNDS = 2  # after which a parameter without a gradient is told

_needs_gradient = operator.attrgetter("requires_grad")


def require_place() -> None:
    """That a run may begin in this process."""
    if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < OLDEST_TORCH:
        raise UnavailableError(f"torch is {torch.__version__}; needed is {'.'.join(map(str, OLDEST_TORCH))} or later.")
    if torch.utils.data.get_worker_info() is not None:
        raise UsageError("init() in a DataLoader's worker. Call it in the process that trains, under "
                         "if __name__ == \"__main__\":.")
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError("init() in a process that was started to help the one that trains, and reads the program anew. Put what "
                         "trains under if __name__ == \"__main__\":.")


def require_optimizer(optimizer, parameters) -> None:
    """That it steps these parameters (name, parameter), all of them and no others."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise UsageError(f"optimizer: found a {type(optimizer).__name__}, wanted is one of torch.optim.", "optimizer")
    if hasattr(optimizer.step, "of_tactus"):
        raise UsageError("optimizer: it is attached to another run. Call that run's detach() or close() first.", "optimizer")
    own = {id(parameter) for _, parameter in parameters}
    stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"] if parameter.requires_grad}
    if stepped - own:
        raise UsageError("optimizer: it has parameters that the model does not have. Was the model replaced after the optimizer "
                         "was made?", "optimizer")
    missing = [name for name, parameter in parameters if id(parameter) not in stepped]
    if missing:
        raise UsageError(f"optimizer: it does not have {missing[-1]} ({len(missing)} such). Give it all parameters that need a "
                         "gradient, or set requires_grad_(False) on the others.", "optimizer")


def explain_memory(error: RuntimeError, samples: int) -> None:
    """Raises in its place where a pass of so many samples ran out of memory."""
    if not re.search(r"allocate memory|not enough memory|out of memory", str(error)):
        return
    advice = f" micro_batch={samples // 2} of run.loader() halves what a pass needs; this one had {samples} samples." if samples > 1 else ""
    raise Error(f"memory was short in run.backward(): {str(error).splitlines()[0]}.{advice}") from error


class Watched:
    """Which parameters are trained, as it was when they were attached."""

    def __init__(self, model: torch.nn.Module | None, named, trained):
        """named: all (name, parameter), trained: those that train."""
        self._model = model
        self._trained = {id(parameter) for _, parameter in trained}
        others = [(name, parameter) for name, parameter in named if id(parameter) not in self._trained]
        self._frozen = [parameter for _, parameter in others]
        self._names = [name for name, _ in others]
        self._untouched = list(range(len(trained)))  # by a backward pass, so far
        self._rounds = 0

    def require_frozen(self) -> None:
        """That who was frozen is so still."""
        if any(map(_needs_gradient, self._frozen)):
            self._refuse(next(name for name, parameter in zip(self._names, self._frozen) if parameter.requires_grad))

    def require_known(self) -> None:
        """That the model has no others that want to be trained."""
        for name, parameter in self._model.named_parameters() if self._model is not None else ():
            if parameter.requires_grad and id(parameter) not in self._trained:
                self._refuse(name)

    def see(self, versions: list[int]) -> None:
        """How often each gradient was changed, behind a batch's passes."""
        if self._rounds < _SEEN_ROUNDS:
            self._untouched = [i for i in self._untouched if versions[i] == 0]

    def round_closed(self, names: list[str], group: bool) -> None:
        """Says, once, who had no gradient so far; names: of those that are trained."""
        self._rounds += 1
        if self._rounds != _SEEN_ROUNDS or not self._untouched:
            return
        more = f" and {len(self._untouched) - 1} more" if len(self._untouched) > 1 else ""
        means = "in a group that counts as a gradient of zero" if group else "what has none stays as it is"
        print(f"tactus: no gradient in {_SEEN_ROUNDS} rounds for {names[self._untouched[-1]]}{more}: {means}", file=sys.stderr)

    @staticmethod
    def _refuse(name: str):
        raise UsageError(f"parameter {name} needs a gradient since run.attach(), and would not be trained. Call run.detach(), give it "
                         "to the optimizer, and attach again.", name)
