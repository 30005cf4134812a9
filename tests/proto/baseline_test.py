#!/usr/bin/env -S /usr/bin/python3 -B
"""Holds the API against the committed baseline.txt: nothing that users rely on may go or change its meaning. An addition
is fine and is taken into the baseline with TACTUS_REWRITE_GOLDEN=1, which refuses what breaks.

usage: baseline_test.py SOURCE_ROOT        exit 1 and one line a difference
"""
import io
import os
import pathlib
import sys

from google.protobuf import descriptor_pb2, text_format

from compatible import breaks
from descriptors import compile_protos

BASELINE = pathlib.Path(__file__).resolve().parent / "baseline.txt"
ROWS = {"field", "value", "oneof_decl", "method"}  # of messages, enums and services: a line each


def text_of(message, depth=0):
    """What text_format reads back as the same message."""
    out = io.StringIO()
    for field, value in message.ListFields():
        for one in value if field.label == field.LABEL_REPEATED else [value]:
            if field.name in ROWS or field.type != field.TYPE_MESSAGE:
                row = io.StringIO()
                text_format.PrintField(field, one, row, as_one_line=True)
                out.write(" " * depth + row.getvalue().rstrip() + "\n")
            else:
                out.write(" " * depth + f"{field.name} {{\n{text_of(one, depth + 1)}" + " " * depth + "}\n")
    return out.getvalue()


def main():
    present = compile_protos(sys.argv[1])
    rewrite = os.environ.get("TACTUS_REWRITE_GOLDEN") == "1"
    if not BASELINE.exists() and not rewrite:
        sys.exit(f"{BASELINE.name} is missing")
    baseline = descriptor_pb2.FileDescriptorSet()
    if BASELINE.exists():
        text_format.Parse(BASELINE.read_text(), baseline)
    broken = breaks(baseline, present)
    if broken:
        sys.exit("\n".join(broken) + "\nthis breaks clients that are out there; add a new field, value or call instead")
    if rewrite:
        BASELINE.write_text(text_of(present))
    elif present != baseline:
        sys.exit("the API has additions; take them into tests/proto/baseline.txt:\n"
                 "  TACTUS_REWRITE_GOLDEN=1 tests/proto/baseline_test.py .")


if __name__ == "__main__":
    main()
