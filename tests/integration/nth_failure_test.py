"""The nth call that changes the coordinator's files fails, or the coordinator is killed right before or right after it, for
one n after the other: nothing that was answered is lost, and nothing is half there.

TACTUS_NTH_FAILURES: how many of the calls fail, each in a run of its own, evenly spread (24); "all": every one, twice.
TACTUS_NTH_KILLS: the same of kills, before and after in turn (10); "all": both, of every one.
"""
import json
import os
import shutil
import signal
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec
from failing_call import ACCEPTS, ERRORS, KILLS, NO_FILE, FailingCall, spread

EXIT_NO_COORDINATOR = 6


class Run:
    """One coordinator's life with a failure, and the next one's without. how: of ERRORS or KILLS. below: the calls that
    count; nothing: those on its files."""

    def __init__(self, folder, nth, how, below=None):
        self.folder = folder
        self.failing = FailingCall(nth, how, below or folder / "coordinator", folder / "calls")
        self.cluster = Cluster(folder)
        self.said = []  # what the coordinator answered: (what was asked, exit code)
        self.jobs = {}  # what it said is so: the state by job, and what must be true of it

    def ask(self, *words):
        """The answer, or nothing where it was refused; a coordinator that is gone is asked no more."""
        if self.said and self.said[-1][1] == EXIT_NO_COORDINATOR:
            return None
        code, out, _ = self.cluster.tactus("--request-timeout", "20s", *words, check=False)
        self.said.append((words, code))
        return out if code == 0 else None

    def live(self):
        """Starts it, and changes what there is. True: it was stopped when asked, without complaint."""
        try:
            with self.failing.met_by_children():
                self.cluster.start_coordinator()
        except AssertionError:
            return self.end()
        self.change()
        return self.end()

    def change(self):
        spec = tiny_spec(self.folder / "corpus.txt")
        model = self.folder / "model.pt"
        model.write_bytes(b"weights" * 50000)
        (self.folder / "one.json").write_text(json.dumps(spec))
        (self.folder / "two.json").write_text(json.dumps({**spec, "name": "two", "model": {"torchscript": str(model)}}))
        for path in ("one.json", "two.json", "one.json"):
            out = self.ask("submit", self.folder / path, "-o", "name")
            if out:
                self.jobs[out.strip().rsplit("/", 1)[-1]] = {"JOB_STATE_QUEUED"}
        for name in list(self.jobs):
            # What was asked for and not answered may be so or not.
            verb, state = ("cancel", "JOB_STATE_CANCELLED") if name.startswith("tiny") else ("pause", "JOB_STATE_PAUSED")
            self.jobs[name] = {state} if self.ask(verb, name) is not None else self.jobs[name] | {state}

    def end(self):
        process = self.cluster.processes["coordinator"]
        if process.poll() is None:
            process.terminate()
        code = process.wait(30)
        self.cluster.processes.clear()
        return code


class NthFailureTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.count = 0

    def tearDown(self):
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [])

    def run_with(self, nth, how, below=None):
        place = self.folder.path / f"{nth}-{how}"
        place.mkdir()
        (place / "corpus.txt").write_text("round plan lane " * 500)
        run = Run(place, nth, how, below)
        code = run.live()
        return run, code

    def check_end(self, run, code):
        log = (run.folder / "coordinator.log").read_text()
        if run.failing.kills:
            self.assertEqual(code, -signal.SIGKILL if run.failing.met() else 0, log[-3000:])
            return
        self.assertGreaterEqual(code, 0, f"it died by signal {-code}:\n{log[-3000:]}")
        if not run.said:
            self.assertNotEqual(code, 0, "it did not serve, and says that all is well")
            self.assertRegex(log, "(?m)^tactus-coordinator: .+")

    def check(self, run, code):
        self.check_end(run, code)
        clean = Cluster(run.folder)
        try:
            clean.start_coordinator()
            found = {job["name"].rsplit("/", 1)[-1]: job["state"]
                     for job in json.loads(clean.tactus("get", "jobs", "-o", "json")[1]).get("jobs", [])}
            for name, states in run.jobs.items():
                self.assertIn(name, found, "it was answered, and is lost")
                self.assertIn(found[name], states)
            done, out, err = clean.tactus("admin", "integrity-check", check=False)
            self.assertEqual(done, 0, out + err)
        finally:
            clean.stop()

    def whole_run(self):
        """How many calls change files where nothing goes wrong."""
        whole, code = self.run_with(0, ERRORS[0])
        self.assertEqual(code, 0)
        self.assertEqual({exit_code for _, exit_code in whole.said}, {0}, whole.said)
        self.assertEqual(len(whole.jobs), 3)
        return whole.failing.count("tactus-coordinator")

    def runs_of(self, points, calls):
        reached = refused = not_served = 0
        for nth, how in points:
            run, code = self.run_with(nth, how)
            with self.subTest(nth=nth, how=how, call=run.failing.met(), exit=code):
                self.check(run, code)
            reached += bool(run.failing.met())
            not_served += not run.said
            refused += any(exit_code for _, exit_code in run.said)
            shutil.rmtree(run.folder)
        print(f"{calls} calls change files; {len(points)} runs, {reached} met theirs: {not_served} did not serve, "
              f"{refused} refused something")
        # The same calls come in about the same order.
        self.assertGreater(reached, len(points) * 0.8)

    def test_nothing_that_was_answered_is_lost_by_a_failure(self):
        calls = self.whole_run()
        self.runs_of(spread(calls, os.environ.get("TACTUS_NTH_FAILURES", "24"), ERRORS), calls)

    def test_nothing_that_was_answered_is_lost_by_a_kill(self):
        calls = self.whole_run()
        self.runs_of(spread(calls, os.environ.get("TACTUS_NTH_KILLS", "10"), KILLS), calls)

    def test_a_connection_that_cannot_be_taken_is_taken_a_little_later(self):
        for nth in range(1, 6):
            run, code = self.run_with(nth, NO_FILE, ACCEPTS)
            with self.subTest(nth=nth, call=run.failing.met()):
                self.assertTrue(run.failing.met())
                self.assertEqual(code, 0)
                self.assertEqual({exit_code for _, exit_code in run.said}, {0}, run.said)
                self.check(run, code)


if __name__ == "__main__":
    unittest.main(verbosity=2)
