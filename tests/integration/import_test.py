"""The record of a coordinator with an embedded store goes on in PostgreSQL: jobs, results and the agents that were there."""
import subprocess
import sys
import unittest

from cluster import BIN, tiny_spec, wait_until
from one_coordinator import OneCoordinator
from sharing import Postgres, missing


class ImportTest(OneCoordinator):
    def setUp(self):
        self.database = Postgres().start()
        self.addCleanup(self.database.remove)
        super().setUp()
        self.state = self.folder.path / "coordinator"

    def take_over(self, *words):
        done = subprocess.run([str(word) for word in (BIN / "tactus-coordinator", "--store", self.database.address, "--state-dir",
                                                      self.state, "--import-from", self.state, *words)],
                              capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_jobs_results_and_agents_go_on(self):
        self.cluster.start_agent("a", 2)
        over = self.cluster.submit(tiny_spec(self.corpus, rounds=100))
        before = self.cluster.wait(over, ["SUCCEEDED"])
        rounds = self.cluster.tactus("get", "rounds", over, "-o", "json")[1]
        running = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.await_rounds(running, 20)
        workers = sorted(self.workers())
        code, said = self.take_over()
        self.assertEqual(code, 69, said)
        self.assertIn("is held by process", said)
        address = self.cluster.address
        self.cluster.kill("coordinator")  # its last writes are in the log of its database

        code, said = self.take_over()

        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"imported .* 2 jobs, \d+ rounds, \d+ rows, read back and equal")
        self.assertNotIn("are not in", said)
        code, again = self.take_over()
        self.assertEqual(code, 73, again)
        self.assertIn("store: the database has records already (table jobs)", again)
        self.cluster.start_coordinator(address, ["--store", self.database.address])
        wait_until(lambda: self.cluster.tactus("get", "jobs", check=False)[0] == 0, 20, "it stands by for a moment, then leads")
        self.assertEqual(self.cluster.job(over)["result"], before["result"])
        self.assertEqual(self.cluster.tactus("get", "rounds", over, "-o", "json")[1], rounds)
        self.cluster.tactus("download", over, "--to", self.folder.path / "result")
        self.cluster.tactus("admin", "integrity-check")
        # The agent obeys it: the same record, with a higher epoch.
        self.await_rounds(running, self.rounds(running) + 20)
        self.assertEqual(sorted(self.workers()), workers)
        self.assertEqual(len(self.cluster.job(running)["attempts"]), 1)
        self.end_after(running, self.rounds(running) + 50)
        self.assertEqual(self.cluster.wait(running, ["SUCCEEDED", "FAILED"])["state"], "JOB_STATE_SUCCEEDED")

    def test_files_that_are_elsewhere_are_told(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, rounds=20))
        self.cluster.wait(job, ["SUCCEEDED"])
        self.cluster.stop()
        code, said = self.take_over("--files-dir", self.folder.path / "shared")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, rf"(\d+) of \1 files that jobs name are not in {self.folder.path}/shared yet: copy blobs/ and jobs/")
        for name in ("blobs", "jobs", "mesh-key"):
            self.assertIn(f"copy {self.state}/{name} to {self.folder.path}/shared\n", said)
        self.assertTrue((self.state / "coordinator.db").exists())
        self.assertFalse((self.state / "copy.tmp").exists())

    def test_what_is_wrong_is_said(self):
        self.cluster.stop()
        for words, says in ((["--state-dir", self.state, "--import-from", self.state], "import-from: found without --store"),
                            (["--store", self.database.address, "--state-dir", self.folder.path / "new", "--import-from",
                              self.folder.path], "has no coordinator.db; give the --state-dir of a coordinator")):
            done = subprocess.run([str(word) for word in (BIN / "tactus-coordinator", *words)], capture_output=True, text=True,
                                  timeout=30, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}")
        sys.exit(77)
    unittest.main(verbosity=2)
