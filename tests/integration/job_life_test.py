"""A job's life with real daemons: result, cancellation, lost workers and agents, a coordinator that dies and returns,
a job that begins from another's checkpoint or result."""
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
        return self.cluster.workers()

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

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def kill_workers(self):
        """All of them, so that nobody goes on."""
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)

    def await_rounds(self, job, rounds):
        wait_until(lambda: self.rounds(job) >= rounds, 60, f"{rounds} rounds")

    def test_a_job_whose_workers_are_killed_succeeds_by_itself(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, rounds=1500))
        self.cluster.wait(job, ["RUNNING"])
        self.await_rounds(job, 20)

        self.kill_workers()
        rests = self.cluster.wait(job, ["QUEUED"])
        shown = self.cluster.tactus("get", "jobs", "-o", "wide")[1]
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])

        self.assertIn("goes on from the beginning in 5 seconds (retry 1 of 3)", rests["state_reason"])
        self.assertIn("retry 1 of 3", shown)
        self.assertIn("retry_time", rests)
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(int(done["result"]["rounds"]), 1500)
        first, second = done["attempts"]
        self.assertIn("signal 9", first["reason"])
        self.assertGreaterEqual(int(first["rounds"]), 20)
        self.assertEqual(int(second.get("first_round", 0)), 0)
        self.assertEqual(int(second["samples"]), int(done["result"]["samples"]))
        # The history has each round of the attempt that counts once.
        listed = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])
        listed = listed.get("rounds", listed)
        self.assertEqual([int(one.get("round", 0)) for one in listed], list(range(len(listed))))
        told = self.cluster.tactus("describe", "job", job)[1]
        self.assertRegex(told, r"(?m)^  1 .*signal 9 \(SIGKILL\)")

    def test_a_lost_group_costs_no_more_than_what_is_newer_than_the_checkpoint(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, rounds=3000))
        self.cluster.wait(job, ["RUNNING"])
        self.await_rounds(job, 20)
        self.cluster.tactus("pause", job)
        kept = int(self.cluster.wait(job, ["PAUSED"])["checkpoint_rounds"])
        self.cluster.tactus("resume", job)
        self.cluster.wait(job, ["RUNNING"])
        self.await_rounds(job, kept + 20)

        self.kill_workers()

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(int(done["attempts"][1]["first_round"]), kept)
        self.assertEqual(int(done["result"]["rounds"]), 3000)

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

    def test_killed_workers_fail_a_job_without_retries_with_the_reason_and_free_the_devices(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit({**tiny_spec(self.corpus, time="10m"), "retries": 0})
        self.cluster.wait(job, ["RUNNING"])

        self.kill_workers()

        failed = self.cluster.wait(job, ["FAILED"])
        self.assertIn("signal 9", failed["state_reason"])
        wait_until(lambda: not self.workers(), 30, "workers are gone")
        again = self.cluster.submit(tiny_spec(self.corpus, rounds=20))
        self.assertEqual(self.cluster.wait(again, ["SUCCEEDED", "FAILED"])["state"], "JOB_STATE_SUCCEEDED")

    def test_a_job_that_fails_keeps_the_snapshots_that_it_took(self):
        self.cluster.start_agent("a", 2)
        spec = {**tiny_spec(self.corpus, time="10m"), "retries": 0, "snapshots": {"every": "1s"}}
        job = self.cluster.submit(spec)
        wait_until(lambda: len(self.cluster.job(job).get("snapshots", [])) >= 3, 60, "three snapshots are there")
        self.cluster.kill("coordinator")
        self.cluster.start_coordinator(self.cluster.address)
        wait_until(lambda: len(self.cluster.job(job).get("snapshots", [])) >= 5, 60, "they go on coming")

        self.kill_workers()

        failed = self.cluster.wait(job, ["FAILED"])
        self.assertNotIn("result", failed)
        kept = [snapshot["path"] for snapshot in failed["snapshots"]]
        self.assertGreaterEqual(len(kept), 5)
        seconds = [float(path.removeprefix("snapshots/").removesuffix(".safetensors")) for path in kept]
        self.assertEqual(seconds, sorted(seconds))
        self.cluster.stop()  # nothing comes from the node any more
        self.cluster.start_coordinator()
        self.assertRegex(self.cluster.tactus("describe", "job", job)[1], rf"snapshots +{len(kept)} \([0-9.]+ \S*B\), ")
        out = self.folder.path / "out"
        self.cluster.tactus("download", job, "--to", out)
        self.assertEqual(sorted(str(path.relative_to(out)) for path in out.rglob("*.safetensors")), sorted(kept))
        contents = [(out / path).read_bytes() for path in kept]
        self.assertEqual(len({len(content) for content in contents}), 1, "all are whole")
        self.assertEqual(len(set(contents)), len(kept), "each is of another time")

    def test_a_lost_group_costs_what_is_newer_than_the_checkpoint_on_the_way(self):
        self.cluster.start_agent("a", 2)
        job = self.train_with_checkpoints(2)

        self.kill_workers()

        rests = self.cluster.wait(job, ["QUEUED"])
        kept = int(rests["checkpoint_rounds"])
        self.assertGreater(kept, 0)
        self.assertIn(f"goes on from round {kept} ", rests["state_reason"])
        self.assertGreater(int(rests["checkpoint_size_bytes"]), 0)
        self.assertRegex(self.cluster.tactus("describe", "job", job)[1], rf"checkpoint +after {kept:,} rounds, [0-9.]+ \S*B, ")
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(int(done["attempts"][1]["first_round"]), kept)
        self.assertGreater(int(done["result"]["rounds"]), kept)
        paths = [artifact["path"] for artifact in done["result"]["artifacts"]]
        self.assertFalse([path for path in paths if path.startswith("checkpoints/")], paths)
        self.assertEqual(list((self.folder.path / "a").rglob("checkpoints/*")), [])

    def test_a_damaged_checkpoint_gives_way_to_the_one_before_it(self):
        self.cluster.start_agent("a", 2)
        job = self.train_with_checkpoints(2)

        self.kill_workers()
        newest = int(self.cluster.wait(job, ["QUEUED"])["checkpoint_rounds"])
        blobs = self.checkpoints()
        with open(blobs[newest], "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertIn(f"the checkpoint after {newest} rounds was given up", done["attempts"][1]["reason"])
        former = int(done["attempts"][2]["first_round"])
        self.assertEqual(former, max(rounds for rounds in blobs if rounds < newest))

    def train_with_checkpoints(self, count):
        """A job that trains for a while and has so many checkpoints."""
        spec = {**tiny_spec(self.corpus, time="20s"), "checkpoints": {"every": "1s"}}
        job = self.cluster.submit(spec)
        self.cluster.wait(job, ["RUNNING"])
        rounds = set()

        def enough():
            rounds.add(int(self.cluster.job(job).get("checkpoint_rounds", 0)))
            return len(rounds - {0}) >= count
        wait_until(enough, 30, f"{count} checkpoints")
        return job

    def checkpoints(self):
        """The coordinator's checkpoints by the rounds that are in them."""
        found = {}
        for path in (self.folder.path / "coordinator").rglob("blobs/*/*"):
            if path.parent.name == "partial":
                continue
            raw = path.read_bytes()
            if raw[8:9] != b"{":
                continue  # the text that the job trains on
            metadata = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]]).get("__metadata__", {})
            if "tactus.schema" in metadata:
                found[int(metadata["rounds"])] = path
        return found

    def test_a_killed_agent_takes_its_workers_along(self):
        self.cluster.start_agent("a", 1)
        self.cluster.start_agent("b", 1)
        wait_until(lambda: len(self.cluster.tactus("get", "nodes")[1].splitlines()) == 3, 30, "both nodes are there")
        job = self.cluster.submit({**tiny_spec(self.corpus, rounds=1000), "workers": {"max": 2}})
        self.cluster.wait(job, ["RUNNING"])

        self.cluster.kill("b")

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(len(done["attempts"]), 1)
        self.assertEqual(done["attempts"][0]["nodes"], ["a"])
        self.assertEqual(int(done["regroups"]), 1)
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
