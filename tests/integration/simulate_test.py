"""What-if questions about a real job of two unequal workers: the model fits it, changes are answered, mistakes are said."""
import json
import subprocess
import unittest

from cluster import BIN, tiny_spec
from shared_cluster import SharedCluster

FIT_TOLERANCE = 0.3  # of samples/s: the machine may be busy otherwise, and rounds are short


def unequal_spec(corpus):
    """Rounds of some ten milliseconds, so that computing counts for more than the machine's scheduler."""
    spec = tiny_spec(corpus, time="6s")
    spec["model"]["options"] = {"width": 64, "heads": 4, "layers": 1, "context": 32}
    spec["adapt"]["batch"] = {"policy": "proportional", "per_worker": 16}
    return spec


class SimulateTest(SharedCluster):
    @classmethod
    def begin(cls):
        cls.cluster.start_agent("fast", 1, "1")
        cls.cluster.start_agent("slow", 1, "0.5")
        cls.job = cls.cluster.submit(unequal_spec(cls.folder.corpus()))
        done = cls.cluster.wait(cls.job, ["SUCCEEDED", "FAILED"])
        if done["state"] != "JOB_STATE_SUCCEEDED":
            raise AssertionError(done.get("state_reason"))

    def simulate(self, *words):
        """Runs `tactus simulate --from` the job; returns its JSON object."""
        return json.loads(self.cluster.tactus("simulate", "--from", self.job, "-o", "json", *words)[1])

    def refused(self, *words):
        """The same for what must be refused; returns the exit code and the one line that says why."""
        code, output, said = self.cluster.tactus("simulate", *words, check=False)
        self.assertEqual(output, "")
        self.assertEqual(said.count("\n"), 1, said)
        return code, said

    def speed(self, *words):
        """Samples/s of the simulated job, every worker having the same samples a round."""
        return self.simulate("--set", "adapt.batch.policy=fixed", *words)["jobs"][0]["samples_per_second"]

    def test_the_model_is_as_fast_as_the_job_and_reads_back_from_its_file(self):
        written = self.folder.path / "fitted.yaml"

        answer = self.simulate("--write-cluster", written)

        fit = answer["fit"]
        self.assertEqual(fit["job"], self.job)
        self.assertGreater(fit["rounds"], 20)
        recorded, modelled = fit["recorded_samples_per_second"], fit["modelled_samples_per_second"]
        self.assertLess(abs(modelled / recorded - 1), FIT_TOLERANCE, fit)
        self.assertEqual([worker["node"] for worker in answer["jobs"][0]["workers"]], ["fast", "slow"])
        self.assertEqual(answer["violations_total"], 0)

        # Durations are written to the nanosecond, so the answers differ by less than can be seen.
        again = json.loads(self.cluster.tactus("simulate", written, self.folder.path / "job.yaml", "-o", "json")[1])
        self.assertNotIn("fit", again)
        speeds = [one["jobs"][0]["samples_per_second"] for one in (answer, again)]
        self.assertLess(abs(speeds[1] / speeds[0] - 1), 0.05, speeds)

    def test_changes_of_the_cluster_change_the_answer(self):
        as_it_was = self.speed("--rate", "10gbit")

        workers = self.simulate("--add", "2xspeed=1")["jobs"][0]["workers"]
        self.assertEqual({worker["node"] for worker in workers}, {"fast", "slow", "added-1", "added-2"})
        # All wait for the slow worker as they did, and twice as many share a round.
        self.assertGreater(self.speed("--add", "2xspeed=1", "--rate", "10gbit"), 1.5 * as_it_was)
        workers = self.simulate("--remove", "rank-1")["jobs"][0]["workers"]
        self.assertEqual([worker["node"] for worker in workers], ["fast"])
        # A reduction of some 300 kB takes seconds over such a link.
        self.assertLess(self.speed("--rate", "1mbit"), 0.5 * as_it_was)

    def test_mistakes_are_said_in_one_line(self):
        for words, allowed in [
            (["--add", "2speed=0.5"], "allowed is [N x]speed=F"),
            (["--add", "speed=0"], "allowed is [N x]speed=F"),
            (["--remove", "rank-7"], "allowed is worker-N, rank-N, NODE/DEVICE or NODE"),
            (["--remove", "fast", "--remove", "slow"], "leaves no device"),
            (["--rate", "1gbi"], "allowed is a rate of 1kbit or more"),
            (["--rate", "-1gbit"], "allowed is a rate of 1kbit or more"),
            (["--seed", "-1"], "allowed is a whole number from 0 to"),
            (["--set", "workers={min: 3}"], "workers.min: found 3, the cluster has 2 devices"),
        ]:
            with self.subTest(words=words):
                code, said = self.refused("--from", self.job, *words)
                self.assertEqual(code, 2, said)
                self.assertIn(allowed, said)
        self.assertEqual(self.refused("--from", "nothing-1")[0], 3)

    def test_equal_seeds_give_equal_bytes(self):
        def answer(*words):
            done = subprocess.run([str(BIN / "tactus"), "--server", self.cluster.address, "simulate", *words, "-o", "json"],
                                  capture_output=True, timeout=60, check=True)
            return done.stdout

        for words in (["--from", self.job, "--seed", "3"], ["--random", "--seed", "5"]):
            with self.subTest(words=words):
                self.assertTrue(answer(*words) == answer(*words))  # too long to be printed
        self.assertFalse(answer("--random", "--seed", "5") == answer("--random", "--seed", "6"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
