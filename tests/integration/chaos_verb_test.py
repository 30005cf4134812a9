"""`tactus chaos` on a machine with the workers of two agents: it kills, or stops, those of its job alone, the job goes on, and
the figures are those of the job."""
import json
import signal
import subprocess
import unittest

from cluster import BIN, Cluster, Folder, processes_of, tiny_spec, wait_until

SURE = "--i-know-that-it-kills"


class ChaosVerbTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        for node in ("a", "b"):
            self.cluster.start_agent(node, 2)
        wait_until(lambda: len(self.cluster.tactus("get", "nodes", "-o", "name")[1].split()) == 2, 60, "both joined")
        spec = {**tiny_spec(self.folder.corpus(), time="1h"), "workers": {"min": 1, "max": 3}}
        self.job = self.cluster.submit(spec)
        wait_until(lambda: self.rounds() >= 20 and len(self.members()) == 3, 60, "it trains on three workers")

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def rounds(self):
        return int(self.cluster.job(self.job).get("progress", {}).get("rounds", 0))

    def members(self):
        return self.cluster.job(self.job)["progress"].get("workers", [])

    def test_it_refuses_to_begin_without_a_word(self):
        before = sorted(self.cluster.workers())
        code, _, err = self.cluster.tactus("chaos", self.job, check=False)
        self.assertEqual(code, 2)
        self.assertIn(SURE, err)
        self.assertEqual(sorted(self.cluster.workers()), before)

    def test_it_meets_nobody_of_another_coordinators_agents(self):
        before = sorted(self.cluster.workers())
        code, _, err = self.cluster.tactus("chaos", self.job, SURE, "--agents-coordinator", "elsewhere:7070", check=False)
        self.assertEqual(code, 3)
        self.assertIn("--coordinator elsewhere:7070", err)
        self.assertEqual(sorted(self.cluster.workers()), before)

    def test_kills_cost_regroups_and_spare_the_last(self):
        out = self.cluster.tactus("chaos", self.job, SURE, "--before", "2s", "--for", "8s", "--every", "1s", "-o", "json")[1]

        cost = json.loads(out)
        self.assertEqual(cost["job"], self.job)
        self.assertTrue(cost["recovered"])
        self.assertIn(cost["workers_met"], (1, 2))
        self.assertEqual(cost["meanwhile"]["restarts"], 0)
        self.assertEqual(cost["meanwhile"]["rounds_lost"], 0)
        job = self.cluster.job(self.job)
        self.assertEqual(cost["meanwhile"]["regroups"], int(job["regroups"]))
        self.assertEqual(len(self.cluster.workers()), 3 - cost["workers_met"])
        self.assertEqual(job["state"], "JOB_STATE_RUNNING")
        for stretch in (cost["before"], cost["meanwhile"]):
            self.assertGreater(stretch["rounds"], 0)
            self.assertGreater(stretch["samples_per_second"], 0)
            self.assertGreater(stretch["longest_gap_seconds"], 0)

    def test_a_job_that_does_not_come_back_in_time_is_an_error(self):
        code, out, err = self.cluster.tactus("chaos", self.job, SURE, "--before", "1s", "--for", "1s", "--recover-within", "1ms",
                                             "-o", "json", check=False)

        self.assertEqual(code, 7)
        self.assertIn("does not train again 1ms after the last one", err)
        self.assertFalse(json.loads(out)["recovered"])

    def test_who_is_stopped_goes_on_also_when_it_is_interrupted(self):
        before = sorted(self.cluster.workers())
        chaos = subprocess.Popen([BIN / "tactus", "--server", self.cluster.address, "chaos", self.job, SURE, "--before", "1s",
                                  "--for", "1h", "--every", "1s", "--stop", "1h"], stdout=subprocess.PIPE, text=True)
        wait_until(lambda: "stands still: its process is stopped" in self.cluster.job(self.job)["state_reason"], 60,
                   "one is stopped")

        chaos.send_signal(signal.SIGINT)

        out = chaos.communicate(timeout=60)[0]
        self.assertEqual(chaos.returncode, 130)
        self.assertRegex(out, r"[12] workers? stopped in ")
        rounds = self.rounds()
        wait_until(lambda: self.rounds() > rounds, 60, "it trains on")
        self.assertEqual(sorted(self.cluster.workers()), before)

    def test_a_job_that_does_not_train_is_refused(self):
        self.cluster.tactus("pause", self.job)
        self.cluster.wait(self.job, ["PAUSED"])
        code, _, err = self.cluster.tactus("chaos", self.job, SURE, check=False)
        self.assertEqual(code, 4)
        self.assertIn("does not train", err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
