#!/usr/bin/env python3
"""Holds the tree against the hard stops of form: files of 600 lines, functions of 70, no leftover marks, a .cc that
does not include its own header first, a citation key of every `Source:` known to docs/papers.md.

usage: form.py SOURCE_ROOT        exit 1 and one line a violation
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
LINE_COLUMNS_MAX = 120
COMMENT_COLUMNS_MAX = 100  # in C++: the formatter leaves comments alone, as it breaks the tables in them
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|#if 0")
# clang 14 parses no algorithm of GCC 12's library that gives a std::ranges::subrange, and scripts/fuzz compiles by clang.
SUBRANGE = re.compile(r"\b(std::ranges::(unique|remove|remove_if|rotate|partition|stable_partition|equal_range|search|find_end|subrange)|std::views::\w+)\s*[({<]")
FOLDERS = ["base", "crypto", "policies", "protocol", "threads", "fibers", "cuda", "agent", "coordinator", "simulator", "runtime", "metrics", "client", "tests", "bench", "proto"]


def functions(lines):
    """(first line, length) of each function of a namespace (indent 0) or class (indent 2), by the formatter's
    indentation: from a line that opens a parameter list to the brace that closes at the same indent."""
    for indent in ("", "  "):
        start = None
        head = re.compile(indent + r"(?!namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|return)[A-Za-z_~][^;]*\(")
        for number, line in enumerate(lines, 1):
            if head.match(line) and not line.endswith(";"):
                start = number
            elif start is not None and re.fullmatch(indent + r"\}[});]*", line):
                yield start, number - start + 1
                start = None
            elif start is not None and line.endswith(";") and re.match(indent + r"( {4})?\S", line) and "{" not in "".join(lines[start - 1:number]):
                start = None


def main():
    papers = ROOT / "docs/papers.md"
    known = set(re.findall(r"^\[([\w-]+)\]", papers.read_text(), re.M)) if papers.exists() else set()
    failed = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cc", ".cu", ".cuh", ".proto", ".py"):
                continue
            name, lines = path.relative_to(ROOT), path.read_text().splitlines()
            if len(lines) > FILE_LINES_MAX:
                failed.append(f"{name}: {len(lines)} lines, allowed are {FILE_LINES_MAX}")
            for number, line in enumerate(lines, 1):
                comment = path.suffix != ".proto" and line.lstrip().startswith("//")
                columns_max = COMMENT_COLUMNS_MAX if comment else LINE_COLUMNS_MAX
                if len(line) > columns_max and path.suffix != ".py":
                    failed.append(f"{name}:{number}: {len(line)} columns, allowed are {columns_max}")
                if path.name != "form.py" and MARKS.search(line):
                    failed.append(f"{name}:{number}: leftover mark: {line.strip()}")
                if path.suffix in (".h", ".cc") and (found := SUBRANGE.search(line)):
                    failed.append(f"{name}:{number}: {found[1]}, which clang 14 does not parse; allowed is the algorithm over a pair of iterators")
                for key in re.findall(r"Source:.*?\[([\w-]+)\]", line):
                    if key not in known:
                        failed.append(f"{name}:{number}: [{key}] is not in docs/papers.md")
            if path.suffix == ".cc" and path.with_suffix(".h").exists():
                first = next((line for line in lines if line.startswith("#include")), "")
                if first != f'#include "{name.with_suffix(".h")}"':
                    failed.append(f"{name}: its own header is not included first, so nothing shows that it compiles alone")
            if path.suffix in (".cc", ".h", ".cu", ".cuh"):
                for number, length in functions(lines):
                    if length > FUNCTION_LINES_MAX:
                        failed.append(f"{name}:{number}: a function of {length} lines, allowed are {FUNCTION_LINES_MAX}")
    print("\n".join(failed))
    sys.exit(1 if failed else 0)


main()
