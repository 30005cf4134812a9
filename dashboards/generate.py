#!/usr/bin/env python3
"""Writes the dashboards beside it, for Grafana to import, from the descriptions in boards.py: a panel a line, so that a
change of one can be read.

usage: generate.py [--check]        --check: exit 1 and the names of the files that are not what this would write
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
from boards import BOARDS

FOLDER = pathlib.Path(__file__).parent
WIDTH = 24  # of Grafana's grid
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def variable_datasource():
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {},
            "hide": 0, "refresh": 1}


def variable_job():
    return {"name": "job_id", "label": "Job", "type": "query", "datasource": DATASOURCE, "refresh": 2, "sort": 2,
            "query": {"query": "label_values(tactus_job_state, job_id)", "refId": "job_id"},
            "definition": "label_values(tactus_job_state, job_id)", "current": {}, "hide": 0}


def annotation_decisions():
    """A mark where a decision was made: the series holds the time itself."""
    return {"name": "Decisions", "datasource": DATASOURCE, "enable": True, "iconColor": "purple",
            "expr": 'tactus_job_decision_timestamp_seconds{job_id="$job_id"} * 1000', "useValueForTime": True,
            "step": "15s", "titleFormat": "decision: {{kind}}", "tagKeys": "kind",
            "textFormat": "tactus explain {{job_id}} says why"}


def annotation_nodes():
    return {"name": "Nodes lost", "datasource": DATASOURCE, "enable": True, "iconColor": "red", "step": "15s",
            "expr": "tactus_node_connected == 0 and changes(tactus_node_connected[1m]) > 0", "titleFormat": "{{node}} was lost"}


ANNOTATIONS = {"decisions": annotation_decisions, "nodes": annotation_nodes}


def thresholds(steps):
    """[(None, "green"), (0.5, "red")]: from each value on, its colour."""
    return {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in steps]}


def defaults(panel):
    fields = {"unit": panel["unit"], "thresholds": thresholds(panel.get("steps", [(None, "green")])),
              "color": {"mode": "thresholds" if panel["type"] == "stat" else "palette-classic"}}
    for name in ("min", "max"):
        if name in panel:
            fields[name] = panel[name]
    if panel["type"] == "timeseries":
        fields["custom"] = {"lineWidth": 1, "fillOpacity": panel.get("fill", 0), "showPoints": "never", "spanNulls": False,
                            "stacking": {"mode": "normal" if panel.get("stack") else "none", "group": "A"},
                            "drawStyle": "line", "lineInterpolation": panel.get("interpolation", "linear"),
                            "thresholdsStyle": {"mode": "line" if "steps" in panel else "off"}}
    return fields


def options(panel):
    if panel["type"] == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value",
                "graphMode": "area", "textMode": panel.get("text", "auto"), "justifyMode": "auto", "orientation": "auto"}
    if panel["type"] == "table":
        return {"showHeader": True, "footer": {"show": False}}
    if panel["type"] == "state-timeline":
        return {"mergeValues": True, "showValue": "never", "rowHeight": 0.8, "legend": {"displayMode": "list", "placement": "bottom"}}
    return {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"], "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"}}


def target(index, query, panel):
    expression, legend = query
    one = {"refId": chr(ord("A") + index), "datasource": DATASOURCE, "expr": expression, "legendFormat": legend,
           "editorMode": "code", "range": panel["type"] not in ("stat", "table"), "instant": panel["type"] in ("stat", "table")}
    if panel["type"] == "table":
        one["format"] = "table"
    return one


def panel_json(number, panel, position):
    if panel["type"] == "row":
        return {"id": number, "type": "row", "title": panel["title"], "collapsed": False, "panels": [], "gridPos": position}
    made = {"id": number, "type": panel["type"], "title": panel["title"], "description": panel["description"],
            "datasource": DATASOURCE, "gridPos": position, "options": options(panel),
            "fieldConfig": {"defaults": defaults(panel), "overrides": []},
            "targets": [target(index, query, panel) for index, query in enumerate(panel["queries"])]}
    if panel["type"] == "table":
        hidden = {name: True for name in ("Time", "__name__", "instance", "job", "Value")}
        made["transformations"] = [{"id": "merge", "options": {}},
                                   {"id": "organize", "options": {"excludeByName": hidden if panel.get("facts") else {
                                       name: True for name in ("Time", "__name__", "instance", "job")}}}]
    return made


def placed(panels):
    """From left to right, then down; a row begins on a line of its own."""
    x = y = height = 0
    for number, panel in enumerate(panels, 1):
        width, tall = (WIDTH, 1) if panel["type"] == "row" else panel["size"]
        if x + width > WIDTH:
            x, y, height = 0, y + height, 0
        yield panel_json(number, panel, {"x": x, "y": y, "w": width, "h": tall})
        x, height = x + width, max(height, tall)


def board_json(board):
    variables = [variable_datasource()] + ([variable_job()] if board.get("job") else [])
    links = [{"type": "dashboards", "tags": ["tactus"], "title": "Tactus", "asDropdown": True, "includeVars": True,
              "keepTime": True}]
    return {"uid": board["uid"], "title": board["title"], "description": board["description"], "tags": ["tactus"],
            "schemaVersion": 37, "version": 1, "editable": True, "graphTooltip": 1, "refresh": "15s", "timezone": "browser",
            "time": {"from": "now-1h", "to": "now"}, "links": links, "templating": {"list": variables},
            "annotations": {"list": [ANNOTATIONS[name]() for name in board.get("annotations", [])]},
            "panels": list(placed(board["panels"]))}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(board):
    made = board_json(board)
    panels = made.pop("panels")  # the last of them all
    return f'{compact(made)[:-1]},\n"panels":[\n' + ",\n".join(map(compact, panels)) + "\n]}\n"


def main():
    files = {FOLDER / (board["uid"] + ".json"): text_of(board) for board in BOARDS}
    if "--check" in sys.argv[1:]:
        wrong = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
        wrong += sorted(set(FOLDER.glob("*.json")) - set(files))
        for path in wrong:
            print(f"{path}: not what dashboards/generate.py writes")
        sys.exit(1 if wrong else 0)
    for path, text in files.items():
        path.write_text(text)


main()
