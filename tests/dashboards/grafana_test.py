#!/usr/bin/env python3
"""The dashboards: the committed files are what the generator writes, and every panel can be read and asked for.

usage: grafana_test.py SOURCE_ROOT
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
DASHBOARDS = ROOT / "dashboards"
UIDS = {"tactus-fleet", "tactus-job", "tactus-adaptivity", "tactus-faults"}


def names_of(expression):
    """Metrics and recorded series that the expression names."""
    bare = re.sub(r'"[^"]*"', "", expression)
    recorded = set(re.findall(r"\b(?:fleet|job_id|instance):[\w:]+", bare))
    plain = re.findall(r"\b(?:tactus|process)_\w+", re.sub(r"\b(?:fleet|job_id|instance):[\w:]+", "", bare))
    return recorded | {re.sub("_(bucket|count|sum)$", "", name) for name in plain}


def check_panel(board, panel, known):
    where = f"{board['uid']}: {panel['title']}"
    assert panel["description"].endswith("."), f"{where}: says nothing of what it means"
    assert panel["fieldConfig"]["defaults"]["unit"], f"{where}: has no unit"
    assert panel["datasource"]["uid"] == "${datasource}", f"{where}: names a datasource"
    position = panel["gridPos"]
    assert position["x"] + position["w"] <= 24, f"{where}: is wider than the grid"
    legends = [target["legendFormat"] for target in panel["targets"]]
    assert len(set(legends)) == len(legends), f"{where}: two queries with one legend"
    for target in panel["targets"]:
        assert target["datasource"]["uid"] == "${datasource}", f"{where}: a query names a datasource"
        for name in names_of(target["expr"]):
            assert name in known, f"{where}: there is no {name}"


def check_overlap(board):
    taken = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, f"{board['uid']}: {panel['title']} lies on another panel"
        taken |= cells


def main():
    done = subprocess.run([sys.executable, "-B", str(DASHBOARDS / "generate.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    known = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/metrics.md").read_text(), re.M))
    known |= set(re.findall(r"record: (\S+)", (DASHBOARDS / "recording.yml").read_text()))
    assert len(known) > 50, "the catalogue was not read"
    boards = [json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))]
    assert {board["uid"] for board in boards} == UIDS
    for board in boards:
        variables = {variable["name"] for variable in board["templating"]["list"]}
        asks_for_job = "$job_id" in json.dumps(board["panels"])
        assert variables == ({"datasource", "job_id"} if asks_for_job else {"datasource"}), board["uid"]
        check_overlap(board)
        for panel in board["panels"]:
            if panel["type"] != "row":
                check_panel(board, panel, known)
        for annotation in board["annotations"]["list"]:
            assert names_of(annotation["expr"]) <= known, annotation["name"]
    print(f"{sum(len(board['panels']) for board in boards)} panels on {len(boards)} boards")


main()
