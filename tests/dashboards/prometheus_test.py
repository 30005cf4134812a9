#!/usr/bin/env python3
"""The shipped Prometheus files: promtool accepts them, every alert fires when it should and is quiet when it should
be, has a runbook, and names metrics that there are.

usage: prometheus_test.py SOURCE_ROOT        exit 77, skipped: promtool is not installed
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
RULES = ROOT / "dashboards"
CONFIGURATION = ROOT / "deploy/prometheus/prometheus.yml"
RUNBOOKS = ROOT / "docs/runbooks"
SKIPPED = 77

COORDINATOR = 'instance="c:7071",job="tactus-coordinator"'
RUNNING = (f'tactus_job_state{{{COORDINATOR},job_id="demo-1",state="running"}}', "1x200")


def series(metric, values, **labels):
    words = [COORDINATOR] + [f'{name}="{value}"' for name, value in labels.items()]
    return f"{metric}{{{','.join(words)}}}", values


def agent(metric, values, **labels):
    words = ['instance="a:7072",job="tactus-agent",node="a"'] + [f'{name}="{value}"' for name, value in labels.items()]
    return f"{metric}{{{','.join(words)}}}", values


def of_job(metric, values, **labels):
    return series(metric, values, job_id="demo-1", **labels)


def write_seconds(slow):
    """A write a second; `slow`: each between 0.2 and 0.5 s, else below 1 ms."""
    return [series("tactus_wal_fsync_seconds_bucket", "0+60x200" if not slow else "0x200", le="0.001"),
            series("tactus_wal_fsync_seconds_bucket", "0+60x200" if not slow else "0x200", le="0.2"),
            series("tactus_wal_fsync_seconds_bucket", "0+60x200", le="0.5"),
            series("tactus_wal_fsync_seconds_bucket", "0+60x200", le="+Inf")]


# Alert: series that make it fire, series that do not, when it is looked at [minutes]; the interval, where it is not a
# minute. Time begins at 0.
CASES = {
    "TactusCoordinatorDown": ([series("up", "1 0x20")], [series("up", "1x20")], 5),
    "TactusAgentSilent": (
        # It stands still for 9 s now and then; the other one does once, and is given up the next time.
        [series("tactus_agent_heartbeat_age_seconds", "1x3 8 0x4 5 1x5 2x3 7 1x20", node="a"),
         series("tactus_node_connected", "1x60", node="a")],
        [series("tactus_agent_heartbeat_age_seconds", "1x3 8 0x6 9 24+15x30", node="a"),
         series("tactus_node_connected", "1x11 0x40", node="a")], 6, "15s"),
    "TactusNodeLost": ([series("tactus_node_connected", "0x20", node="a")], [series("tactus_node_connected", "1x20", node="a")], 5),
    "TactusAgentNotScraped": ([agent("up", "0x20")], [agent("up", "1x20")], 8),
    "TactusJobNoRound": (
        [RUNNING, of_job("tactus_job_last_round_seconds", "0.5x60"), of_job("tactus_job_last_round_timestamp_seconds", "0+60x10 600x50")],
        [RUNNING, of_job("tactus_job_last_round_seconds", "30x60"), of_job("tactus_job_last_round_timestamp_seconds", "0+60x10 600x50")], 15),
    "TactusJobFailed": (
        [(RUNNING[0], "1x4 stale"), of_job("tactus_job_state", "_x5 1x10", state="failed")],
        [(RUNNING[0], "1x4 stale"), of_job("tactus_job_state", "_x5 1x10", state="cancelled")], 8),
    "TactusJobLossNotANumber": (
        [RUNNING, of_job("tactus_job_skipped_rounds_total", "0+2x20")],
        [RUNNING, of_job("tactus_job_skipped_rounds_total", "1x20"), of_job("tactus_job_loss", "1.5x20")], 10),
    "TactusJobIdle": (
        [RUNNING, of_job("tactus_worker_idle_ratio", "0.9x60", rank="0"), of_job("tactus_worker_idle_ratio", "0.3x60", rank="1")],
        [RUNNING, of_job("tactus_worker_idle_ratio", "0.9x60", rank="0"), of_job("tactus_worker_idle_ratio", "0x60", rank="1")], 30),
    "TactusJobUnsteady": (
        [of_job("tactus_job_suspensions_total", "0+1x60")], [of_job("tactus_job_suspensions_total", "0x30 3x30")], 40),
    "TactusCheckpointOld": (
        [RUNNING, of_job("tactus_checkpoint_last_success_timestamp_seconds", "-180000x60")],
        [RUNNING, of_job("tactus_checkpoint_last_success_timestamp_seconds", "-160000x60")], 10),
    "TactusPredictionErrorHigh": (
        [RUNNING, of_job("tactus_decision_predicted_error_ratio", "-0.75x60", kind="batch")],
        [RUNNING, of_job("tactus_decision_predicted_error_ratio", "0.25x60", kind="batch")], 20),
    "TactusJournalSlow": (write_seconds(slow=True), write_seconds(slow=False), 30),
    "TactusJobSetAside": ([series("tactus_store_jobs_set_aside_total", "1x20")], [series("tactus_store_jobs_set_aside_total", "0x20")], 5),
    "TactusBackupOld": (
        [series("tactus_backup_last_success_timestamp_seconds", "0x240"), series("tactus_backup_interval_seconds", "3600x240")],
        [series("tactus_backup_last_success_timestamp_seconds", "0x100 6000x140"), series("tactus_backup_interval_seconds", "3600x240")], 180),
    "TactusBucketFailing": (
        [series("tactus_bucket_requests_total", "0+5x60", method="PUT", outcome="broken"),
         series("tactus_bucket_requests_total", "7x60", method="PUT", outcome="ok")],
        [series("tactus_bucket_requests_total", "0+5x60", method="PUT", outcome="busy"),
         series("tactus_bucket_requests_total", "0+1x60", method="PUT", outcome="ok")], 30),
    "TactusStoreFailing": ([series("tactus_store_failing", "1x20")], [series("tactus_store_failing", "0x20")], 5),
    "TactusDiskFull": (
        [series("tactus_state_free_bytes", "5x20"), series("tactus_state_size_bytes", "100x20")],
        [series("tactus_state_free_bytes", "15x20"), series("tactus_state_size_bytes", "100x20")], 10),
    "TactusBacklog": ([series("tactus_event_backlog_events", "2000x20")], [series("tactus_event_backlog_events", "900x20")], 5),
    "TactusControllerBusy": (
        [series("tactus_controller_overhead_seconds_total", "0+40x60")],
        [series("tactus_controller_overhead_seconds_total", "0+10x60")], 30),
    "TactusQueueStuck": (
        [series("tactus_queue_oldest_timestamp_seconds", "0x120"), series("tactus_node_devices", "1x120", node="a", state="free")],
        [series("tactus_queue_oldest_timestamp_seconds", "0x120"), series("tactus_node_devices", "0x120", node="a", state="free"),
         series("tactus_node_devices", "2x120", node="a", state="cordoned")], 90),
    "TactusQueueLong": (
        [series("tactus_queue_oldest_timestamp_seconds", "-90000x60")],
        [series("tactus_queue_oldest_timestamp_seconds", "-80000x60")], 20),
    "TactusGpuFault": ([agent("tactus_gpu_fault", "1x20", gpu="0")], [agent("tactus_gpu_fault", "0x20", gpu="0")], 5),
    "TactusDeviceFault": (
        [series("tactus_node_devices", "1x20", node="a", state="fault")],
        [series("tactus_node_devices", "0x20", node="a", state="fault"), series("tactus_node_devices", "1x20", node="a", state="busy")], 5),
    "TactusParametersDiffered": (
        [of_job("tactus_job_differences_total", "0x10 1x20")], [of_job("tactus_job_differences_total", "1x30")], 20),
    "TactusGpuThrottled": (
        [agent("tactus_gpu_throttled", "1x30", gpu="0", reason="software thermal slowdown")],
        [agent("tactus_gpu_throttled", "1x30", gpu="0", reason="software power cap")], 20),
    "TactusReportsDropped": (
        [agent("tactus_agent_reports_dropped_total", "0+5x20")], [agent("tactus_agent_reports_dropped_total", "5x20")], 10),
    "TactusSeriesDropped": (
        [series("tactus_metrics_series_dropped_total", "0x5 22x55")],
        [series("tactus_metrics_series_dropped_total", "22x60")], 20),
}

PAUSED_FROM_10_TO_70 = (RUNNING[0], "1x9 stale _x58 1x30")
# More of them: alert, whether it fires, its series and minutes.
MORE = [
    # The coordinator was started anew, or a worker hangs in the first round of all.
    ("TactusJobNoRound", True, [RUNNING, of_job("tactus_job_last_round_timestamp_seconds", "0x60")], 5),
    # The first round after an hour's pause takes minutes, as rounds of this job do.
    ("TactusJobNoRound", False, [
        PAUSED_FROM_10_TO_70, of_job("tactus_job_last_round_seconds", "30x100"),
        of_job("tactus_job_last_round_timestamp_seconds", "0+60x10 600x58 4200x30")], 74),
    ("TactusJobNoRound", True, [
        PAUSED_FROM_10_TO_70, of_job("tactus_job_last_round_seconds", "0.5x100"),
        of_job("tactus_job_last_round_timestamp_seconds", "0+60x10 600x58 4200x30")], 74),
]


def rules():
    """Of each alert: its expression, severity and runbook, as the file has them."""
    text = (RULES / "alerts.yml").read_text()
    found = {}
    for block in text.split("- alert: ")[1:]:
        field = lambda name: re.search(rf"^ +{name}: (.*)$", block, re.M).group(1)
        found[block.split("\n", 1)[0]] = {name: field(name) for name in ("expr", "severity", "runbook", "summary")}
    return found


def run(*words, cwd=None):
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}:\n{done.stdout}{done.stderr}"


def check_runbooks(alerts):
    for name, alert in alerts.items():
        assert alert["runbook"] == f"docs/runbooks/{name}.md", f"{name}: its annotation names {alert['runbook']}"
        page = RUNBOOKS / f"{name}.md"
        assert page.exists(), f"{name}: has no runbook"
        text = page.read_text()
        for part in ("## What it means", "## Where to look", "## What to do"):
            assert part in text, f"{page.name}: misses {part}"
        assert f"Severity: {alert['severity']}." in text, f"{page.name}: another severity than the rule's"
    strays = {page.stem for page in RUNBOOKS.glob("*.md")} - set(alerts)
    assert not strays, f"runbooks without an alert: {strays}"


def check_names(alerts):
    """What the rules name is in the catalogue, or recorded."""
    known = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/metrics.md").read_text(), re.M)) | {"up"}
    recording = (RULES / "recording.yml").read_text()
    recorded = set(re.findall(r"record: (\S+)", recording))
    expressions = re.findall(r"expr: (.*)", recording) + [alert["expr"] for alert in alerts.values()]
    for expression in (re.sub(r"\[[^\]]*\]", "", expression) for expression in expressions):  # without ranges
        for name in re.findall(r"[a-z_]+:[\w:]+", expression):
            assert name in recorded, f"no rule records {name}"
        bare = re.sub(r'"[^"]*"', "", re.sub(r"[a-z_]+:[\w:]+", "", expression))
        for name in re.findall(r"\b(?:tactus|process)_\w+", bare):
            assert re.sub("_(bucket|count|sum)$", "", name) in known, f"no metric is called {name}"


# What is recorded: expression, series, value.
RECORDED = [
    ("fleet:tactus_job_goodput_samples_per_second:sum", [RUNNING, of_job("tactus_job_goodput_samples_per_second", "250x20")], 250),
    ("fleet:tactus_job_goodput_samples_per_second:sum", [series("up", "1x20")], 0),
]


def all_cases():
    """Alert, whether it fires, series, minutes, interval of the series and of the rules."""
    for name, (firing, quiet, minutes, *interval) in CASES.items():
        for fires, given in ((True, firing), (False, quiet)):
            yield name, fires, given, minutes, *(interval or ["1m"])
    for name, fires, given, minutes in MORE:
        yield name, fires, given, minutes, "1m"


def rule_tests(folder):
    """promtool's test file, and the alerts without annotations, whose words need no second copy here."""
    text = (RULES / "alerts.yml").read_text()
    (folder / "alerts.yml").write_text(re.sub(r"^ +annotations:\n(?:^ {10}.*\n)+", "", text, flags=re.M))
    shutil.copy(RULES / "recording.yml", folder)
    severities = {name: alert["severity"] for name, alert in rules().items()}
    tests = []
    for name, fires, given, minutes, interval in all_cases():
        test = {"interval": interval, "input_series": [{"series": s, "values": v} for s, v in given]}
        if fires:
            # Which labels an alert has is its expression's affair; that there is one is what counts.
            test["promql_expr_test"] = [{
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing",severity="{severities[name]}"}}) > bool 0',
                "eval_time": f"{minutes}m", "exp_samples": [{"labels": "{}", "value": 1}]}]
        else:
            test["alert_rule_test"] = [{"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": []}]
        tests.append(test)
    tests += [{"interval": "1m", "input_series": [{"series": s, "values": v} for s, v in given],
               "promql_expr_test": [{"expr": f"sum({expression})", "eval_time": "5m", "exp_samples": [{"labels": "{}", "value": value}]}]}
              for expression, given, value in RECORDED]
    (folder / "test.yml").write_text(json.dumps({"rule_files": ["recording.yml", "alerts.yml"], "tests": tests}))


def main():
    alerts = rules()
    assert len(alerts) > 10, "the alerts were not read"
    assert set(CASES) == set(alerts), f"without a case, or a case without an alert: {set(CASES) ^ set(alerts)}"
    check_runbooks(alerts)
    check_names(alerts)
    if shutil.which("promtool") is None:
        print("promtool is not installed (Debian's package prometheus): rules are not checked")
        sys.exit(SKIPPED)
    run("promtool", "check", "rules", "--lint-fatal", RULES / "recording.yml", RULES / "alerts.yml")
    with tempfile.TemporaryDirectory(prefix="tactus-rules-") as folder:
        for file in (CONFIGURATION, RULES / "recording.yml", RULES / "alerts.yml"):  # together, as on a server
            shutil.copy(file, folder)
        run("promtool", "check", "config", "prometheus.yml", cwd=folder)
        rule_tests(pathlib.Path(folder))
        run("promtool", "test", "rules", "test.yml", cwd=folder)
    print(f"{len(alerts)} alerts: each fires, is quiet, and has a runbook")


main()
