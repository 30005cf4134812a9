"""One call that changes files fails, or the process that makes it is killed there (see nth_failure/shim.cc)."""
import contextlib
import errno
import os
import pathlib

SHIM = os.environ["TACTUS_NTH_FAILURE_SHIM"]
# A disk that breaks and one that is full.
ERRORS = ("EIO", "ENOSPC")
KILLS = ("before", "after")
# In place of a folder: the calls that accept connections. What they fail with where a process has no file left.
ACCEPTS = "accept"
NO_FILE = "EMFILE"


class FailingCall:
    """The nth call on files below `below`, or of ACCEPTS, 0: none. how: of ERRORS or KILLS, or NO_FILE.
    program: that makes it; empty: any."""

    def __init__(self, nth, how, below, report, program=""):
        self.nth, self.how, self.below, self.report, self.program = nth, how, str(below), report, program

    @property
    def kills(self):
        return self.how in KILLS

    @contextlib.contextmanager
    def met_by_children(self):
        """Processes that are started meanwhile, and theirs, can meet it."""
        what = {"NTH_FAILURE_KILL": self.how} if self.kills else {"NTH_FAILURE_ERRNO": str(getattr(errno, self.how))}
        program = {"NTH_FAILURE_PROGRAM": self.program} if self.program else {}
        names = {"LD_PRELOAD": SHIM, "NTH_FAILURE_FOLDER": self.below, "NTH_FAILURE": str(self.nth),
                 "NTH_FAILURE_REPORT": str(self.report), **what, **program}
        os.environ.update(names)
        try:
            yield
        finally:
            for name in names:
                del os.environ[name]

    def met(self):
        """What the call was; empty: nobody came so far."""
        path = pathlib.Path(f"{self.report}.met")
        return path.read_text().strip().split(" ", 1)[1] if path.exists() else ""

    def count(self, program):
        """How many there were of the program's, in the process with the most."""
        calls = [line.split(" ", 2) for line in self.report.read_text().splitlines()]
        return max(int(number) for number, name, _ in calls if name == program)


def spread(calls, runs, hows):
    """Points (nth, how) evenly over so many calls; runs: a number, or "all": each call with each of `hows`."""
    if runs == "all":
        return [(nth, how) for nth in range(1, calls + 1) for how in hows]
    return [(1 + (2 * i + 1) * calls // (2 * int(runs)), hows[i % len(hows)]) for i in range(int(runs))]
