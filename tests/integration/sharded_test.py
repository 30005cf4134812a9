"""Jobs whose optimizer's state is cut up among the workers (optimizer.shard): they train as others do, lose members, are
paused and go on."""
import json
import os
import signal
import unittest

from cluster import tiny_spec, wait_until
from two_nodes import WORKERS, TwoNodes

ADAM = {"learning_rate": 0.003, "weight_decay": 0.01}


class ShardedTest(TwoNodes):
    def spec(self, rounds, least=WORKERS, shard=None, copies=None, **more):
        spec = {**tiny_spec(self.folder.corpus(100000), rounds=rounds), **more}
        spec["optimizer"] = {"adamw": ADAM}
        if shard:
            spec["optimizer"]["shard"] = shard
        if copies:
            spec["optimizer"]["shard_copies"] = copies
        spec["workers"] = {"min": least, "max": WORKERS}
        return spec

    def done(self, job):
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"], 240)
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        return done

    def result(self, job):
        """The parameters that came of it, as bytes."""
        self.done(job)
        folder = self.folder.path / f"of-{job}"
        self.cluster.tactus("download", job, "--to", folder)
        return next(folder.rglob("model.safetensors")).read_bytes()

    def kill_the_last(self):
        victim = sorted(self.cluster.workers())[-1]
        os.kill(victim, signal.SIGKILL)

    def test_all_ways_of_holding_it_give_the_same_bits(self):
        expected = self.result(self.cluster.submit(self.spec(60)))
        for shard, copies in (("equal", 1), ("memory", 1), ("memory", 2)):
            with self.subTest(shard=shard, copies=copies):
                self.assertEqual(self.result(self.cluster.submit(self.spec(60, shard=shard, copies=copies))), expected)

    def test_with_two_copies_a_lost_worker_costs_a_regroup(self):
        job = self.cluster.submit(self.spec(600, least=2, shard="memory", copies=2))
        self.trains_beyond(job, 50)

        self.kill_the_last()

        wait_until(lambda: int(self.cluster.job(job).get("regroups", 0)) == 1, 30, "a regroup is on record")
        done = self.done(job)
        self.assertEqual(len(done["attempts"]), 1)
        self.assertEqual(int(done["result"]["rounds"]), 600)

    def test_with_one_copy_a_lost_worker_costs_the_way_back_to_the_newest_checkpoint(self):
        job = self.cluster.submit(self.spec(1000, least=2, shard="memory", checkpoints={"every": "1s"}))
        wait_until(lambda: int(self.cluster.job(job).get("checkpoint_rounds", 0)) > 0, 60, "a checkpoint is there")

        self.kill_the_last()

        wait_until(lambda: len(self.cluster.job(job).get("attempts", [])) == 2, 60, "another attempt begins")
        done = self.done(job)
        self.assertIn("is held by no member of this group", done["attempts"][0]["reason"])
        self.assertGreater(int(done["attempts"][1]["first_round"]), 0)
        self.assertEqual(int(done["result"]["rounds"]), 1000)

    def test_it_is_paused_and_goes_on_with_what_it_had(self):
        expected = self.result(self.cluster.submit(self.spec(400)))
        job = self.cluster.submit(self.spec(400, shard="memory"))
        self.trains_beyond(job, 100)

        self.cluster.tactus("pause", job)
        self.cluster.wait(job, ["PAUSED"], 60)
        self.cluster.tactus("resume", job)

        self.assertEqual(self.result(job), expected)

    def test_what_needs_all_of_the_state_is_refused(self):
        lamb = self.spec(10, shard="memory")
        lamb["optimizer"] = {"lamb": {}, "shard": "memory"}
        periodic = self.spec(10, shard="equal")
        periodic["adapt"] = {"policy": "none", "synchronization": {"policy": "periodic", "period": 4}}
        alone = self.spec(10, copies=2)
        for spec, field, words in ((lamb, "optimizer.shard", "norms of whole layers"),
                                   (periodic, "adapt.synchronization.policy", "take every_step, or shard: none"),
                                   (alone, "optimizer.shard_copies", "without optimizer.shard")):
            path = self.folder.path / "wrong.yaml"
            path.write_text(json.dumps(spec))
            code, _, error = self.cluster.tactus("submit", path, check=False)
            self.assertNotEqual(code, 0)
            self.assertIn(field, error)
            self.assertIn(words, error)


if __name__ == "__main__":
    unittest.main(verbosity=2)
