"""A coordinator, to which a test adds agents, and a text for its jobs; nothing of it may be left running."""
import os
import signal
import unittest

from cluster import Cluster, Folder, processes_of, wait_until


class OneCoordinator(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def workers(self):
        return self.cluster.workers()

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def kill_workers(self):
        """All of them, so that nobody goes on."""
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)

    def await_rounds(self, job, rounds):
        wait_until(lambda: self.rounds(job) >= rounds, 60, f"{rounds} rounds")

    def end_after(self, job, rounds):
        """Of one that was to train on: it has trained long enough for what the test is about."""
        self.cluster.end_after(job, rounds)
