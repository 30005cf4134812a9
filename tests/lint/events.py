#!/usr/bin/env -S /usr/bin/python3 -B
"""Holds docs/events.md against the log lines of the sources: every event is listed, with its level and fields, and what
a line says before its fields is the same each time. TACTUS_REWRITE_GOLDEN=1 writes the table.

usage: events.py SOURCE_ROOT        exit 1 and one line a difference
"""
import os
import pathlib
import re
import sys

PROGRAMS = {"coordinator": "coordinator", "agent/daemon": "agent", "runtime": "both", "identity": "both"}
RESERVED = {"ts", "level", "component", "event", "msg"}
TEXT = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
CALL = re.compile(r"->(?:(trace|debug|info|warn|error)\(\s*|log\(([^\"]*?),\s*)" + TEXT)
PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"')
FIELD = re.compile(r"(?:^|\s)([A-Za-z0-9_]+)=")
BEGIN = "<!-- written by tests/lint/events.py -->\n"


def event_of(phrase):
    """As runtime/json_log.cc makes it."""
    return re.sub(r"[^a-z0-9_]", "", re.sub(r"[ -]", "_", phrase.split(",")[0].lower()))


def plan_rows(root):
    """What {plan_rows} stands for in a line: the fields of a plan, as policies/axes.cc lists them."""
    rows = re.search(r"RowsOf\(const Plan& plan\) \{(.*?)\n\}", (root / "policies/axes.cc").read_text(), re.S)[1]
    return "".join(f"{name}={{}} " for name in re.findall(r'\{"(\w+)", "', rows))


def lines_of(root):
    """(path, line number, component, levels, text) of every log line."""
    for folder in PROGRAMS:
        for path in sorted((root / folder).rglob("*.cc")):
            source = path.read_text()
            for call in CALL.finditer(source):
                before = source[:call.start()]
                components = re.findall(r'Logger\("([a-z]+)"\)', before + source[call.start():call.start() + 2])
                if not components:
                    continue
                levels = [call[1]] if call[1] else re.findall(r"level::(\w+)", call[2])
                text = "".join(PIECE.findall(call[3])).replace('\\"', '"').replace("{plan_rows}", plan_rows(root))
                yield folder, path, before.count("\n") + 1, components[-1], levels, text


def main():
    root = pathlib.Path(sys.argv[1])
    wrong, events = [], {}
    for folder, path, number, component, levels, text in lines_of(root):
        where = f"{path.relative_to(root)}:{number}"
        first = FIELD.search(text)
        phrase = (text[:first.start()] if first else text).strip()
        fields = FIELD.findall(text)
        if "{" in phrase:
            wrong.append(f"{where}: what stands before the fields changes: {phrase!r}")
        for field in fields:
            if field in RESERVED or not re.fullmatch(r"[a-z][a-z0-9_]*", field):
                wrong.append(f"{where}: no name for a field: {field!r}")
        key = (PROGRAMS[folder], event_of(phrase))
        known = events.setdefault(key, (set(), set(), []))
        known[0].add(component)
        known[1].update(levels)
        known[2].extend(field for field in fields if field not in known[2])
        if "job_number" in fields and "job" not in fields:
            wrong.append(f"{event_of(phrase)}: job_number without job, whose name alone people know")
    rows = ["| event | program | component | level | fields |\n", "| --- | --- | --- | --- | --- |\n"]
    for (program, event), (components, levels, fields) in sorted(events.items(), key=lambda item: item[0][::-1]):
        rows.append(f"| `{event}` | {program} | {', '.join(sorted(components))} | {' or '.join(sorted(levels))} | "
                    f"{', '.join(f'`{field}`' for field in fields)} |\n")
    page = root / "docs" / "events.md"
    head, _, table = page.read_text().partition(BEGIN)
    if os.environ.get("TACTUS_REWRITE_GOLDEN") == "1":
        page.write_text(head + BEGIN + "".join(rows))
    elif table != "".join(rows):
        old, new = set(table.splitlines()), set("".join(rows).splitlines())
        wrong += [f"docs/events.md: gone or changed: {line}" for line in sorted(old - new)]
        wrong += [f"docs/events.md: not listed: {line}" for line in sorted(new - old)]
        wrong.append("  TACTUS_REWRITE_GOLDEN=1 tests/lint/events.py .")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
