"""What goes wrong. A fault chooses whom it meets, begins, and is over after its `seconds`; a class a kind."""
import os
import signal
import subprocess
import sys

from hosts import COORDINATOR

PAUSE_SECONDS = (1, 20)
BACK_SECONDS = (0, 5)  # what was killed is started again after
BALLAST = "ballast"
MEMORY_MARGIN = 8 << 20  # bytes
HOG_BYTES = 64 << 20
# Takes memory, page by page, and ends; the kernel is to look for somebody else first.
HOG = f"""
open("/proc/self/oom_score_adj", "w").write("-1000")
open(__import__("sys").argv[1] + "/cgroup.procs", "w").write("0")
memory = bytearray({HOG_BYTES})
for at in range(0, len(memory), 4096): memory[at] = 1
"""


class NoTarget(Exception):
    """There is nobody whom this could meet now."""


class Fault:
    kind = ""
    seconds_between = (0, 0)

    def __init__(self, hosts, dice, longest):
        self.hosts = hosts
        self.dice = dice
        least, most = self.seconds_between
        self.seconds = dice.uniform(least, max(least, min(most, longest)))
        self.on = set()  # names of daemons and links that it meets: one fault at a time each
        self.choose()

    def choose(self):
        raise NotImplementedError

    def begin(self):
        raise NotImplementedError

    def end(self):
        pass

    def a_worker(self):
        found = sorted(self.hosts.workers())
        if not found:
            raise NoTarget
        return self.dice.choice(found)


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class KillWorker(Fault):
    kind = "worker killed"

    def choose(self):
        self.pid = self.a_worker()

    def begin(self):
        send(self.pid, signal.SIGKILL)


class PauseWorker(Fault):
    kind = "worker stopped"
    seconds_between = PAUSE_SECONDS

    def choose(self):
        self.pid = self.a_worker()
        self.on = {f"worker {self.pid}"}

    def begin(self):
        send(self.pid, signal.SIGSTOP)

    def end(self):
        send(self.pid, signal.SIGCONT)


class KillDaemon(Fault):
    seconds_between = BACK_SECONDS

    def begin(self):
        if self.name in self.hosts.processes:
            self.hosts.kill(self.name)

    def end(self):
        if self.name not in self.hosts.processes:
            self.hosts.start(self.name)


class KillAgent(KillDaemon):
    kind = "agent killed"

    def choose(self):
        self.name = self.dice.choice(self.hosts.nodes)
        self.on = {self.name}


class KillCoordinator(KillDaemon):
    kind = "coordinator killed"

    def choose(self):
        self.name = COORDINATOR
        self.on = {self.name}


class PauseDaemon(Fault):
    seconds_between = PAUSE_SECONDS

    def begin(self):
        self.hosts.signal(self.name, signal.SIGSTOP)

    def end(self):
        self.hosts.signal(self.name, signal.SIGCONT)


class PauseAgent(PauseDaemon):
    kind = "agent stopped"
    choose = KillAgent.choose


class PauseCoordinator(PauseDaemon):
    kind = "coordinator stopped"
    choose = KillCoordinator.choose


class CutLink(Fault):
    """Between two hosts, or one and all others; what is sent goes nowhere, in one direction or in both."""
    kind = "link cut"
    seconds_between = PAUSE_SECONDS

    def choose(self):
        names = list(self.hosts.numbers)
        source = self.dice.choice(names)
        others = [name for name in names if name != source]
        targets = [self.dice.choice(others)] if self.dice.random() < 0.7 else others
        self.ways = [(source, target) for target in targets]
        if self.dice.random() < 0.5:
            self.ways += [(target, source) for target in targets]
        elif self.dice.random() < 0.5:
            self.ways = [(target, source) for target in targets]
        self.on = {f"{source} to {target}" for source, target in self.ways}

    def begin(self):
        for way in self.ways:
            self.hosts.cut(*way)

    def end(self):
        for way in self.ways:
            self.hosts.mend(*way)


class FillDisk(Fault):
    kind = "disk full"
    seconds_between = PAUSE_SECONDS

    def choose(self):
        self.name = self.dice.choice(list(self.hosts.numbers))
        self.on = {f"disk of {self.name}"}
        self.path = self.hosts.folder / self.name / BALLAST

    def begin(self):
        """To the last byte."""
        block = bytes(1 << 20)
        with open(self.path, "wb", buffering=0) as ballast:
            size = len(block)
            while size > 0:
                try:
                    if ballast.write(block[:size]) < size:
                        size //= 2
                except OSError:
                    size //= 2

    def end(self):
        self.path.unlink()


class TakeMemory(Fault):
    """A node's cgroup has little more than is in use, and somebody else in it wants more: the kernel kills one of the node's
    processes, a worker as a rule."""
    kind = "no memory"
    seconds_between = (2, 2)

    def choose(self):
        self.a_worker()
        self.name = self.dice.choice(self.hosts.nodes)
        self.on = {self.name, f"memory of {self.name}"}
        group = self.hosts.group_of(self.name)
        first = (group / "memory.limit_in_bytes").exists()
        self.limit = group / ("memory.limit_in_bytes" if first else "memory.max")
        self.usage = group / ("memory.usage_in_bytes" if first else "memory.current")
        self.none = "-1" if first else "max"

    def begin(self):
        try:
            self.limit.write_text(str(int(self.usage.read_text()) + MEMORY_MARGIN))
        except OSError:
            return  # more came into use meanwhile
        self.hog = subprocess.Popen([sys.executable, "-c", HOG, self.limit.parent], stderr=subprocess.DEVNULL)

    def end(self):
        self.limit.write_text(self.none)
        if hasattr(self, "hog"):
            self.hog.kill()
            self.hog.wait()


KINDS = [KillWorker, PauseWorker, KillAgent, KillCoordinator, PauseAgent, PauseCoordinator, CutLink, FillDisk, TakeMemory]


def kinds_here(hosts):
    """Those that this machine can make."""
    return [kind for kind in KINDS if kind is not TakeMemory or hosts.group]
