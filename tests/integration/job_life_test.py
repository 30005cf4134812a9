"""A job's life with real daemons: result, cancellation, a lost worker, a coordinator that dies and returns."""
import json
import os
import signal
import struct
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until


class JobLifeTest(unittest.TestCase):
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
        """Ids of the worker processes of this test's agents."""
        agents = [p.pid for name, p in self.cluster.processes.items() if name != "coordinator"]
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat") as stat:
                        fields = stat.read().rsplit(")", 1)[1].split()
                    with open(f"/proc/{entry}/comm") as comm:
                        name = comm.read().strip()
                except OSError:
                    continue
                if int(fields[1]) in agents and name == "tactus-worker" and fields[0] != "Z":
                    found.append(int(entry))
        return found

    def test_result_is_what_python_loads(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, epochs=2))

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])

        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.cluster.tactus("download", job, "--to", self.folder.path / "out")
        self.check_result(self.folder.path / "out", done)

    def check_result(self, folder, job):
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")
        model = torch.jit.load(str(folder / "model.pt"))
        text = self.corpus.read_bytes()
        part = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()[self.validation_begin(len(text)):]
        count = (len(part) - 1) // 16
        inputs = part[:count * 16].view(count, 16)
        targets = part[1:count * 16 + 1].view(count, 16)
        with torch.no_grad():
            loss = torch.nn.functional.cross_entropy(model(inputs).transpose(1, 2), targets).item()
        self.assertAlmostEqual(loss, job["result"]["validation"]["loss"], delta=1e-4)
        self.assertEqual(int(job["result"]["validation"]["samples"]), count)
        raw = (folder / "model.safetensors").read_bytes()
        header = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
        names = {name for name, _ in model.named_parameters()}
        self.assertEqual(names, set(header) - {"__metadata__"} - {n for n, _ in model.named_buffers()})

    @staticmethod
    def validation_begin(size):
        return size - int(size * 0.1)

    def test_cancel_keeps_or_discards_the_result(self):
        self.cluster.start_agent("a", 2)
        keep = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.cluster.wait(keep, ["RUNNING"])
        self.cluster.tactus("cancel", keep)
        kept = self.cluster.wait(keep, ["CANCELLED"])
        paths = sorted(artifact["path"] for artifact in kept["result"]["artifacts"])
        self.assertEqual(paths[:-1], ["checkpoint.safetensors", "model.pt", "model.safetensors", "summary.json"])
        self.assertRegex(paths[-1], r"^tensorboard/events\.out\.tfevents\.\d+\.")

        discard = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.cluster.wait(discard, ["RUNNING"])
        self.cluster.tactus("cancel", discard, "--discard")
        discarded = self.cluster.wait(discard, ["CANCELLED"])
        self.assertEqual(discarded.get("result", {}).get("artifacts", []), [])
        wait_until(lambda: not self.workers(), 20, "workers are gone")

    def test_a_killed_worker_fails_the_job_with_the_reason_and_frees_the_devices(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.cluster.wait(job, ["RUNNING"])

        os.kill(self.workers()[0], signal.SIGKILL)

        failed = self.cluster.wait(job, ["FAILED"])
        self.assertIn("signal 9", failed["state_reason"])
        wait_until(lambda: not self.workers(), 30, "workers are gone")
        again = self.cluster.submit(tiny_spec(self.corpus, rounds=20))
        self.assertEqual(self.cluster.wait(again, ["SUCCEEDED", "FAILED"])["state"], "JOB_STATE_SUCCEEDED")

    def test_a_killed_agent_takes_its_workers_along(self):
        self.cluster.start_agent("a", 1)
        self.cluster.start_agent("b", 1)
        job = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.cluster.wait(job, ["RUNNING"])

        self.cluster.kill("b")

        failed = self.cluster.wait(job, ["FAILED"])
        self.assertTrue(failed["state_reason"])
        wait_until(lambda: not self.workers(), 30, "workers are gone")

    def test_training_survives_the_coordinator(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, time="12s"))
        self.cluster.wait(job, ["RUNNING"])
        before = set(self.workers())

        self.cluster.kill("coordinator")
        address = self.cluster.address
        self.cluster.start_coordinator(address)

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(len(before), 2)
        rounds = int(done["result"]["rounds"])
        listed = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])
        self.assertGreater(rounds, 50)
        self.assertGreater(len(listed.get("rounds", listed)), 50)

    def test_a_stopped_coordinator_does_not_stop_training(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, time="8s"))
        self.cluster.wait(job, ["RUNNING"])

        self.cluster.signal("coordinator", signal.SIGSTOP)
        # Workers end by themselves after 8 s of training: only then is the coordinator woken.
        wait_until(lambda: not self.workers(), 40, "workers end while the coordinator is stopped")
        self.cluster.signal("coordinator", signal.SIGCONT)

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))

    def test_what_workers_find_wrong_comes_back_with_its_field(self):
        self.cluster.start_agent("a", 2)
        cases = [("data.text", {"data": {"text": "/nonexistent/corpus.txt"}}),
                 ("data.text", {"data": {"text": str(self.folder.path / "empty")}}),
                 ("model.torchscript", {"model": {"torchscript": str(self.corpus)}})]
        (self.folder.path / "empty").write_bytes(b"")
        for field, change in cases:
            with self.subTest(field=field, change=change):
                job = self.cluster.submit({**tiny_spec(self.corpus, rounds=20), **change})
                failed = self.cluster.wait(job, ["FAILED", "SUCCEEDED"])
                self.assertEqual(failed["state"], "JOB_STATE_FAILED")
                self.assertEqual(failed["error_field"], field, failed["state_reason"])
                self.assertNotIn("\n", failed["state_reason"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
