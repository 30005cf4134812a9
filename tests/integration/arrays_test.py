"""Jobs of a sweep that share a device train in one process: each as by itself, and none is hurt by what becomes of another."""
import json
import os
import signal
import unittest

from cluster import wait_until
from one_coordinator import OneCoordinator

ROUNDS_MORE = 100
# As published, of losses: other routines add in another order. That is 1e-7 at first, and grows a thousandfold for some
# rounds where the loss begins to fall: so of the rounds before that, and of all others less closely.
BOUND, EXACT_ROUNDS = 1e-4, 40
LOOSE_BOUND = 0.02


class ArraysTest(OneCoordinator):
    def setUp(self):
        super().setUp()
        self.cluster.start_agent("a", 1)

    def spec(self, **more):
        return {
            "name": "lr",
            "model": {"builtin": "bytes-lm", "options": {"width": 32, "heads": 2, "layers": 2, "context": 64}},
            "data": {"text": str(self.corpus)},
            "optimizer": {"sgd": {"learning_rate": 0.1}},
            "stop": {"time": "10m"},
            "workers": {"min": 1, "max": 1},
            "validation": {"rounds": 50},
            "adapt": {"policy": "none", "batch": {"policy": "fixed", "per_worker": 16}},
            **more,
        }

    def sweep(self, values, spec=None, *words):
        """The jobs' names, in the order of the values, and what else was said."""
        path = self.folder.path / "job.yaml"
        path.write_text(json.dumps(spec or self.spec()))
        _, out, err = self.cluster.tactus("sweep", path, "--over", "learning_rate=" + ",".join(values), "-o", "name", *words)
        return [line.rsplit("/", 1)[-1] for line in out.split()], err

    def curve(self, job):
        rounds = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]
        return {int(one.get("round", 0)): one["loss"] for one in rounds}

    def to_end(self, job):
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED", "CANCELLED"], 240)
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        return done

    def expect_same(self, job, alone):
        ours, theirs = self.curve(job), self.curve(alone)
        compared = [one for one in ours if one in theirs]
        self.assertGreater(len([one for one in compared if one < EXACT_ROUNDS]), EXACT_ROUNDS // 3)
        for one in compared:
            bound = BOUND if one < EXACT_ROUNDS else LOOSE_BOUND
            self.assertAlmostEqual(ours[one], theirs[one], delta=bound * theirs[one], msg=f"{job}, round {one}")
        ours, theirs = self.cluster.job(job)["result"], self.cluster.job(alone)["result"]
        self.assertEqual(ours["samples"], theirs["samples"])
        self.assertAlmostEqual(ours["validation"]["loss"], theirs["validation"]["loss"], delta=LOOSE_BOUND * theirs["validation"]["loss"])

    def end_soon(self, jobs):
        """After how many rounds, the same of all."""
        rounds = max(self.rounds(job) for job in jobs) + ROUNDS_MORE
        for job in jobs:
            self.cluster.end_after(job, rounds)
        return rounds

    def await_together(self, jobs, rounds=5):
        """All train, in one process."""
        wait_until(lambda: all(self.rounds(job) >= rounds for job in jobs), 120, "all of them train")
        self.assertEqual(len(self.workers()), 1)

    def arrays_started(self):
        return (self.folder.path / "a.log").read_text().count("array of jobs started")

    def test_each_is_what_it_is_by_itself(self):
        rates = ["0.01", "0.03", "0.1", "0.2"]
        together, said = self.sweep(rates)
        self.assertIn("share one with others of the sweep, in one process", said)
        self.await_together(together)
        self.assertRegex(self.cluster.tactus("describe", "job", together[1])[1], r"array +lr-\w+: shares a process with others of it")
        nodes = self.cluster.tactus("get", "nodes")[1]
        self.assertIn(",".join(together), nodes, "in the order in which they came")
        self.assertIn(",".join(together), self.cluster.tactus("describe", "node", "a")[1])
        rounds = self.end_soon(together)
        for job in together:
            self.to_end(job)
        self.assertEqual(self.arrays_started(), 1)

        apart, said = self.sweep(rates, self.spec(stop={"rounds": rounds}), "--apart")
        self.assertNotIn("share one", said)
        for job, alone in zip(together, apart):
            self.to_end(alone)
            self.expect_same(job, alone)
        self.assertEqual(self.arrays_started(), 1)
        losses = [self.cluster.job(job)["result"]["train_loss"] for job in together]
        self.assertEqual(len(set(losses)), len(losses), "each has a result of its own")

    def test_one_that_is_cancelled_or_diverges_leaves_the_others_as_they_are(self):
        (kept, wild, left), _ = self.sweep(["0.1", "1e9", "0.03"])
        wait_until(lambda: self.rounds(left) >= 5, 120, "it trains")
        self.cluster.tactus("cancel", left, "--discard")
        self.cluster.wait(left, ["CANCELLED"])
        failed = self.cluster.wait(wild, ["SUCCEEDED", "FAILED"])
        self.assertEqual(failed["state"], "JOB_STATE_FAILED")
        self.assertIn("diverged", failed["state_reason"])
        self.assertEqual(len(self.workers()), 1, "the process goes on")
        rounds = self.end_soon([kept])
        done = self.to_end(kept)
        self.assertEqual(len(done.get("attempts", [])), 1, "it was not hurt")
        (alone,), _ = self.sweep(["0.1"], self.spec(stop={"rounds": rounds}), "--apart")
        self.to_end(alone)
        self.expect_same(kept, alone)

    def test_when_the_process_is_killed_each_goes_on_from_its_checkpoint(self):
        spec = self.spec(checkpoints={"every": "1s"})
        jobs, _ = self.sweep(["0.03", "0.1", "0.2"], spec)
        wait_until(lambda: all(int(self.cluster.job(job).get("checkpoint_rounds", 0)) > 0 for job in jobs), 120, "all have a checkpoint")
        self.assertEqual(len(self.workers()), 1)
        os.kill(self.workers()[0], signal.SIGKILL)
        for job in jobs:
            self.cluster.wait(job, ["QUEUED"], 60)
        self.end_soon(jobs)
        for job in jobs:
            done = self.to_end(job)
            self.assertGreater(int(done["attempts"][-1].get("first_round", 0)), 0, "from its checkpoint")
        self.assertEqual(self.arrays_started(), 2)

    def test_who_cannot_share_a_process_is_told_why(self):
        _, said = self.sweep(["0.01", "0.03"], self.spec(workers={"min": 1, "max": 2}), "--together", "--dry-run")
        self.assertIn("each trains in a process of its own: workers.max: found 2, allowed is 1", said)
        jobs, said = self.sweep(["0.1", "0.2"], self.spec(model={"builtin": "bytes-lm", "precision": "bfloat16"}, stop={"rounds": 3}), "--together")
        self.assertIn("model.precision: found bfloat16, allowed is float32", said)
        self.assertIn("by itself, as model.precision", self.cluster.tactus("describe", "job", jobs[0])[1])
        for job in jobs:
            self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(self.arrays_started(), 0)


if __name__ == "__main__":
    unittest.main()
