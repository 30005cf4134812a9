"""`tactus doctor --links` with real agents: what passes between them, what does not, and that jobs are left alone."""
import unittest

from cluster import tiny_spec, wait_until
from one_coordinator import OneCoordinator


class LinksTest(OneCoordinator):
    def doctor(self, *words):
        return self.cluster.tactus("doctor", "--links", *words, check=False)[1]

    def joined(self, count):
        wait_until(lambda: len(self.cluster.tactus("get", "nodes", "-o", "name")[1].split()) == count, 20, "all joined")

    def test_links_are_measured_and_a_job_is_not_disturbed_unless_one_says_so(self):
        for node in ("a", "b", "c"):
            self.cluster.start_agent(node, 1)
        self.joined(3)
        said = self.doctor()
        self.assertRegex(said, r"(?m)^ok +links +3 links measured, [0-9.]+ [KMG]iB/s to [0-9.]+ [KMG]iB/s$")

        job = self.cluster.submit({**tiny_spec(self.corpus, time="10m"), "workers": {"min": 3, "max": 3}})
        self.await_rounds(job, 5)
        said = self.doctor()
        self.assertEqual(said.count("not measured: "), 3, said)
        self.assertIn("--while-training measures it beside the job", said)
        so_far = self.rounds(job)
        said = self.doctor("--while-training")
        self.assertIn("3 links measured", said)
        self.await_rounds(job, so_far + 20)
        self.assertEqual(int(self.cluster.job(job).get("regroups", 0)), 0)

    def test_a_node_that_the_others_do_not_reach_is_told_with_what_to_do(self):
        self.cluster.start_agent("a", 1)
        self.cluster.start_agent("b", 1, options=["--address", "192.0.2.7"])  # of no host
        self.joined(2)
        code, said, _ = self.cluster.tactus("doctor", "--links", check=False)
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"(?m)^bad +link a to b +nodes/b: address 192\.0\.2\.7: .*: workers of the two would not meet")


if __name__ == "__main__":
    unittest.main(verbosity=2)
