"""What a device does at the edges of rounds, from the trace that bench/device_trace/ writes.

A round's edge begins where the last kernel of the backward pass ends and ends where the next forward pass's first
kernel begins; in between are the worker's own kernels: norm, gate, optimizer, lanes. What lies there without any
operation of the compute stream is idle time that the round costs beyond its arithmetic.
"""
import collections
import dataclasses
import statistics

OWN = "tactus"            # in the (mangled) name of each kernel of ours
GATES = ("GateRoundKernel", "GateKernel")  # one of them once a round or step, behind its gradients' last kernel
WAITS = ("Synchronize", "EventQuery", "StreamQuery")  # calls by which a host waits


@dataclasses.dataclass(frozen=True)
class Operation:
    kind: str    # kernel, copy, clear
    stream: int
    begin: int   # ns
    end: int     # ns
    name: str

    def own(self):
        return self.kind != "kernel" or OWN in self.name

    def gate(self):
        return self.kind == "kernel" and any(gate in self.name for gate in GATES)


@dataclasses.dataclass(frozen=True)
class Edge:
    begin: int
    end: int
    idle: int    # of the compute stream; all in ns
    own: int     # in operations of ours


def read(path):
    """(operations in order of time, host calls as the same with their thread as stream)."""
    operations, calls = [], []
    with open(path, errors="replace") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 5 or fields[0] == "missing":
                continue  # the last line of a process that was killed
            one = Operation(fields[0], int(fields[1]), int(fields[2]), int(fields[3]), fields[4])
            (calls if one.kind == "call" else operations).append(one)
    return sorted(operations, key=lambda one: one.begin), sorted(calls, key=lambda one: one.begin)


def of_compute_stream(operations):
    """Those of the stream where most of the time of kernels that are not ours goes."""
    times = collections.Counter()
    for one in operations:
        if not one.own():
            times[one.stream] += one.end - one.begin
    if not times:
        raise ValueError("the trace has no kernel of a model")
    stream = times.most_common(1)[0][0]
    return [one for one in operations if one.stream == stream]


def idle(operations, begin, end):
    """Of [begin, end], the time in which none of `operations` runs; they are in order of their begins."""
    free, at = 0, begin
    for one in operations:
        if one.begin > at:
            free += min(one.begin, end) - at
        at = max(at, one.end)
        if at >= end:
            return free
    return free + max(end - at, 0)


def edges(there):
    """Of the compute stream's operations: all rounds but the first and the last, whose neighbours are missing."""
    found = []
    for index, one in enumerate(there):
        if not one.gate():
            continue
        before = next((i for i in range(index, -1, -1) if not there[i].own()), None)
        after = next((i for i in range(index, len(there)) if not there[i].own()), None)
        if before is None or after is None or any(there[i].gate() for i in range(before, index)):
            continue
        begin, end = there[before].end, there[after].begin
        inside = there[before + 1:after]
        found.append(Edge(begin, end, idle(inside, begin, end), sum(min(o.end, end) - o.begin for o in inside)))
    return found[1:-1]


def summary(operations, calls, skip=0):
    """Medians in microseconds, of the edges behind the first `skip`, and what a step takes around them."""
    there = of_compute_stream(operations)
    found = edges(there)[skip:]
    if len(found) < 2:
        raise ValueError(f"the trace has {len(found)} rounds' edges behind the first {skip}, 2 or more are needed")
    begin, end = found[0].end, found[-1].end
    within = [one for one in there if one.end > begin and one.begin < end]
    steps = len(found) - 1
    waits = [one for one in calls if begin <= one.begin < end and any(word in one.name for word in WAITS)]
    micro = 1e-3
    return {
        "edges": len(found),
        "edge_us": statistics.median(one.end - one.begin for one in found) * micro,
        "edge_idle_us": statistics.median(one.idle for one in found) * micro,
        "edge_idle_us_p90": sorted(one.idle for one in found)[int(0.9 * (len(found) - 1))] * micro,
        "edge_own_us": statistics.median(one.own for one in found) * micro,
        "step_us": (end - begin) / steps * micro,
        "idle_us": idle(within, begin, end) / steps * micro,  # of a step, everywhere
        "kernels": sum(one.kind == "kernel" for one in within) / steps,
        "host_waits": len(waits) / steps,
        "host_wait_us": sum(one.end - one.begin for one in waits) / steps * micro,
    }
