"""kill -9 of the coordinator while it adapts a job: the next one goes on with what the planner had learned."""
import json
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until


def trained(decision):
    """Seconds of training at which it was made."""
    return float(decision.get("train_time", "0s").removesuffix("s"))


class PlannerTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        self.cluster.start_agent("a", 2)

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def periods(self, job):
        """Decisions about the synchronization, oldest first, without what is measured of them later."""
        listed = json.loads(self.cluster.tactus("get", "decisions", job, "-o", "json")[1])["decisions"]
        return [{key: value for key, value in one.items() if key != "measured_gain"}
                for one in listed if one["axis"] == "AXIS_SYNCHRONIZATION"]

    def test_periods_go_on_falling_by_the_clock_and_the_loss_of_the_first_coordinator(self):
        spec = tiny_spec(self.folder.corpus(400000), time="300s")
        # The loss cannot keep up with so short an interval: the period halves, and halves. From the
        # longest one it does so for 21 seconds, however long the next coordinator takes to start.
        spec["adapt"]["synchronization"] = {"policy": "adacomm", "initial_period": 128, "interval": "3s"}
        job = self.cluster.submit(spec)
        wait_until(lambda: len(self.periods(job)) >= 3, 60, "the period was changed twice")

        self.cluster.kill("coordinator")
        self.cluster.start_coordinator(self.cluster.address)
        before = self.periods(job)
        wait_until(lambda: len(self.periods(job)) > len(before), 60, "the period is changed again")
        decisions = self.periods(job)
        self.cluster.tactus("cancel", job, "--discard")
        self.cluster.wait(job, ["CANCELLED"])

        self.assertEqual(decisions[: len(before)], before)
        for former, later in zip(decisions, decisions[1:]):
            self.assertEqual(later["from"], former["to"])
            self.assertGreater(trained(later), trained(former), "the clock of the training began anew")
        start = [one for one in decisions[-1]["inputs"] if one["name"] == "training loss at the start"]
        first = [one for one in decisions[1]["inputs"] if one["name"] == "training loss at the start"]
        self.assertEqual(start, first)
        log = (self.folder.path / "coordinator.log").read_text()
        self.assertNotIn("planner learns anew", log)


if __name__ == "__main__":
    unittest.main()
