"""What the loss curves of a cell's rows say: who reached the target when, and how far auto was from it. Pure."""
import bisect
import dataclasses
import math
import statistics

from harness import reached

# What auto is to reach, of the time of the best fixed plan and of every_step.
AIM_BEST = 1.15
AIM_BEST_SHORT = 1.35  # where the run is shorter than SHORT_SECONDS
AIM_EVERY_STEP = 1.10
SHORT_SECONDS = 120

TARGET_AT = 0.9      # of the budget: until then the best fixed plan has reached the target
SLACK = 0.01         # of the lowest loss, by which the target is above it, but no more than
SLACK_OF_FALL = 0.1  # of what that loss has fallen
WINDOW = 0.025       # of the budget, on either side: what a loss is averaged over
POINTS = 200         # of a curve
DIVERGED = 1e9       # in the place of a loss that is not finite


def at(points, seconds):
    """The loss then, between two points; after the last one its own. points: [(seconds, loss)], from 0 s on."""
    after = bisect.bisect_left(points, (seconds, -math.inf))
    if after == len(points):
        return points[-1][1]
    if after == 0 or points[after][0] == seconds:
        return points[after][1]
    (x, loss), (next_x, next_loss) = points[after - 1], points[after]
    return loss + (next_loss - loss) * (seconds - x) / (next_x - x)


def mean_curve(runs, budget):
    """[(seconds, mean of the runs' smoothed losses)] at even distances up to the budget. runs: [[(seconds, loss or None)]]."""
    curves = [smoothed(run, WINDOW * budget) for run in runs]
    grid = [budget * i / POINTS for i in range(POINTS + 1)]
    return [(x, statistics.fmean(at(curve, x) for curve in curves)) for x in grid]


def smoothed(points, width):
    """[(seconds, mean of the losses not farther than `width` away)]: what a single evaluation says depends on the last few
    batches. points: [(seconds, loss or None)]."""
    known = [(x, loss if loss is not None and math.isfinite(loss) else DIVERGED) for x, loss in points]
    result, first, last = [], 0, 0
    for x, _ in known:
        while known[first][0] < x - width:
            first += 1
        while last < len(known) and known[last][0] <= x + width:
            last += 1
        result.append((x, statistics.fmean(loss for _, loss in known[first:last])))
    return result


def lowest(curve, until=math.inf):
    return min(loss for seconds, loss in curve if seconds <= until)


@dataclasses.dataclass(frozen=True)
class Regret:
    """Of one row against another."""
    ratio: float   # of their times to the target
    reached: bool  # by the row


def regret(row, peer, target, budget):
    """Where the row never had the target's loss: its whole time over that of the peer to the loss that the row did have, which
    is what the ratio is at least, at a target that both have reached."""
    seconds, own = reached(row, target), reached(peer, target)
    if seconds is not None:
        return Regret(quotient(seconds, own), True)
    return Regret(quotient(budget, reached(peer, lowest(row))), False)


def quotient(seconds, peer):
    """Of two times, either of which may be 0 where nothing is learned."""
    if peer == 0:
        return 1.0 if seconds == 0 else math.inf
    return seconds / peer


@dataclasses.dataclass(frozen=True)
class Figures:
    """Of a cell."""
    target: float
    times: dict             # {label: seconds to the target, or None}
    best: str               # of the fixed plans that combine over all
    best_regrets: dict      # {label: Regret against that one}
    every_step: Regret      # of auto, at every_step's own target
    best_apart: str | None  # of the plans apart


def tenths(curve, first, least):
    """Seconds at which the curve has come each tenth of the way from the loss `first` down to `least`, both above 0, or None. The
    way is the logarithm's: a loss that falls like a power of time has hardly begun where half of the difference is gone."""
    return [reached(curve, first * (least / first) ** (tenth / 10)) for tenth in range(1, 11)]


def target_of(curves, budget):
    """The lowest loss that one of the curves has in time, and a little more, so that chance in it counts for little."""
    best = min(curves, key=lambda curve: lowest(curve, TARGET_AT * budget))
    least, first = lowest(best, TARGET_AT * budget), best[0][1]
    return least + min(SLACK * abs(least), SLACK_OF_FALL * (first - least))


def figures(curves, budget, apart=()):
    """curves: {label: [(seconds, loss)]}; "auto" is one of them, "every_step" another; all but the first are fixed plans. `apart`:
    those of them that auto is not measured by."""
    fixed = {label: curve for label, curve in curves.items() if label != "auto" and label not in apart}
    target = target_of(fixed.values(), budget)
    times = {label: reached(curve, target) for label, curve in curves.items()}
    best = min(fixed, key=lambda label: math.inf if times[label] is None else times[label])
    step = curves["every_step"]
    regrets = {label: regret(curve, curves[best], target, budget) for label, curve in curves.items()}
    return Figures(target=target, times=times, best=best, best_regrets=regrets,
                   every_step=regret(curves["auto"], step, target_of([step], budget), budget),
                   best_apart=min(apart, key=lambda label: (not regrets[label].reached, regrets[label].ratio), default=None))
