"""A run: steps one after the other under one deadline, each told as soon as it has ended."""
import dataclasses
import time
import traceback
from collections.abc import Callable

from gpu_check import commands
from gpu_check.commands import Failed, Missing, OutOfTime
from gpu_check.report import Row

LEAST_SECONDS = 1  # in which something can be tried at all


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    stage: int | None       # None: where all is built here alone
    staged_seconds: float   # the longest that it may take on a machine where the whole run has minutes
    full_seconds: float     # and where it has an hour
    do: Callable            # of the Work; its remark, or None
    device: bool = True     # whether it needs one
    when: Callable = lambda work: True  # whether there is anything to do


class Work:
    def __init__(self, options, root, report, programs, deadline, folder):
        self.options, self.root, self.report, self.programs = options, root, report, programs
        self.deadline, self.folder = deadline, folder
        self.facts, self.figures = report.facts, report.figures
        self.no_device = ""  # why there is none, once that is known
        self.step, self.step_ends = None, 0.0

    def left(self):
        """Of the step that runs."""
        return max(self.step_ends - time.monotonic(), 0)

    def run(self, command, environment=None, cwd=None, allowed=(0,)):
        """Runs a command of the step. Throws Failed, Missing and OutOfTime."""
        begun = self.left()
        try:
            ended = commands.run(command, begun, self.folder, self.step.name, environment, cwd or self.root)
        except OutOfTime:
            raise OutOfTime(self.allowed) from None
        if ended.code not in allowed:
            raise Failed(f"failed with {ended.code}")
        return ended

    def need_device(self):
        if self.no_device:
            raise Missing(f"a CUDA device: {self.no_device}")
        if not self.facts["devices"]:
            why = self.facts["driver_library"]
            self.no_device = "the driver lists none" if why == "loads" else why
            raise Missing(f"a CUDA device: {self.no_device}")

    def take(self, step):
        """Runs a step, whatever becomes of it, and tells."""
        own = self.options.limit or (step.staged_seconds if self.options.staged else step.full_seconds)
        self.allowed = min(own, self.deadline.left())
        row = Row(step.name, "running")
        self.report.rows.append(row)
        self.report.write()  # whoever ends this run shall find what it was at
        begun = time.monotonic()
        self.step, self.step_ends = step, begun + self.allowed
        row.result, row.remark = self._outcome(step)
        row.seconds = time.monotonic() - begun
        self.report.write()
        print(f"gpu-check: {row.step}: {row.result}, {row.seconds:.0f} s" + (f" ({row.remark})" if row.remark else ""),
              flush=True)

    def _outcome(self, step):
        if self.allowed < LEAST_SECONDS:
            return f"not run: the deadline of {self.deadline.total:.0f} s is over", ""
        try:
            if step.device:
                self.need_device()
            return "passed", step.do(self) or ""
        except Missing as missing:
            return f"not run: needs {missing}", ""
        except (Failed, OutOfTime) as failure:
            return str(failure), ""
        except Exception:  # a mistake of ours in one step hides no other
            words = traceback.format_exc()
            (self.folder / f"{step.name}.err").open("a").write(words)
            return f"failed: {words.splitlines()[-1]}", ""

    def go(self, steps):
        for step in steps:
            if step.when(self):
                self.take(step)
