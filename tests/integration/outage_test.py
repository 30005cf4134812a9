"""Outages of the control plane, with real daemons: the same workers train on, and the job succeeds.

TACTUS_OUTAGE_SECONDS: how long each lasts; more than the 12 s after which an agent counts as unreachable.
"""
import os
import socket
import threading
import time
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until

OUTAGE = float(os.environ.get("TACTUS_OUTAGE_SECONDS", "14"))


class Link:
    """A port of 127.0.0.1 that leads to another one, and can be cut: nothing passes, nobody is told."""

    def __init__(self, target):
        self.target = (target.rsplit(":", 1)[0], int(target.rsplit(":", 1)[1]))
        self.passes = threading.Event()
        self.passes.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                self.passes.wait()
                far = socket.create_connection(self.target)
            except OSError:
                if self.listener.fileno() < 0:
                    return
                near.close()
                continue
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source, sink):
        try:
            while data := source.recv(65536):
                self.passes.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        self.passes.clear()

    def mend(self):
        self.passes.set()

    def close(self):
        self.passes.set()
        self.listener.close()


class OutageTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        self.direct = self.cluster.address
        self.links = [Link(self.direct), Link(self.direct)]
        for name, link in zip("ab", self.links):
            self.cluster.address = link.address
            self.cluster.start_agent(name, 1)
        self.cluster.address = self.direct
        spec = tiny_spec(self.folder.corpus(), time=f"{int(OUTAGE * 3 + 300)}s")
        spec["workers"] = {"min": 2, "max": 2}
        self.job = self.cluster.submit(spec)
        self.cluster.wait(self.job, ["RUNNING"])
        self.workers = self.worker_processes()
        self.assertEqual(len(self.workers), 2)

    def tearDown(self):
        for link in self.links:
            link.close()
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def worker_processes(self):
        agents = [p.pid for name, p in self.cluster.processes.items() if name != "coordinator"]
        found = []
        for agent in agents:
            with open(f"/proc/{agent}/task/{agent}/children") as children:
                found += children.read().split()
            for task in os.listdir(f"/proc/{agent}/task"):
                if task != str(agent):
                    with open(f"/proc/{agent}/task/{task}/children") as children:
                        found += children.read().split()
        return sorted(int(pid) for pid in found)

    def rounds(self):
        return int(self.cluster.job(self.job)["progress"].get("rounds", 0))

    def expect_unharmed(self, what, before, since):
        def caught_up():
            return self.rounds() > before and self.cluster.state(self.job) == "RUNNING"
        wait_until(caught_up, 30, "rounds come again")
        self.assertEqual(self.worker_processes(), self.workers, what)
        print(f"{what}: {self.rounds() - before} rounds in {time.monotonic() - since:.1f} s, the same workers", flush=True)

    def test_the_same_workers_train_through_every_outage(self):
        before, since = self.rounds(), time.monotonic()
        time.sleep(2)
        print(f"undisturbed: {self.rounds() - before} rounds in {time.monotonic() - since:.1f} s", flush=True)

        before, since = self.rounds(), time.monotonic()
        self.links[1].cut()
        time.sleep(OUTAGE)
        self.assertIn("not heard: node b", self.cluster.job(self.job)["state_reason"])
        self.links[1].mend()
        self.expect_unharmed("one agent cut off", before, since)

        before, since = self.rounds(), time.monotonic()
        for link in self.links:
            link.cut()
        time.sleep(OUTAGE)
        for link in self.links:
            link.mend()
        self.expect_unharmed("the coordinator cut off from all", before, since)

        before, since = self.rounds(), time.monotonic()
        self.cluster.kill("coordinator")
        time.sleep(OUTAGE / 2)
        os.rename(self.folder.path / "coordinator", self.folder.path / "right")
        self.cluster.start_coordinator(listen=self.direct)  # with another, empty store
        time.sleep(OUTAGE / 2)
        self.assertEqual(self.worker_processes(), self.workers, "a coordinator with the wrong store")
        self.cluster.kill("coordinator")
        os.rename(self.folder.path / "coordinator", self.folder.path / "wrong")
        os.rename(self.folder.path / "right", self.folder.path / "coordinator")
        self.cluster.start_coordinator(listen=self.direct)
        self.expect_unharmed("the coordinator killed, one with the wrong store, and back", before, since)

        self.cluster.tactus("update", self.job, "--set", f"spec.stop.rounds={self.rounds() + 100}")
        done = self.cluster.wait(self.job, ["SUCCEEDED", "FAILED", "CANCELLED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))


if __name__ == "__main__":
    unittest.main()
