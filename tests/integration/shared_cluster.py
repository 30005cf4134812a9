"""A coordinator that all tests of a class share, and what `begin` adds to it; nothing of it may be left running."""
import unittest

from cluster import Cluster, Folder, processes_of


class SharedCluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.cluster = Cluster(cls.folder.path)
        try:
            cls.cluster.start_coordinator()
            cls.begin()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def begin(cls):
        """Agents and jobs, for a class to say."""

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()
        left = processes_of(cls.folder.path)
        cls.folder.remove()
        if left:
            raise AssertionError(f"processes were left running: {left}")
