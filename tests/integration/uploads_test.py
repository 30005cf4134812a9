"""kill -9 of an agent that brings up a result: the next one goes on with it, and the job succeeds in the same attempt."""
import json
import signal
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until


class UploadsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        self.cluster.start_agent("a", 2)

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def kept(self):
        return list((self.folder.path / "a" / "jobs").glob("*/last-words-*"))

    def is_sent(self):
        """The worker of rank 0 has finished, and its agent still has something to do."""
        return any("model.pt" in words.read_text() for words in self.kept())

    def arriving(self):
        """Files of which the coordinator has a part."""
        parts = (self.folder.path / "coordinator").glob("**/partial/*")
        return [part for part in parts if part.stat().st_size > 0]

    def start_job(self, **more):
        return self.cluster.submit({**tiny_spec(self.folder.corpus()), **more})

    def restart_agent(self):
        self.cluster.kill("a")
        self.cluster.signal("coordinator", signal.SIGCONT)
        self.cluster.start_agent("a", 2)

    def check(self, job):
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED", "QUEUED"], 120)
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(len(done["attempts"]), 1)
        self.assertGreater(int(done["result"]["validation"]["samples"]), 0)
        self.cluster.tactus("download", job, "--to", self.folder.path / "result")
        summary = json.loads((self.folder.path / "result" / "summary.json").read_text())
        self.assertEqual(summary["rounds"], int(done["result"]["rounds"]))
        wait_until(lambda: not self.kept(), 20, "the agent keeps nothing of it any more")

    def test_a_result_goes_on_where_it_was(self):
        big = {"builtin": "bytes-lm", "options": {"width": 512, "heads": 2, "layers": 4, "context": 16}}
        job = self.start_job(model=big, stop={"rounds": 3})
        wait_until(lambda: self.is_sent() and self.arriving(), 120, "the result is on its way")

        self.cluster.signal("coordinator", signal.SIGSTOP)
        self.assertTrue(self.is_sent(), "the upload was over")
        self.restart_agent()

        self.check(job)

    def test_words_that_were_never_heard_are_said_by_the_next_agent(self):
        job = self.start_job(stop={"time": "5s"})
        wait_until(lambda: self.cluster.state(job) == "RUNNING", 60, "it trains")
        self.cluster.signal("coordinator", signal.SIGSTOP)
        wait_until(lambda: not self.cluster.workers("a"), 60, "its workers have ended")
        self.restart_agent()

        self.check(job)


if __name__ == "__main__":
    unittest.main()
