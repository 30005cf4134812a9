"""Jobs whose workers or agents are lost, with real daemons: tried again from what was kept, or failed with the reason."""
import json
import os
import struct
import unittest

from cluster import tiny_spec, wait_until
from one_coordinator import OneCoordinator


class JobLossesTest(OneCoordinator):
    def test_a_job_whose_workers_are_killed_succeeds_by_itself(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.cluster.wait(job, ["RUNNING"])
        self.await_rounds(job, 20)

        self.kill_workers()
        rests = self.cluster.wait(job, ["QUEUED"])
        shown = self.cluster.tactus("get", "jobs", "-o", "wide")[1]
        self.end_after(job, 300)
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])

        self.assertIn("goes on from the beginning in 5 seconds (retry 1 of 3)", rests["state_reason"])
        self.assertIn("retry 1 of 3", shown)
        self.assertIn("retry_time", rests)
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(int(done["result"]["rounds"]), 300)
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
        job = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.cluster.wait(job, ["RUNNING"])
        self.await_rounds(job, 20)
        self.cluster.tactus("pause", job)
        kept = int(self.cluster.wait(job, ["PAUSED"])["checkpoint_rounds"])
        self.cluster.tactus("resume", job)
        self.cluster.wait(job, ["RUNNING"])
        self.await_rounds(job, kept + 20)

        self.kill_workers()

        self.cluster.wait(job, ["QUEUED"])
        self.end_after(job, kept + 200)
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(int(done["attempts"][1]["first_round"]), kept)
        self.assertEqual(int(done["result"]["rounds"]), kept + 200)

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
        self.end_after(job, kept + 200)
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
        self.end_after(job, newest + 200)

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertIn(f"the checkpoint after {newest} rounds was given up", done["attempts"][1]["reason"])
        former = int(done["attempts"][2]["first_round"])
        self.assertEqual(former, max(rounds for rounds in blobs if rounds < newest))

    def train_with_checkpoints(self, count):
        """A job that trains for a while and has so many checkpoints."""
        spec = {**tiny_spec(self.corpus, time="10m"), "checkpoints": {"every": "1s"}}
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
        job = self.cluster.submit({**tiny_spec(self.corpus, time="10m"), "workers": {"max": 2}})
        wait_until(lambda: self.cluster.trains_on(job, 2), 60, "both train")

        self.cluster.kill("b")

        wait_until(lambda: int(self.cluster.job(job).get("regroups", 0)) == 1, 120, "the other one trains on")
        self.end_after(job, int(self.cluster.job(job)["progress"]["rounds"]) + 50)
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(len(done["attempts"]), 1)
        self.assertEqual(done["attempts"][0]["nodes"], ["a"])
        self.assertEqual(int(done["regroups"]), 1)
        wait_until(lambda: not self.workers(), 30, "workers are gone")


if __name__ == "__main__":
    unittest.main(verbosity=2)
