"""Nodes come, and go in time, while a job trains: it grows and shrinks without a stop, and who stays is the same process."""
import json
import signal
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until

BATCH = 8  # of each


class ResizeTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()

    def tearDown(self):
        for agent in [name for name in self.cluster.processes if name != "coordinator"]:
            self.cluster.kill(agent)  # it would wait for a coordinator that ends beside it
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def start(self, **more):
        """A job on the two devices of node a that could do with up to four, when it trains."""
        self.start_node("a", 2)
        spec = {**tiny_spec(self.folder.corpus(400000), time="10m"), "retries": 0,
                "workers": {"min": 2, "max": 4}, **more}
        job = self.cluster.submit(spec)
        self.trains_beyond(job, 20)
        return job

    def start_node(self, node, devices):
        self.cluster.start_agent(node, devices, drain_deadline="1m")

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def trains_beyond(self, job, rounds):
        wait_until(lambda: self.rounds(job) > rounds, 60, f"it trains beyond round {rounds}")

    def size(self, job):
        shown = self.cluster.job(job)
        return len(shown.get("progress", {}).get("workers", [])) if shown["state"] == "JOB_STATE_RUNNING" else 0

    def becomes(self, job, size):
        """Once it trains with so many workers, and has for some rounds."""
        wait_until(lambda: self.size(job) == size, 90, f"it trains on {size} workers")
        self.trains_beyond(job, self.rounds(job) + 20)

    def ended(self, job, restarts=0):
        """Ends it with its result; the members' parameters were equal, or it would fail. What a coordinator that was killed had
        heard of from some members, and not from all, nobody tells its follower."""
        self.cluster.tactus("cancel", job)
        done = self.cluster.wait(job, ["CANCELLED", "FAILED", "SUCCEEDED"], 120)
        self.assertEqual(done["state"], "JOB_STATE_CANCELLED", done.get("state_reason"))
        self.assertIn("result", done, done.get("state_reason"))
        self.assertEqual(len(done["attempts"]), 1)
        self.assertEqual(int(done.get("regroups", 0)), 0, done.get("regroup_reason"))
        self.assertEqual(int(done.get("checkpoint_rounds", 0)), 0, "nothing had to be kept")
        told = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]
        numbers = [int(one.get("round", 0)) for one in told]
        self.assertEqual(numbers, sorted(set(numbers)), "each round is told once, in order")
        gaps = [(before + 1, after) for before, after in zip([-1, *numbers], numbers) if after != before + 1]
        self.assertLessEqual(len(gaps), restarts, f"rounds {gaps} are not told of")
        missing = sum(after - first for first, after in gaps)
        self.assertLessEqual(int(done["progress"].get("unrecorded_rounds", 0)), missing)
        return done

    def grows_and_shrinks(self, **more):
        job = self.start(**more)
        first = sorted(self.cluster.workers("a"))
        self.assertEqual(len(first), 2)

        self.start_node("b", 2)
        self.becomes(job, 4)
        self.assertEqual(sorted(self.cluster.workers("a")), first)
        self.assertEqual(len(self.cluster.workers("b")), 2)

        self.cluster.signal("b", signal.SIGTERM)
        self.becomes(job, 2)
        self.assertEqual(self.cluster.processes["b"].wait(60), 0)
        self.assertIn("agent left in time", (self.folder.path / "b.log").read_text())
        self.assertEqual(sorted(self.cluster.workers("a")), first)
        done = self.ended(job)
        # Who loads for longer than twice as long as the other joins by itself.
        self.assertIn(int(done["resizes"]), (2, 3))
        self.assertIn("from 4 to 2 workers without a stop: node b is leaving: SIGTERM", done["resize_reason"])
        self.assertIn("job resized", (self.folder.path / "coordinator.log").read_text())

    def test_two_become_four_and_two_again(self):
        self.grows_and_shrinks()

    def test_windows_of_local_steps_too(self):
        self.grows_and_shrinks(adapt={"policy": "none", "batch": {"per_worker": BATCH},
                                      "synchronization": {"policy": "periodic", "period": 8}})

    def test_the_first_of_them_may_leave(self):
        job = self.start()
        self.start_node("b", 2)
        self.becomes(job, 4)
        stay = sorted(self.cluster.workers("b"))

        self.cluster.tactus("drain", "a")

        self.becomes(job, 2)
        self.assertEqual(sorted(self.cluster.workers("b")), stay)
        wait_until(lambda: not self.cluster.workers("a"), 30, "the drained node is empty")
        self.ended(job)

    def test_another_job_gets_what_it_needs(self):
        job = self.start(workers={"min": 1, "max": 4})
        self.start_node("b", 2)
        self.becomes(job, 4)
        stay = set(self.cluster.workers("a"))
        spec = {**tiny_spec(self.folder.corpus(), rounds=20), "name": "other", "priority": 5}
        spec["workers"] = {"min": 2, "max": 2}

        other = self.cluster.submit(spec)

        self.cluster.wait(other, ["SUCCEEDED"])
        self.assertLessEqual(stay, set(self.cluster.workers("a")))
        self.becomes(job, 4)
        self.ended(job)

    def test_a_worker_that_loads_is_nobodys_concern(self):
        job = self.start()
        first = sorted(self.cluster.workers("a"))
        self.start_node("b", 1)
        wait_until(lambda: self.cluster.workers("b"), 30, "a worker loads")

        self.cluster.kill("b")

        self.trains_beyond(job, self.rounds(job) + 50)
        self.assertEqual(sorted(self.cluster.workers("a")), first)
        self.ended(job)

    def test_the_coordinator_may_be_killed_while_a_worker_loads(self):
        job = self.start()
        first = sorted(self.cluster.workers("a"))
        self.start_node("b", 1)
        wait_until(lambda: self.cluster.workers("b"), 30, "a worker loads")

        listen = self.cluster.address
        self.cluster.kill("coordinator")
        self.cluster.start_coordinator(listen=listen)

        self.becomes(job, 3)
        self.assertEqual(sorted(self.cluster.workers("a")), first)
        self.ended(job, restarts=1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
