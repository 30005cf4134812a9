"""What comes back of a run: report.md for people, figures.json for programs, log.txt of all that was said.

They are written anew after every step, as whatever runs this may end it at any moment; and they stay small, as of
some machines only so much comes back."""
import dataclasses
import datetime
import json
import os
import re

LOG_BYTES_MAX = 1 << 18        # of one command's output or errors; the middle goes
TABLE_BYTES_MAX = 200_000      # of what a step adds to the report
LAST_WORDS_LINES = 30          # of a step that failed
TERMINAL_LINES = 60            # of the table at the end
CELL_COLUMNS = 110             # of a cell there


@dataclasses.dataclass
class Row:
    step: str
    result: str
    seconds: float | None = None
    remark: str = ""

    def good(self):
        return self.result == "passed"


def shortened(data, most):
    if len(data) <= most:
        return data
    return data[:most // 4] + b"\n... (shortened) ...\n" + data[-(most * 3 // 4):]


def fenced(text):
    return f"\n```\n{text.rstrip()}\n```\n"


def cell(text):
    return re.sub(r"\s+", " ", str(text)).replace("|", "/")


class Report:
    """folder: what the commands said, as STEP.out and STEP.err; out: where the report goes."""

    def __init__(self, out, folder):
        self.out, self.folder, self.commit = out, folder, ""
        self.facts, self.rows, self.figures, self.sections = {}, [], {}, []
        self.date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")

    def device(self):
        devices = self.facts.get("devices") or []
        return devices[0]["name"] if devices else "no device"

    def add_section(self, title, text):
        self.sections.append((title, shortened(text.encode(), TABLE_BYTES_MAX).decode(errors="replace")))

    def table(self, columns=None):
        lines = ["| step | result | seconds | remark |", "| --- | --- | --- | --- |"]
        for row in self.rows:
            seconds = "" if row.seconds is None else f"{row.seconds:.0f}"
            remark = cell(row.remark)
            if columns and len(remark) > columns:
                remark = remark[:columns - 3] + "..."
            lines.append(f"| {row.step} | {cell(row.result)} | {seconds} | {remark} |")
        return lines

    def markdown(self):
        lines = [f"# GPU check: {self.device()}, {self.date}", ""]
        lines += [f"- {name}: {cell(value)}" for name, value in self._told_facts()]
        lines += ["", *self.table(), ""]
        for title, text in self.sections:
            lines += [f"## {title}", "", text.rstrip(), ""]
        for row in self.rows:
            if not row.good():
                lines += self._last_words(row.step)
        return "\n".join(lines)

    def _told_facts(self):
        yield "commit", self.commit
        for name, value in self.facts.items():
            if isinstance(value, list):
                value = "; ".join(", ".join(map(str, one.values())) if isinstance(one, dict) else str(one)
                                  for one in value)
            yield name.replace("_", " "), value if value not in (None, "") else "none"

    def _last_words(self, step):
        words = []
        for ending in ("out", "err"):
            path = self.folder / f"{step}.{ending}"
            text = path.read_text(errors="replace").rstrip() if path.exists() else ""
            if text:
                words.append(fenced("\n".join(text.splitlines()[-LAST_WORDS_LINES:])))
        return [f"## What {step} said at its end", *words] if words else []

    def write(self):
        self.out.mkdir(parents=True, exist_ok=True)
        figures = {"commit": self.commit, "date": self.date, "facts": self.facts,
                   "steps": [dataclasses.asdict(row) for row in self.rows], "figures": self.figures}
        self._replace("report.md", self.markdown().encode())
        self._replace("figures.json", (json.dumps(figures, indent=1) + "\n").encode())
        self._replace("log.txt", b"".join(self._log()))

    def _log(self):
        for row in self.rows:
            for ending in ("out", "err"):
                path = self.folder / f"{row.step}.{ending}"
                if path.exists() and path.stat().st_size:
                    yield f"===== {row.step}.{ending}\n".encode() + shortened(path.read_bytes(), LOG_BYTES_MAX) + b"\n"

    def _replace(self, name, data):
        """Whoever looks finds the old or the new one, whole."""
        fresh = self.out / f".{name}.new"
        fresh.write_bytes(data)
        os.replace(fresh, self.out / name)

    def print_table(self):
        lines = self.table(CELL_COLUMNS)
        print("\n" + "\n".join(lines[:2] + lines[2:][-(TERMINAL_LINES - 6):]))
