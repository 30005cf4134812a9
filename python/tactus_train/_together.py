"""What members of a group work out together while it stands still between two epochs."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

import torch

if TYPE_CHECKING:
    from .run import Run


@dataclasses.dataclass(frozen=True)
class Edge:
    """Where the group stands still."""

    epochs: int  # used whole
    rows: list[list[float]] | None  # what those who offered alike have told; None: nothing was offered
    place: int  # of this member among them


def share(count: int, weights: Sequence[float], place: int) -> range:
    """Of `count` things in a row, those of one of the members, by their weights."""
    if not sum(weights) > 0:
        weights = [1] * len(weights)
    ends = [round(count * sum(weights[:members]) / sum(weights)) for members in range(len(weights) + 1)]
    return range(ends[place], ends[place + 1])


def items(found: Any) -> Iterable[tuple[str, Any]]:
    """Of a number or a dict of them, by name."""
    return sorted(found.items()) if isinstance(found, Mapping) else [("", found)]


def result(means: Mapping[str, float]) -> float | dict[str, float]:
    return means[""] if set(means) == {""} else dict(means)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Of a dataset by a function of a batch; in evaluation mode, and without gradients."""

    fn: Callable[..., Any]
    dataset: Sequence
    batch_size: int
    collate: Callable[[list], Any]
    modules: Sequence[torch.nn.Module]

    @property
    def batches(self) -> int:
        return -(-len(self.dataset) // self.batch_size)

    def sums(self, batches: range) -> dict[str, float]:
        """Over the samples of these batches. Of none, zeros: the first batch tells what there would be."""
        sums: dict[str, float] = {}
        training = [module.training for module in self.modules]
        try:
            for module in self.modules:
                module.training = False
            with torch.no_grad():
                for number in batches or range(1):
                    for key, value in items(self._found(number)):
                        sums[key] = sums.get(key, 0.0) + (value if batches else 0.0)
        finally:
            for module, was in zip(self.modules, training):
                module.training = was
        return sums

    def _found(self, number: int) -> Any:
        begin = number * self.batch_size
        samples = range(begin, min(begin + self.batch_size, len(self.dataset)))
        batch = self.collate([self.dataset[i] for i in samples])
        found = self.fn(*batch) if isinstance(batch, (list, tuple)) else self.fn(batch)
        sums = {}
        for key, value in items(found):
            value = torch.as_tensor(value, dtype=torch.float64)
            sums[key] = float(value.sum()) if value.dim() else float(value) * len(samples)
        return sums


def gather(run: Run, what: str, values: list[float], last: bool = False) -> Edge | None:
    """With what those members told who do the same; `last`: once all others are done with what is none. None: somebody was lost
    meanwhile; then, where there is an edge, it is done anew."""
    run._offered, run._edge = len(values), None
    run._link.offer(values, what, last)
    run._serve()
    return run._edge if run._edge is not None and run._edge.rows else None


def sum_of(run: Run, what: str, values: Mapping[str, float], last: bool = False) -> dict[str, float] | None:
    keys = sorted(values)
    edge = gather(run, " ".join([what, *keys]), [values[key] for key in keys], last)
    return dict(zip(keys, map(sum, zip(*edge.rows)))) if edge else None


def shared_out(run: Run, evaluation: Evaluation) -> dict[str, float] | None:
    """Sums over all samples, of all members that call it here. None: there is nobody to share it out with."""
    if run._edge is None:
        return None
    what = f"{len(evaluation.dataset)} {evaluation.batch_size}"
    while run._edge is not None:
        sizes = run._link.plan()["batch_sizes"]
        edge = gather(run, "evaluate " + what, [float(sizes[run.rank]) if run.rank < len(sizes) else 0.0])
        if edge is None:
            continue
        mine = share(evaluation.batches, [row[0] for row in edge.rows], edge.place)
        sums = sum_of(run, "evaluated " + what, evaluation.sums(mine))
        if sums is not None:
            return sums
    print("tactus: a member left while all evaluated; this one evaluates all samples by itself", file=sys.stderr)
    return None
