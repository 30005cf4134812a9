"""What daemons say to the service manager that started them: that they serve, and how long they need to end."""
import os
import signal
import socket
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until


class ServiceManagerTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(self.folder.path / "notify"))
        self.manager.settimeout(30)
        os.environ["NOTIFY_SOCKET"] = str(self.folder.path / "notify")

    def tearDown(self):
        del os.environ["NOTIFY_SOCKET"]
        self.cluster.stop()
        self.manager.close()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def told(self):
        return self.manager.recv(4096).decode().split("\n")

    def test_daemons_say_that_they_serve_and_that_they_end(self):
        self.cluster.start_coordinator()
        self.assertEqual(self.told(), ["READY=1", f"STATUS=serving at {self.cluster.address}"])
        self.cluster.start_agent("n0", 1, drain_deadline="20s")
        self.assertEqual(self.told(), ["READY=1", f"STATUS=node n0 of the coordinator {self.cluster.address}"])

        self.cluster.signal("n0", signal.SIGTERM)
        # The deadline, and what workers are given after it.
        self.assertEqual(self.told(), ["STOPPING=1", "EXTEND_TIMEOUT_USEC=30000000"])
        self.cluster.signal("coordinator", signal.SIGTERM)
        self.assertEqual(self.told(), ["STOPPING=1"])

    def test_workers_do_not_speak_for_their_agent(self):
        self.cluster.start_coordinator()
        self.cluster.start_agent("n0", 2)
        self.cluster.submit(tiny_spec(self.folder.corpus(), time="10m"))
        worker = wait_until(lambda: self.cluster.workers("n0"), 30, "a worker")[0]
        with open(f"/proc/{worker}/environ", "rb") as environment:
            variables = environment.read()
        self.assertIn(b"TACTUS_TEST_FOLDER=", variables)
        self.assertNotIn(b"NOTIFY_SOCKET=", variables)


if __name__ == "__main__":
    unittest.main(verbosity=2)
