"""What a run tells its loop."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Step:
    """What step() came to. True where it changed the parameters."""

    applied: bool
    round_closed: bool  # the samples of this step, of all members, are in the parameters, or were left out
    epoch_ended: bool
    loss: float | None  # mean over the round's samples of all members; None: the round goes on
    gradient_norm: float | None
    gain: float  # what the learning rate rule multiplied the optimizer's rates by

    def __bool__(self) -> bool:
        return self.applied


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is in force, and what was decided since it was asked for last."""

    version: int
    batch_sizes: list[int]
    synchronization: str
    period: int
    aggregation: str
    learning_rate: str
    decisions: list[dict]
