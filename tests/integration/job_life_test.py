"""A job's life with real daemons: result, cancellation, a coordinator that dies and returns, a job that begins from another's
checkpoint or result. What becomes of one whose workers are lost is job_losses_test.py's."""
import json
import signal
import struct
import unittest

from cluster import tiny_spec, wait_until
from one_coordinator import OneCoordinator


class JobLifeTest(OneCoordinator):
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

    def test_a_job_begins_from_anothers_result_or_checkpoint(self):
        self.cluster.start_agent("a", 2)
        former = self.cluster.submit(tiny_spec(self.corpus, rounds=200))
        trained = self.cluster.wait(former, ["SUCCEEDED", "FAILED"])
        later = self.submit_from(former, tiny_spec(self.corpus, rounds=20))
        begun = self.cluster.wait(later, ["SUCCEEDED", "FAILED"])
        self.assertEqual(begun["state"], "JOB_STATE_SUCCEEDED", begun.get("state_reason"))
        self.assertLess(begun["result"]["validation"]["loss"], trained["result"]["validation"]["loss"] + 0.2)

        running = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.cluster.wait(running, ["RUNNING"])
        self.await_rounds(running, 20)
        self.cluster.tactus("cancel", running)
        rounds = int(self.cluster.wait(running, ["CANCELLED"])["result"]["rounds"])
        onwards = self.submit_from(running, tiny_spec(self.corpus, rounds=rounds + 10))
        ended = self.cluster.wait(onwards, ["SUCCEEDED", "FAILED"])
        self.assertEqual(ended["state"], "JOB_STATE_SUCCEEDED", ended.get("state_reason"))
        self.assertEqual(int(ended["attempts"][0]["first_round"]), rounds)

        spec = tiny_spec(self.corpus, rounds=20)
        spec["model"]["options"]["width"] = 2 * spec["model"]["options"]["width"]
        wrong = self.cluster.wait(self.submit_from(former, spec), ["SUCCEEDED", "FAILED"])
        self.assertEqual(wrong["state"], "JOB_STATE_FAILED")
        self.assertEqual(wrong["error_field"], "from")
        self.assertRegex(wrong["state_reason"], r"tensor '[a-z0-9._]+' is F32\[[0-9, ]+\], this job's is F32\[[0-9, ]+\]")

    def submit_from(self, former, spec):
        path = self.folder.path / "from.json"
        path.write_text(json.dumps(spec))
        return self.cluster.tactus("submit", path, "--from", former)[1].strip().rsplit("/", 1)[-1]

    def test_training_survives_the_coordinator(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, time="8s"))
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
        job = self.cluster.submit(tiny_spec(self.corpus, time="5s"))
        self.cluster.wait(job, ["RUNNING"])

        self.cluster.signal("coordinator", signal.SIGSTOP)
        # Workers end by themselves after 5 s of training: only then is the coordinator woken.
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
