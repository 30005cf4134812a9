"""Real jobs whose workers mix their parameters with their neighbours' alone: they learn, outlive a worker's death, go on
after a pause and from a checkpoint, and end with one result."""
import json
import os
import signal
import unittest

from cluster import tiny_spec, wait_until
from shared_cluster import SharedCluster

ROUNDS = 120
WORKERS = 4  # two on each node


class NeighboursTest(SharedCluster):
    @classmethod
    def begin(cls):
        cls.corpus = cls.folder.corpus(400000)
        cls.cluster.start_agent("a", 2)
        cls.cluster.start_agent("b", 2)

    def spec(self, graph="ring", momentum=0.9, **stop):
        spec = tiny_spec(self.corpus, **(stop or {"rounds": ROUNDS}))
        spec["workers"] = {"min": WORKERS, "max": WORKERS}
        spec["optimizer"] = {"sgd": {"learning_rate": 0.1, "momentum": momentum}}
        spec["adapt"]["synchronization"] = {"policy": "decentlam", "graph": graph}
        return spec

    def done(self, job):
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        return done

    def training(self, job, rounds):
        wait_until(lambda: int(self.cluster.job(job).get("progress", {}).get("rounds", 0)) >= rounds, 60, "it trains")

    def check_end(self, job):
        """Workers compare hashes in the end, and a job whose workers differ then does not succeed."""
        rounds = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]
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
        self.assertIn("decentlam ring", story)
        self.assertIn("mixes its parameters with its neighbours'", story)
        validations = json.loads(self.cluster.tactus("get", "validations", job, "-o", "json")[1])["validations"]
        self.assertGreaterEqual(len(validations), 3)
        self.assertLess(validations[-1]["loss"], validations[0]["loss"])

    def test_graphs_may_follow_one_another(self):
        job = self.cluster.submit(self.spec("one_peer_hypercube", 0.4))

        self.done(job)
        self.check_end(job)

    def test_the_others_go_on_when_a_worker_is_killed(self):
        job = self.cluster.submit(self.spec(rounds=1000))
        self.training(job, 40)

        os.kill(sorted(self.cluster.workers())[0], signal.SIGKILL)

        self.done(job)
        self.check_end(job)

    def test_a_pause_goes_on_from_the_mean(self):
        job = self.cluster.submit(self.spec(rounds=600))
        self.training(job, 40)
        self.cluster.tactus("pause", job)
        self.cluster.wait(job, ["PAUSED"])
        self.cluster.tactus("resume", job)

        self.done(job)
        self.check_end(job)

    def test_who_lost_all_workers_goes_on_from_a_checkpoint(self):
        job = self.cluster.submit({**self.spec(rounds=2000), "checkpoints": {"every": "1s"}})
        wait_until(lambda: int(self.cluster.job(job).get("checkpoint_rounds", 0)) > 0, 60, "there is a checkpoint")
        for process in sorted(self.cluster.workers()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

        self.done(job)
        self.check_end(job)

    def refusal(self, spec):
        path = self.folder.path / "clash.json"
        path.write_text(json.dumps(spec))
        code, output, said = self.cluster.tactus("submit", path, check=False)
        self.assertEqual((code, output), (2, ""), said)
        return " ".join(said.split())

    def test_what_it_does_not_go_with_is_refused(self):
        for axis, policy in (("encoding", "dq"), ("encoding", "float16"), ("aggregation", "adasum"),
                             ("learning_rate", "adascale"), ("batch", "abs")):
            spec = self.spec()
            spec["adapt"][axis] = {**spec["adapt"].get(axis, {}), "policy": policy}
            said = self.refusal(spec)
            self.assertIn("does not go with", said)
            self.assertIn("decentlam", said)
            self.assertIn(policy, said)
        adam = {**self.spec(), "optimizer": {"adam": {"learning_rate": 0.001}}}
        self.assertIn("optimizer sgd", self.refusal(adam))

    def test_a_graph_that_is_not_stable_is_refused_with_the_figure(self):
        said = self.refusal(self.spec("one_peer_exponential", 0.9))
        self.assertIn("multiplies differences between 4 workers by 1.", said)
        self.assertIn("allowed are optimizer.sgd.momentum up to 0.7", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
