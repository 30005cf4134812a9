"""Commands under a limit, and what became of them."""
import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import time

KILL_AFTER_SECONDS = 5  # for what a command does when it is told to end


class Missing(Exception):
    """The one thing that a step lacks."""


class Failed(Exception):
    """Why a step failed."""


class OutOfTime(Exception):
    """A step's command did not end within `seconds`."""

    def __init__(self, seconds):
        super().__init__(f"stopped after its limit of {seconds:.0f} s")


class Deadline:
    """What is left of the time for everything. Without a limit there is always more."""

    RESERVE_SECONDS = 15  # of the whole: to report, and for what a killed command does to a machine

    def __init__(self, total, now=time.monotonic):
        self.total, self.now = total, now
        self.begun = now()

    def spent(self):
        return self.now() - self.begun

    def left(self):
        if self.total is None:
            return float("inf")
        return self.total - self.spent() - self.RESERVE_SECONDS


@dataclasses.dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def end_group(process):
    """Ends a command and all that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(KILL_AFTER_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


@contextlib.contextmanager
def held_back(number):
    """A signal that comes meanwhile comes at the end: a command that has begun must be known to whom the signal ends."""
    came = []
    former = signal.signal(number, lambda *_: came.append(number))
    try:
        yield
    finally:
        signal.signal(number, former)
        if came:
            signal.raise_signal(number)


def run(command, limit, folder, name, environment=None, cwd=None):
    """Runs a command, with what it says added to folder/name.out and name.err. Throws OutOfTime and Missing."""
    out, err = folder / f"{name}.out", folder / f"{name}.err"
    with open(out, "ab") as into, open(err, "ab") as errors:
        begins = into.tell(), errors.tell()
        process = None
        try:
            with held_back(signal.SIGTERM):
                process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=into,
                                           stderr=errors, env={**os.environ, **(environment or {})}, cwd=cwd,
                                           start_new_session=True)
            code = process.wait(limit)
        except OSError as error:
            raise Missing(f"{command[0]}: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise OutOfTime(limit) from None
        finally:
            if process is not None:
                end_group(process)
    said = [path.read_bytes()[begin:].decode(errors="replace") for path, begin in zip((out, err), begins)]
    return Ended(code, *said)


def find_tool(name):
    """In the path, or where the toolkit installs itself. Throws Missing."""
    toolkit = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / name
    found = shutil.which(name) or (str(toolkit) if toolkit.exists() else None)
    if found is None:
        raise Missing(name)
    return found
