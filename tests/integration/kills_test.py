"""kill -9 of a worker, an agent or the coordinator at a random moment of a job's life: the job succeeds, all the same.

TACTUS_KILLS: how many (6); TACTUS_KILLS_SEED: which moments.
"""
import collections
import os
import random
import signal
import time
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until

ROUNDS = 800
BATCH = 16  # of both workers
ROUNDS_ALONE = ROUNDS // 2  # of 1 ms or so, of a survivor until it has heard that it is to suspend: on a loaded machine long
EVERY = "1s"  # of training, a checkpoint
BACK_SECONDS = 1  # what was killed is started again after
NODES = ("a", "b")
EVALUATED_BYTES = 3_000_000  # seconds of work


class KillsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.random = random.Random(int(os.environ.get("TACTUS_KILLS_SEED", "1")))
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        for node in NODES:
            self.cluster.start_agent(node, 1)
        self.spec = tiny_spec(self.folder.corpus(400000), rounds=ROUNDS)
        self.spec["checkpoints"] = {"every": EVERY}

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def kill(self, victim):
        """Whom it met; nothing: there was none."""
        if victim == "worker":
            workers = sorted(self.cluster.workers())
            if not workers:
                return None
            pid = self.random.choice(workers)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return None
            return "worker"
        name = "coordinator" if victim == "coordinator" else self.random.choice(NODES)
        self.cluster.kill(name)
        time.sleep(BACK_SECONDS)
        if name == "coordinator":
            self.cluster.start_coordinator(self.cluster.address)
        else:
            self.cluster.start_agent(name, 1)
        return victim

    def check_samples(self, done, samples, rounds):
        """Whoever survives the other takes a few rounds with its own share, then a checkpoint."""
        short = rounds * BATCH - samples
        alone = int(done.get("regroups", 0)) * ROUNDS_ALONE
        self.assertEqual(short % (BATCH // 2), 0)
        self.assertTrue(0 <= short <= alone * BATCH // 2, f"{samples} samples in {rounds} rounds, {alone} alone at most")

    def check(self, done, durable):
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(int(done["result"]["rounds"]), ROUNDS)
        self.check_samples(done, int(done["result"]["samples"]), ROUNDS)
        lost = 0
        reached = 0
        for attempt in done["attempts"]:
            first, rounds = int(attempt.get("first_round", 0)), int(attempt.get("rounds", 0))
            self.assertLessEqual(first, reached)
            lost += reached - first
            if "end_time" in attempt:
                self.check_samples(done, int(attempt.get("samples", 0)), rounds - first)
            reached = rounds
        if len(done["attempts"]) > 1:
            self.assertGreaterEqual(int(done["attempts"][1].get("first_round", 0)), durable, "a checkpoint was there")
        return lost

    def test_a_death_in_the_evaluation_costs_no_rounds(self):
        rounds = 50
        spec = tiny_spec(self.folder.corpus(EVALUATED_BYTES), rounds=rounds)
        spec["data"]["validation_fraction"] = 0.8
        spec["data"]["validation_samples_max"] = EVALUATED_BYTES
        spec["checkpoints"] = {"every": "1h"}  # none but that of the end
        for victim in range(2):
            with self.subTest(victim=victim):
                job = self.cluster.submit(spec)
                wait_until(lambda: int(self.cluster.job(job).get("checkpoint_rounds", 0)) == rounds, 120,
                           "the checkpoint of the end is durable")
                workers = sorted(self.cluster.workers(*NODES))
                self.assertEqual(len(workers), 2, "the evaluation was over")
                os.kill(workers[victim], signal.SIGKILL)

                done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"], 240)

                self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
                self.assertEqual(int(done["result"]["rounds"]), rounds)
                self.assertGreater(int(done["result"]["validation"]["samples"]), 0)
                self.assertEqual(len(done["attempts"]), 1, "who was left evaluated alone")
                self.assertEqual(int(done["regroups"]), 1)
                self.assertEqual(int(done["attempts"][0]["rounds"]), rounds)

    def test_jobs_survive(self):
        kills = int(os.environ.get("TACTUS_KILLS", "6"))
        begin = time.monotonic()
        job = self.cluster.submit(self.spec)
        self.check(self.cluster.wait(job, ["SUCCEEDED", "FAILED"], 240), 0)
        length = time.monotonic() - begin
        met = collections.Counter()
        tried_again, regrouped, lost = 0, 0, []
        for i in range(kills):
            job = self.cluster.submit(self.spec)
            delay = self.random.uniform(0, length)
            time.sleep(delay)
            victim = ("worker", "agent", "coordinator")[i % 3]
            before = self.cluster.job(job)
            durable = int(before.get("checkpoint", {}).get("rounds", 0))
            whom = self.kill(victim)
            met[whom or "nobody"] += 1
            with self.subTest(kill=i, victim=victim, after=round(delay, 2), state=before["state"]):
                done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"], 240)
                rounds = self.check(done, durable)
                tried_again += len(done["attempts"]) > 1
                regrouped += int(done.get("regroups", 0))
                if len(done["attempts"]) > 1:
                    lost.append(rounds)
            wait_until(lambda: not self.cluster.workers(), 60, "its workers are gone")
        print(f"{kills} kills: {dict(met)}; {regrouped} regroups; {tried_again} jobs were tried again, with {sorted(lost)} of {ROUNDS} rounds done "
              f"again; one takes {length:.1f} s")


if __name__ == "__main__":
    unittest.main(verbosity=2)
