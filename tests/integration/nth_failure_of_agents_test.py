"""The nth call that changes files of an agent or of a worker fails, or that process is killed right before or right after
it: the job succeeds all the same, whatever is in its result is whole, and who did not go on says why.

TACTUS_NTH_AGENT_RUNS: how many of an agent's calls, each in a run of its own, evenly spread (4); "all": every one,
failing and killed.
TACTUS_NTH_WORKER_RUNS: the same of a worker's calls (4).
"""
import json
import os
import re
import shutil
import signal
import struct
import unittest
import zipfile

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until
from failing_call import ACCEPTS, ERRORS, KILLS, NO_FILE, FailingCall, spread

HOWS = (ERRORS[0], KILLS[0], ERRORS[1], KILLS[1])
TEXTS = {"EIO": "Input/output error", "ENOSPC": "No space left on device", NO_FILE: "Too many open files"}
# Of a program that did what it must not; SIGTERM and SIGKILL are how others end a worker.
CRASHES = {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGPIPE}
# What is beside a file that is not whole yet.
BESIDE = re.compile(r"\.partial$|last-words-\d+\..{6}$")


def check_safetensors(path):
    """Its length is what its header says."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
    ends = [about["data_offsets"][1] for name, about in header.items() if name != "__metadata__"]
    return path.stat().st_size == 8 + size + max(ends)


RECORDS = {"plans.jsonl", "provenance.intoto.jsonl"}  # that a download has beside the result


class Run:
    """A job on one agent, which meets the failure; where it ends, another one takes its place."""

    def __init__(self, folder, spec, failing):
        folder.mkdir()
        self.folder, self.spec, self.failing = folder, spec, failing
        self.cluster = Cluster(folder)
        self.cluster.start_coordinator()
        self.agent_code = None  # of the agent that met it and ended

    def start_agent(self):
        """Its workers meet the failing call as well, and write down that they did."""
        self.cluster.start_agent("a", 2, options=["--worker-env", "NTH_FAILURE*", "--writable", self.folder.parent])

    def live(self):
        with self.failing.met_by_children():
            self.start_agent()
        name = self.cluster.submit(self.spec)
        return wait_until(lambda: self.at_end(name), 120, f"{name} succeeds; {self.log()[-3000:]}")

    def at_end(self, name):
        self.agent_code = self.cluster.processes["a"].poll() if self.agent_code is None else self.agent_code
        if self.cluster.processes["a"].poll() is not None:
            self.start_agent()
        job = self.cluster.job(name)
        return job if job["state"] in ("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED") else None

    def log(self):
        path = self.folder / "a.log"
        return path.read_text() if path.exists() else ""

    def files(self, pattern):
        return [path for path in (self.folder / "a" / "jobs").rglob("*") if re.search(pattern, path.name)]


class NthFailureOfAgentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        corpus = cls.folder.corpus()
        cls.spec = {**tiny_spec(corpus), "model": {"torchscript": str(cls.trained_model(corpus))},
                    "data": {"text": str(corpus), "context": 16}, "stop": {"time": "1.5s"},
                    "checkpoints": {"every": "1s"}, "snapshots": {"every": "1s"}}
        whole = Run(cls.folder.path / "whole", cls.spec, FailingCall(0, ERRORS[0], f"{cls.folder.path}/whole/a/", cls.folder.path / "calls"))
        whole.live()
        whole.cluster.stop()
        cls.calls = {program: whole.failing.count(program) for program in ("tactus-agent", "tactus-worker")}

    @classmethod
    def tearDownClass(cls):
        left = processes_of(cls.folder.path)
        cls.folder.remove()
        assert not left, "processes were left running"

    @classmethod
    def trained_model(cls, corpus):
        """A TorchScript file, which travels to the node as users' files do."""
        cluster = Cluster(cls.folder.path / "before")
        cluster.folder.mkdir()
        try:
            cluster.start_coordinator()
            cluster.start_agent("a", 2)
            job = cluster.submit(tiny_spec(corpus, rounds=10))
            cluster.wait(job, ["SUCCEEDED"])
            cluster.tactus("download", job, "--to", cluster.folder / "result")
        finally:
            cluster.stop()
        return cluster.folder / "result" / "model.pt"

    def check_result(self, run, job):
        result = run.folder / "result"
        run.cluster.tactus("download", job["name"].rsplit("/", 1)[-1], "--to", result)
        files = {str(path.relative_to(result)) for path in result.rglob("*") if path.is_file()}
        kept = job["result"]["artifacts"] + run.cluster.job(job["name"]).get("snapshots", [])
        self.assertEqual(files - RECORDS, {artifact["path"] for artifact in kept})
        self.assertLessEqual({"model.pt", "model.safetensors", "summary.json"}, files)
        self.assertEqual(json.loads((result / "summary.json").read_text())["rounds"], int(job["result"]["rounds"]))
        self.assertIsNone(zipfile.ZipFile(result / "model.pt").testzip())
        for path in result.rglob("*.safetensors"):
            self.assertTrue(check_safetensors(path), path)

    def check_words(self, run, job):
        """What did not go on said why."""
        self.assertFalse({int(number) for number in re.findall(r"signal=(\d+)", run.log())} & CRASHES, run.log()[-3000:])
        if run.failing.kills:
            return
        reasons = [attempt.get("reason", "") for attempt in job["attempts"][:-1]]
        if run.agent_code is not None:
            self.assertGreater(run.agent_code, 0, run.log()[-3000:])
            reasons.append(re.findall("(?m)^tactus-agent: .*", run.log())[0])
        for reason in reasons:
            self.assertIn(TEXTS[run.failing.how], reason)

    def check_leftovers(self, run):
        wait_until(lambda: not run.files(r"last-words-\d+$"), 20, "the agent keeps nothing of it any more")
        if not run.failing.kills:
            self.assertEqual(run.files(BESIDE), [])

    def run_with(self, nth, how, program, below=None):
        """(whether its call came, the job's attempts)"""
        place = self.folder.path / f"{program}-{nth}-{how}"
        run = Run(place, self.spec, FailingCall(nth, how, below or f"{place}/a/", place / "calls", program))
        try:
            job = run.live()
            with self.subTest(nth=nth, how=how, call=run.failing.met(), agent=run.agent_code):
                self.assertEqual(job["state"], "JOB_STATE_SUCCEEDED", job.get("state_reason"))
                self.check_words(run, job)
                self.check_result(run, job)
                self.check_leftovers(run)
            return bool(run.failing.met()), len(job["attempts"])
        finally:
            run.cluster.stop()
            shutil.rmtree(place)

    def runs_of(self, program, runs):
        calls = self.calls[program]
        points = spread(calls, runs, HOWS)
        ends = [self.run_with(nth, how, program) for nth, how in points]
        met = sum(came for came, _ in ends)
        print(f"{program}: {calls} calls change files; {len(points)} runs, {met} met theirs: "
              f"{sum(attempts > 1 for _, attempts in ends)} began anew")
        # Their number depends on how often a round ends in that time.
        self.assertGreater(met, len(points) * 0.6)

    def test_of_an_agent(self):
        self.runs_of("tactus-agent", os.environ.get("TACTUS_NTH_AGENT_RUNS", "4"))

    def test_of_a_worker(self):
        self.runs_of("tactus-worker", os.environ.get("TACTUS_NTH_WORKER_RUNS", "4"))

    def test_of_a_connection_that_cannot_be_taken(self):
        """Of the agent's two workers, and of one of these at the other."""
        ends = [self.run_with(nth, NO_FILE, program, ACCEPTS)
                for nth, program in ((1, "tactus-agent"), (2, "tactus-agent"), (1, "tactus-worker"))]
        self.assertEqual([came for came, _ in ends], [True] * 3)
        self.assertEqual([attempts for _, attempts in ends[:2]], [1, 1], "a worker waits until it is taken")


if __name__ == "__main__":
    unittest.main(verbosity=2)
