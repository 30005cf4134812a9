"""What is wrong with a trace of Chrome's trace event format, as Perfetto and chrome://tracing read it."""
import decimal
import json
import sys

REQUIRED = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
    "i": {"name", "cat", "pid", "tid", "ts", "s", "args"},
    "C": {"name", "pid", "ts", "args"},
}


def parse(text):
    """The trace, its numbers exact: as doubles, ends would not meet begins."""
    return json.loads(text, parse_float=decimal.Decimal)


def problems(trace):
    """One line for each; none: the trace is sound."""
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return ["no object with a list traceEvents"]
    found = []
    for event in trace["traceEvents"]:
        found += event_problems(event)
    if not found:
        found = named_problems(trace["traceEvents"]) + nesting_problems(trace["traceEvents"])
        found += counter_problems(trace["traceEvents"])
    return found


def event_problems(event):
    phase = event.get("ph") if isinstance(event, dict) else None
    if phase not in REQUIRED:
        return [f"unknown phase: {event}"]
    missing = REQUIRED[phase] - event.keys()
    if missing:
        return [f"{sorted(missing)} missing: {event}"]
    found = []
    for key in ("pid", "tid"):
        if not isinstance(event.get(key, 0), int) or event.get(key, 0) < 0:
            found.append(f"{key} is no number: {event}")
    for key in ("ts", "dur"):
        if key in event and (not isinstance(event[key], (int, decimal.Decimal)) or event[key] < 0):
            found.append(f"{key} is no time: {event}")
    if not isinstance(event.get("args", {}), dict) or not isinstance(event["name"], str):
        found.append(f"args or name of another type: {event}")
    if phase == "M" and event["name"] not in ("process_name", "thread_name"):
        found.append(f"unknown metadata: {event}")
    if phase == "i" and event["s"] not in ("g", "p", "t"):
        found.append(f"unknown scope: {event}")
    if phase == "C" and not all(isinstance(value, (int, decimal.Decimal)) for value in event["args"].values()):
        found.append(f"a counter that is no number: {event}")
    return found


def named_problems(events):
    """Every process and thread with events has a name, once."""
    names = {}
    for event in events:
        if event["ph"] == "M":
            key = (event["name"], event["pid"], event["tid"] if event["name"] == "thread_name" else 0)
            names.setdefault(key, []).append(event["args"]["name"])
    found = [f"named twice: {key} {value}" for key, value in names.items() if len(value) > 1]
    for event in events:
        if event["ph"] in "Xi" and ("thread_name", event["pid"], event["tid"]) not in names:
            found.append(f"thread without a name: {event}")
        if ("process_name", event["pid"], 0) not in names:
            found.append(f"process without a name: {event}")
    return found


def nesting_problems(events):
    """Spans of one thread nest or lie apart."""
    threads = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    found = []
    for spans in threads.values():
        spans.sort(key=lambda span: (span["ts"], -span["dur"]))
        around = []
        for span in spans:
            while around and around[-1]["ts"] + around[-1]["dur"] <= span["ts"]:
                around.pop()
            if around and span["ts"] + span["dur"] > around[-1]["ts"] + around[-1]["dur"]:
                found.append(f"{span} reaches out of {around[-1]}")
            around.append(span)
    return found


def counter_problems(events):
    """A counter's values come in the order of time."""
    last = {}
    found = []
    for event in events:
        if event["ph"] != "C":
            continue
        key = (event["pid"], event["name"])
        if event["ts"] < last.get(key, 0):
            found.append(f"goes back: {event}")
        last[key] = event["ts"]
    return found


if __name__ == "__main__":
    lines = problems(parse(sys.stdin.read()))
    sys.exit("\n".join(lines[:20]) if lines else 0)
