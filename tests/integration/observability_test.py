"""A real Prometheus with the shipped configuration against a running job: every expression of every dashboard,
recording rule and alert is asked, and answers with data or is on the lists below."""
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from cluster import SOURCE, Cluster, Folder, tiny_spec, wait_until

SKIPPED = 77
DASHBOARDS = SOURCE / "dashboards"
PROMETHEUS = SOURCE / "deploy/prometheus/prometheus.yml"

# Metrics that this cluster cannot have, and what they need. One that has data all the same is taken off the list.
ABSENT = {
    "tactus_gpu_info": "a GPU", "tactus_gpu_utilization_ratio": "a GPU", "tactus_gpu_memory_used_bytes": "a GPU",
    "tactus_gpu_temperature_celsius": "a GPU", "tactus_gpu_power_watts": "a GPU", "tactus_gpu_sm_clock_hertz": "a GPU",
    "tactus_gpu_uncorrected_ecc_errors": "a GPU", "tactus_gpu_throttled": "a GPU", "tactus_gpu_fault": "a GPU",
    "tactus_checkpoint_last_success_timestamp_seconds": "a suspension",
    "tactus_worker_link_bytes_per_second": "messages of 64 KiB",
    "tactus_backup_last_success_timestamp_seconds": "--backup-every", "tactus_backup_interval_seconds": "--backup-every",
}
# Metrics that a decision has whose gain was measured, which luck decides in a run as short as this.
PERHAPS = {"tactus_job_decision_measured_gain_ratio", "tactus_decision_predicted_error_ratio"}
# Conditions that are met only when something is wrong.
FAULTS = {"tactus_node_connected == 0 and changes(tactus_node_connected[1m]) > 0": "a node that was lost",
          "tactus_node_cordoned == 1": "a cordoned node"}


class Prometheus:
    """Debian's, in a folder of its own, on a port of its own."""

    def __init__(self, folder, config):
        self.log_path = folder / "prometheus.log"
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
                   "--web.listen-address=127.0.0.1:0", "--log.level=info"]
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, cwd=folder)
        self.address = wait_until(self._address, 20, "Prometheus listens")

    def _address(self):
        assert self.process.poll() is None, self.log_path.read_text()
        found = re.search(r'msg="Listening on" address=(127\.0\.0\.1:\d+)', self.log_path.read_text())
        return found and found.group(1)

    def query(self, expression):
        """The result's samples. Fails where the expression is refused."""
        url = f"http://{self.address}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return []  # it starts
            raise AssertionError(f"{expression}: {error.read().decode()}") from error

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


def configuration(folder, cluster):
    """A copy of the shipped files with other addresses and intervals."""
    for rules in ("recording.yml", "alerts.yml"):
        shutil.copy(DASHBOARDS / rules, folder)
    path = folder / "prometheus.yml"
    text = PROMETHEUS.read_text().replace("127.0.0.1:7071", cluster.metrics)
    text = re.sub(r"(interval): \d+s", r"\1: 1s", text)
    path.write_text(text)
    return path


def panel_expressions(job):
    for path in sorted(DASHBOARDS.glob("*.json")):
        board = json.loads(path.read_text())
        titled = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel.get("targets", [])]
        titled += [(annotation["name"], annotation["expr"]) for annotation in board["annotations"]["list"]]
        for title, expression in titled:
            yield f"{board['uid']}: {title}", expression.replace("$job_id", job).replace("$__rate_interval", "10s")


def recorded():
    return re.findall(r"record: (\S+)", (DASHBOARDS / "recording.yml").read_text())


def alert_expressions():
    text = (DASHBOARDS / "alerts.yml").read_text()
    return re.findall(r"- alert: (\w+)\n +expr: (.*)", text)


def metrics_of(expression):
    """Series that an expression names, recorded ones among them."""
    bare = re.sub(r'"[^"]*"', "", expression)
    return set(re.findall(r"(?:fleet|job_id|instance):[\w:]+|\b(?:tactus|process)_\w+", bare))


def unanswered(prometheus, questions):
    """Of (where, expression): those without data that nothing on the lists excuses."""
    excused = set(ABSENT) | PERHAPS
    return [(where, expression) for where, expression in questions
            if not (metrics_of(expression) & excused) and expression not in FAULTS and not prometheus.query(expression)]


def check(prometheus, job):
    questions = list(panel_expressions(job)) + [("recording rule", name) for name in recorded()]
    # An alert is quiet in a cluster that is well: what counts is that each series it looks at is there.
    questions += sorted({(where, name) for where, expression in alert_expressions() for name in metrics_of(expression)})
    assert len(questions) > 100, f"only {len(questions)} expressions were found"
    for _, expression in list(alert_expressions()) + questions:
        prometheus.query(expression)  # none is refused
    left = questions

    def all_answered():
        nonlocal left
        left = unanswered(prometheus, left)
        return not left

    try:
        wait_until(all_answered, 30, "data for every expression")
    except AssertionError as error:
        raise AssertionError(f"{error}\n" + "\n".join(f"{where}: {expression}" for where, expression in left)) from error
    for name, needs in {**ABSENT, **FAULTS}.items():
        assert not prometheus.query(name), f"{name} has data; it is listed as needing {needs}"
    named = {name for _, expression in questions for name in metrics_of(expression)}
    strays = (set(ABSENT) | PERHAPS) - named
    assert not strays, f"listed, but nothing asks for them: {strays}"
    firing = [sample["metric"] for sample in prometheus.query('ALERTS{alertstate="firing"}')]
    allowed = {"TactusDiskFull"}  # of the machine that runs the tests
    assert {alert["alertname"] for alert in firing} <= allowed, f"alerts in a cluster that is well: {firing}"
    print(f"{len(questions)} expressions answered")


def check_restart(cluster):
    """A coordinator that is started again knows whom it waits for, and that one of them does not come back."""
    cluster.kill("coordinator")
    cluster.kill("b")
    cluster.start_coordinator(cluster.address)

    def connected(node):
        with urllib.request.urlopen(f"http://{cluster.metrics}/metrics", timeout=10) as answer:
            found = re.search(rf'^tactus_node_connected{{node="{node}"}} (\d)$', answer.read().decode(), re.M)
            return found and found.group(1)

    assert connected("b") == "1", "the node is not awaited"
    wait_until(lambda: connected("b") == "0", 60, "the node that did not come back is lost")
    assert connected("a") == "1", "the node that came back is lost"


def spec_of(corpus):
    return {**tiny_spec(corpus, time="120s"),
            "adapt": {"batch": {"policy": "auto", "per_worker": 8}, "synchronization": {"policy": "auto"},
                      "aggregation": {"policy": "average"}, "learning_rate": {"policy": "constant"}}}


def train(cluster, folder):
    """Two agents, a job on both, and one behind it that waits."""
    cluster.start_coordinator()
    cluster.start_agent("a", 1)
    cluster.start_agent("b", 1)
    wait_until(lambda: cluster.tactus("get", "nodes", "-o", "name")[1].split() == ["a", "b"], 20, "both agents are there")
    job = cluster.submit(spec_of(folder.corpus()))
    cluster.submit({**tiny_spec(folder.corpus()), "name": "waits"})
    cluster.wait(job, {"RUNNING"}, 60)
    return job


def main():
    if shutil.which("prometheus") is None:
        print("Prometheus is not installed (Debian's package prometheus)")
        sys.exit(SKIPPED)
    start = time.monotonic()
    folder = Folder()
    cluster = Cluster(folder.path)
    prometheus = None
    try:
        job = train(cluster, folder)
        prometheus = Prometheus(folder.path, configuration(folder.path, cluster))
        wait_until(lambda: len(prometheus.query('up{job=~"tactus-.*"} == 1')) == 3, 30, "three targets are scraped")
        nodes = {sample["metric"].get("node") for sample in prometheus.query('up{job="tactus-agent"}')}
        assert nodes == {"a", "b"}, f"agents are labelled {nodes}"
        check(prometheus, job)
        check_restart(cluster)
    finally:
        if prometheus is not None:
            prometheus.stop()
        cluster.stop()
        folder.remove()
    print(f"took {time.monotonic() - start:.0f} s")


main()
