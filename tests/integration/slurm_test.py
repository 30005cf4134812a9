"""`tactus slurm` on a Slurm of three nodes: jobs train on its allocations, outlive a node and end in time."""
import json
import subprocess
import sys
import unittest

import slurm_cluster
from cluster import BIN, Cluster, Folder, processes_of, tiny_spec, wait_until


class SlurmTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()
        self.own = Cluster(self.folder.path)
        self.slurm = slurm_cluster.SlurmCluster(self.folder.path)

    def tearDown(self):
        self.slurm.stop()
        self.own.stop()
        wait_until(lambda: not processes_of(self.folder.path), 30, "nothing is left running")
        self.folder.remove()

    def tactus(self, *words):
        done = subprocess.run([str(word) for word in (BIN / "tactus", *words)], capture_output=True, text=True, timeout=120,
                              cwd=self.folder.path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def submit(self, *words):
        """Submits what `tactus slurm` writes; returns Slurm's number of it."""
        return int(self.tactus("slurm", *words, "--scratch", self.folder.path, "--submit").split()[-1])

    def job_file(self, **more):
        path = self.folder.path / "tiny.yaml"
        path.write_text(json.dumps({**tiny_spec(self.corpus, time="1h"), "workers": {"min": 1, "max": 8}, **more}))
        return path

    @property
    def output(self):
        return self.folder.path / "tiny.slurm"

    def ask(self, *words):
        """Asks the allocation's own coordinator, as a user does from elsewhere."""
        address = dict(line.split("=", 1) for line in (self.output / "address").read_text().split())["grpc"]
        return subprocess.run([str(word) for word in (BIN / "tactus", "--server", address, "--tls-dir", self.output / "tls/user", *words)],
                              capture_output=True, text=True, timeout=60)

    def job(self):
        """What it says of it; nothing before there is one."""
        if not (self.output / "address").exists():
            return {}
        done = self.ask("get", "job", "tiny-1", "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def rounds(self):
        return int(self.job().get("progress", {}).get("rounds", 0))

    def trains_on(self, nodes, beyond, seconds=90):
        """Waits until the job trains on as many nodes, beyond a round."""
        def does():
            job = self.job()
            if job.get("state") != "JOB_STATE_RUNNING" or sorted(job["attempts"][-1]["nodes"]) != nodes:
                return False
            return int(job.get("progress", {}).get("rounds", 0)) > beyond
        wait_until(does, seconds, f"it trains on {nodes} beyond round {beyond}")

    def log(self, number):
        return (self.output / f"slurm-{number}.log").read_text()

    def left_on_nodes(self, number, *nodes):
        """What agents kept there. One that has nothing to settle ends without a word, so their logs do not say."""
        return [path for node in nodes for path in self.folder.path.glob(f"tactus-{number}-{node}")]

    def ended(self, number, seconds):
        over = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")
        wait_until(lambda: self.slurm.field(number, "JobState") in over, seconds, f"allocation {number} ends")
        self.assertEqual((self.slurm.field(number, "JobState"), self.slurm.field(number, "ExitCode")), ("COMPLETED", "0:0"),
                         self.log(number))

    def test_unequal_nodes_train_outlive_one_of_them_and_end_in_time(self):
        words = (self.job_file(), "--partition", "big", "--nodes", "2", "--workers", "2", "--group", "partition=small,nodes=1",
                 "--time", "3m", "--notice", "1m")
        first = self.submit(*words)
        self.trains_on(["n1", "n2", "n3"], 20)

        self.slurm.control("update", "nodename=n3", "state=drain", "reason=service")
        self.slurm.control("update", "nodename=n2", "state=down", "reason=broken")
        self.trains_on(["n1", "n3"], self.rounds() + 20)
        self.assertEqual(self.slurm.state_of_node("n3"), ["draining"])
        trained = self.rounds()

        self.ended(first, 240)
        self.assertIn("tactus: the allocation ends soon: tactus pause tiny-1", self.log(first))
        self.assertIn("tiny-1 is paused, with its last checkpoint in", self.log(first))
        self.assertEqual(self.left_on_nodes(first, "n1", "n3"), [])
        self.assertFalse((self.output / "tls/ca/ca-key.pem").exists(), "whoever has it could join")

        # Another allocation, on what there is then.
        for node in ("n2", "n3"):
            self.slurm.control("update", f"nodename={node}", "state=resume")
        second = self.submit(*words)
        self.trains_on(["n1", "n2", "n3"], trained)
        self.assertEqual(len(self.job()["attempts"]), 1)
        self.assertIn("goes on from its checkpoint", self.log(second))
        done = self.ask("update", "tiny-1", "--set", f"spec.stop.rounds={self.rounds() + 100}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.ended(second, 120)
        self.assertIn("tiny-1 is SUCCEEDED", self.log(second))
        self.assertTrue(any((self.output / "result").rglob("*.safetensors")), list((self.output / "result").rglob("*")))

    def test_a_job_that_is_to_end_with_its_allocation_leaves_its_result(self):
        number = self.submit(self.job_file(), "--nodes", "2", "--finish")
        self.trains_on(["n1", "n2"], 20)

        subprocess.run(["scancel", "--batch", "--signal=USR1", str(number)], check=True)

        self.ended(number, 60)
        self.assertIn("tiny-1 is CANCELLED; its result is in", self.log(number))
        self.assertTrue(any((self.output / "result").rglob("*.safetensors")))
        self.assertEqual(self.left_on_nodes(number, "n1", "n2"), [])

    def test_nodes_for_the_jobs_of_a_coordinator_that_stays(self):
        self.own.start_coordinator()
        self.own.start_agent("home", 1)
        job = self.own.submit({**tiny_spec(self.corpus, time="1h"), "workers": {"min": 1, "max": 8}})
        number = self.submit("--server", self.own.address, "--nodes", "2", "--output", "guests", "--time", "1h")
        nodes = lambda: sorted(self.own.job(job)["attempts"][-1]["nodes"])
        wait_until(lambda: nodes() == ["home", "n1", "n2"], 60, "it trains on Slurm's nodes, too")

        subprocess.run(["scancel", "--batch", "--signal=USR1", str(number)], check=True)

        wait_until(lambda: nodes() == ["home"], 60, "it trains on without them")
        on = self.own.job(job)
        self.assertEqual((len(on["attempts"]), int(on.get("regroups", 0))), (1, 0), on)
        for node in ("n1", "n2"):
            wait_until(lambda: "agent left in time" in (self.folder.path / f"guests/log/agent-{node}.log").read_text(), 60, "it left")
        wait_until(lambda: self.slurm.field(number, "JobState") == "COMPLETED", 60, "the allocation ends")


if __name__ == "__main__":
    why = slurm_cluster.missing()
    if why:
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main(verbosity=2)
