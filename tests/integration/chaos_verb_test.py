"""`tactus chaos` on a machine with the workers of two agents, a model's and a program's: it kills, or stops, those of its job
alone, the job goes on, and the figures are those of the job."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from cluster import BIN, SOURCE, Cluster, Folder, processes_of, tiny_spec, wait_until

SURE = "--i-know-that-it-kills"


class Chaos:
    """A job that trains on three workers, and what holds of each kind of them."""

    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        for node in ("a", "b"):
            self.cluster.start_agent(node, 2, options=["--allow-programs"])
        wait_until(lambda: len(self.cluster.tactus("get", "nodes", "-o", "name")[1].split()) == 2, 60, "both joined")
        self.job = self.cluster.submit({**self.spec(), "workers": {"min": 1, "max": 3}})
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


class ChaosVerbTest(Chaos, unittest.TestCase):
    def spec(self):
        return tiny_spec(self.folder.corpus(), time="1h")

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

    def test_a_job_that_does_not_come_back_in_time_is_an_error(self):
        code, out, err = self.cluster.tactus("chaos", self.job, SURE, "--before", "1s", "--for", "1s", "--recover-within", "1ms",
                                             "-o", "json", check=False)

        self.assertEqual(code, 7)
        self.assertIn("does not train again 1ms after the last one", err)
        self.assertFalse(json.loads(out)["recovered"])

    def test_a_job_that_does_not_train_is_refused(self):
        self.cluster.tactus("pause", self.job)
        self.cluster.wait(self.job, ["PAUSED"])
        code, _, err = self.cluster.tactus("chaos", self.job, SURE, check=False)
        self.assertEqual(code, 4)
        self.assertIn("does not train", err)


class ChaosOfProgramsTest(Chaos, unittest.TestCase):
    """A shell, as whoever wants an environment first would have one, that starts a program, which has processes to read samples."""

    SCRIPT = """
import tactus_train, torch
run = tactus_train.init()
model = torch.nn.Linear(8, 8)
data = torch.utils.data.TensorDataset(torch.randn(4000, 8), torch.randn(4000, 8))
loader = run.loader(data, batch_size=8, num_workers=1)
run.attach(model, torch.optim.SGD(model.parameters(), lr=0.01))
for _ in run.epochs():
    for x, y in loader:
        run.backward(torch.nn.functional.mse_loss(model(x), y))
        run.step()
"""

    def setUp(self):
        os.environ.update(PYTHONPATH=str(SOURCE / "python"), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
        super().setUp()

    def spec(self):
        (self.folder.path / "train.py").write_text(self.SCRIPT)
        return {"name": "program", "stop": {"time": "1h"}, "adapt": {"policy": "none"},
                "program": {"command": ["/bin/sh", "-c", f"{sys.executable} train.py; exit $?"], "directory": str(self.folder.path)}}

    def programs(self):
        """How often the program runs, with its readers."""
        return sum(b"train.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes_of(self.folder.path)
                   if os.path.exists(f"/proc/{pid}/cmdline"))

    def test_all_that_a_worker_started_goes_with_it(self):
        self.assertEqual(self.programs(), 3 * 3)  # a shell, the program, and one that reads

        met = json.loads(self.cluster.tactus("chaos", self.job, SURE, "--before", "1s", "--for", "5s", "--every", "1s",
                                             "-o", "json")[1])["workers_met"]

        self.assertGreaterEqual(met, 1)
        wait_until(lambda: self.programs() == 3 * len(self.cluster.workers()), 60, "nothing is left of those that were killed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
