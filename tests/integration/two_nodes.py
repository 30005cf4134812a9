"""A coordinator and two nodes with two devices each, for tests of groups; nothing of it may be left running."""
import unittest

from cluster import Cluster, Folder, processes_of, wait_until

WORKERS = 4


class TwoNodes(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        for node in ("a", "b"):
            self.cluster.start_agent(node, WORKERS // 2)

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def trains_beyond(self, job, rounds):
        wait_until(lambda: self.rounds(job) > rounds, 60, f"it trains beyond round {rounds}")
