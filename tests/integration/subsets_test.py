"""Jobs that train on a part of their samples, by real processes: chosen together, on record, and through a loss and a pause."""
import json
import os
import signal
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until


class SubsetsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus(20000)
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        self.cluster.start_agent("a", 1)
        self.cluster.start_agent("b", 1)

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def spec(self, subset, **stop):
        spec = tiny_spec(self.corpus, **stop)
        spec["data"]["subset"] = subset
        spec["workers"] = {"min": 2, "max": 2}
        spec["adapt"] = {"policy": "none", "batch": {"policy": "fixed", "per_worker": 4}}
        return spec

    def to_end(self, job):
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        return done

    def test_choices_are_on_record_and_epochs_are_of_the_subset(self):
        job = self.cluster.submit(self.spec({"craig": {"fraction": 0.25, "epochs": 2}}, epochs=5))
        done = self.to_end(job)

        self.assertEqual(int(done["selections"]), 3)
        self.assertRegex(done["selection"], r"^after round \d+ and epoch 4: \d+ of \d+ samples, 25(\.\d)? % of them, weights up to .* in .* s "
                                            r"\(gradients .* s, choice .* s\)$")
        chosen, of = (int(word) for word in done["selection"].split(": ")[1].split(" samples")[0].split(" of "))
        self.assertAlmostEqual(chosen, of / 4, delta=0.5)
        self.assertEqual(int(done["result"]["samples"]), 5 * chosen)
        described = " ".join(self.cluster.tactus("describe", "job", job)[1].split())
        self.assertIn("subset 3 times, last after round", described)

    def test_a_paused_job_ends_where_it_would_have(self):
        subset = {"craig": {"fraction": 0.25, "epochs": 3}}
        job = self.cluster.submit(self.spec(subset, time="10m"))
        wait_until(lambda: int(self.cluster.job(job).get("progress", {}).get("rounds", 0)) >= 5, 60, "some rounds are over")
        self.cluster.tactus("pause", job)
        rounds = int(self.cluster.wait(job, ["PAUSED"])["checkpoint_rounds"]) + 300
        self.cluster.tactus("resume", job)
        self.cluster.end_after(job, rounds)
        done = self.to_end(job)
        whole = self.to_end(self.cluster.submit(self.spec(subset, rounds=rounds)))

        self.assertEqual(done["result"]["train_loss"], whole["result"]["train_loss"])
        self.assertEqual(done["selection"].split(" samples")[0], whole["selection"].split(" samples")[0])

    def test_who_is_left_goes_on_with_the_subset(self):
        spec = self.spec({"craig": {"fraction": 0.25, "epochs": 20}}, epochs=70)
        spec["workers"] = {"min": 1, "max": 2}
        job = self.cluster.submit(spec)
        wait_until(lambda: self.cluster.trains_on(job, 2), 60, "both train")
        os.kill(self.cluster.workers("b")[0], signal.SIGKILL)
        done = self.to_end(job)

        self.assertEqual(int(done["regroups"]), 1)
        self.assertGreaterEqual(int(done["selections"]), 3)

    def test_what_does_not_go_together_is_refused_with_the_reason(self):
        for change, words in (({"craig": {"fraction": 2}}, "data.subset.craig.fraction: found 2, allowed is above 0 to 1"),
                              ({}, "data.subset: "),
                              ({"craig": {"proxy": "inputs"}}, "data.subset.craig.proxy: found inputs, and data.text has bytes")):
            path = self.folder.path / "job.json"
            path.write_text(json.dumps(self.spec(change, rounds=5)))
            code, out, err = self.cluster.tactus("submit", path, check=False)
            self.assertNotEqual(code, 0)
            self.assertIn(words, out + err)


if __name__ == "__main__":
    unittest.main()
