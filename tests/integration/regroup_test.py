"""A worker, or an agent with its workers, is killed while a job trains: those that live go on in their processes, from the
round that they are in, and the job ends as if nothing had been."""
import json
import os
import signal
import unittest

from cluster import tiny_spec, wait_until
from two_nodes import WORKERS, TwoNodes

ROUNDS = 700
MANY_ROUNDS = 3 * ROUNDS  # more than are over before the last of several kills
BATCH = 8  # of each


class RegroupTest(TwoNodes):
    def start(self, least=2, rounds=ROUNDS, **more):
        spec = {**tiny_spec(self.folder.corpus(400000), rounds=rounds), **more}
        spec["workers"] = {"min": least, "max": WORKERS}
        job = self.cluster.submit(spec)
        self.trains_beyond(job, 50)
        return job

    def ended(self, job, regroups, rounds=ROUNDS):
        """The job, which ended well, in one attempt, and after so many regroups."""
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"], 240)
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertEqual(int(done["result"]["rounds"]), rounds)
        self.assertEqual(len(done["attempts"]), 1)
        self.assertEqual(int(done["regroups"]), regroups)
        return done

    def kill_one_of(self, pids):
        victim = sorted(pids)[-1]
        os.kill(victim, signal.SIGKILL)
        return [pid for pid in pids if pid != victim]

    def test_those_who_live_go_on_in_their_processes(self):
        job = self.start()
        before = self.cluster.workers()
        self.assertEqual(len(before), WORKERS)

        survivors = self.kill_one_of(before)

        wait_until(lambda: int(self.cluster.job(job).get("regroups", 0)) == 1, 30, "a regroup is on record")
        self.trains_beyond(job, self.rounds(job) + 50)
        self.assertEqual(sorted(self.cluster.workers()), sorted(survivors))
        done = self.ended(job, 1)
        self.assertIn("worker", done["regroup_reason"])

    def test_no_round_is_lost_or_told_twice(self):
        job = self.start()

        self.kill_one_of(self.cluster.workers())

        self.ended(job, 1)
        told = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]
        numbers = [int(one.get("round", 0)) for one in told]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(numbers[-1], ROUNDS - 1)

    def test_one_after_the_other_down_to_one(self):
        job = self.start(least=1, rounds=MANY_ROUNDS)
        for regroups in range(1, WORKERS):
            survivors = self.kill_one_of(self.cluster.workers())
            wait_until(lambda: int(self.cluster.job(job).get("regroups", 0)) == regroups, 30, f"{regroups} regroups")
            self.trains_beyond(job, self.rounds(job) + 20)
            self.assertEqual(sorted(self.cluster.workers()), sorted(survivors))
        self.ended(job, WORKERS - 1, MANY_ROUNDS)

    def test_a_node_and_its_workers_are_lost(self):
        job = self.start()
        survivors = self.cluster.workers("a")
        lost = self.cluster.workers("b")

        self.cluster.kill("b")
        for pid in lost:
            os.kill(pid, signal.SIGKILL)

        self.trains_beyond(job, self.rounds(job) + 50)
        self.assertEqual(sorted(self.cluster.workers("a")), sorted(survivors))
        self.ended(job, 1)

    def test_windows_of_local_steps_go_on_too(self):
        windows = {"policy": "none", "batch": {"per_worker": BATCH}, "synchronization": {"policy": "periodic", "period": 8}}
        job = self.start(adapt=windows)

        self.kill_one_of(self.cluster.workers())

        self.ended(job, 1)

    def test_below_its_least_a_job_loses_no_round_but_its_start(self):
        job = self.start(least=WORKERS)

        self.kill_one_of(self.cluster.workers())

        wait_until(lambda: int(self.cluster.job(job).get("checkpoint_rounds", 0)) > 50, 60, "those who live took a checkpoint")
        self.ended(job, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
