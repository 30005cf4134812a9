"""Real jobs whose workers keep parameters of their own and follow those of the least loss: they learn, outlive a worker's
death, go on from a checkpoint, and end with one result."""
import json
import os
import signal
import unittest

from cluster import tiny_spec, wait_until
from shared_cluster import SharedCluster

ROUNDS = 120
WORKERS = 3  # two on one node, one on another


class FollowersTest(SharedCluster):
    @classmethod
    def begin(cls):
        cls.corpus = cls.folder.corpus(400000)
        cls.cluster.start_agent("a", 2)
        cls.cluster.start_agent("b", 1)

    def spec(self, **stop):
        spec = tiny_spec(self.corpus, **(stop or {"rounds": ROUNDS}))
        spec["workers"] = {"min": WORKERS, "max": WORKERS}
        spec["adapt"]["synchronization"] = {"policy": "lsgd", "period": 8, "node_period": 4}
        return spec

    def rounds_of(self, job):
        return json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]

    def done(self, job):
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        return done

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def training(self, job, rounds):
        wait_until(lambda: self.rounds(job) >= rounds, 60, "it trains")

    def check_end(self, job):
        """Workers compare hashes in the end, and a job whose workers differ then does not succeed."""
        rounds = self.rounds_of(job)
        first, last = rounds[0]["loss"], sum(one["loss"] for one in rounds[-10:]) / 10
        self.assertLess(last, 0.8 * first)
        folder = self.folder.path / f"result-{job}"
        self.cluster.tactus("download", job, "--to", folder)
        self.assertGreater((folder / "model.safetensors").stat().st_size, 0)

    def test_they_learn_and_explain_says_how(self):
        job = self.cluster.submit({**self.spec(), "validation": {"rounds": 30}})

        done = self.done(job)

        self.assertEqual(int(done["progress"]["rounds"]), ROUNDS)
        self.check_end(job)
        story = " ".join(self.cluster.tactus("explain", job)[1].split())
        self.assertIn("lsgd 8", story)
        self.assertIn("pulled every 8 steps", story)
        validations = json.loads(self.cluster.tactus("get", "validations", job, "-o", "json")[1])["validations"]
        self.assertGreaterEqual(len(validations), 3)
        self.assertLess(validations[-1]["loss"], validations[0]["loss"])

    def test_the_others_go_on_when_a_worker_is_killed(self):
        job = self.cluster.submit(self.spec(time="10m"))
        self.training(job, 40)

        os.kill(sorted(self.cluster.workers())[0], signal.SIGKILL)

        wait_until(lambda: int(self.cluster.job(job).get("regroups", 0)) == 1, 60, "they go on without it")
        self.cluster.end_after(job, self.rounds(job) + 100)
        self.assertEqual(len(self.done(job)["attempts"]), 1)
        self.check_end(job)

    def test_a_pause_goes_on_from_the_mean(self):
        job = self.cluster.submit(self.spec(time="10m"))
        self.training(job, 40)
        self.cluster.tactus("pause", job)
        kept = int(self.cluster.wait(job, ["PAUSED"])["checkpoint_rounds"])
        self.cluster.tactus("resume", job)
        self.cluster.end_after(job, kept + 100)

        self.assertEqual(int(self.done(job)["result"]["rounds"]), kept + 100)
        self.check_end(job)

    def test_who_lost_all_workers_goes_on_from_a_checkpoint(self):
        job = self.cluster.submit({**self.spec(time="10m"), "checkpoints": {"every": "1s"}})
        wait_until(lambda: self.checkpoints(job), 60, "there is a checkpoint")
        for process in sorted(self.cluster.workers()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

        self.cluster.wait(job, ["QUEUED"], 60)
        self.cluster.end_after(job, self.rounds(job) + 200)
        lost, last = self.done(job)["attempts"]
        self.assertIn("signal 9", lost["reason"])
        self.assertGreater(int(last["first_round"]), 0)
        self.check_end(job)

    def checkpoints(self, job):
        return int(self.cluster.job(job).get("checkpoint_rounds", 0)) > 0

    def test_what_it_does_not_go_with_is_refused(self):
        for axis, policy in (("encoding", "dq"), ("encoding", "float16"), ("aggregation", "adasum"),
                             ("learning_rate", "adascale"), ("batch", "abs")):
            spec = self.spec()
            spec["adapt"][axis] = {**spec["adapt"].get(axis, {}), "policy": policy}
            path = self.folder.path / "clash.json"
            path.write_text(json.dumps(spec))

            code, output, said = self.cluster.tactus("submit", path, check=False)

            self.assertEqual((code, output), (2, ""), policy)
            self.assertIn("does not go with", said)
            self.assertIn("lsgd", said)
            self.assertIn(policy, said)
        spec = self.spec()
        spec["adapt"]["synchronization"]["node_period"] = 3
        path.write_text(json.dumps(spec))
        self.assertIn("node_period", self.cluster.tactus("submit", path, check=False)[2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
