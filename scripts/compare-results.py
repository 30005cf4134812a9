#!/usr/bin/env python3
"""Prints the summaries of several results side by side; the last column is the last result over the first.

usage: compare-results.py "NAME=FOLDER" "NAME=FOLDER" ...        (folders with summary.json)
"""
import json
import pathlib
import sys

ROWS = [("training seconds", lambda s: s["train_seconds"], "{:.1f}"),
        ("rounds", lambda s: s["rounds"], "{:.0f}"),
        ("samples", lambda s: s["samples"], "{:.0f}"),
        ("samples a second", lambda s: s["samples"] / s["train_seconds"], "{:.0f}"),
        ("training loss", lambda s: s["train_loss"], "{:.3f}"),
        ("validation loss", lambda s: s["validation"]["loss"], "{:.3f}")]


def main():
    named = [argument.split("=", 1) for argument in sys.argv[1:]]
    summaries = [json.loads((pathlib.Path(folder) / "summary.json").read_text()) for _, folder in named]
    print(f"{'':20}" + "".join(f"{name:>24}" for name, _ in named) + f"{'ratio':>8}")
    for label, value, form in ROWS:
        values = [value(summary) for summary in summaries]
        print(f"{label:20}" + "".join(f"{form.format(v):>24}" for v in values) + f"{values[-1] / values[0]:>8.2f}")
    print(f"\nthe trained model: {named[-1][1]}/model.pt  (in Python: torch.jit.load(...))")


main()
