"""Decisions of a real job of two unequal workers: on record, told to a person, and refused where choices clash."""
import json
import unittest

from cluster import tiny_spec, wait_until
from shared_cluster import SharedCluster


class ExplainTest(SharedCluster):
    @classmethod
    def begin(cls):
        cls.corpus = cls.folder.corpus()
        cls.cluster.start_agent("fast", 1, "1")
        cls.cluster.start_agent("slow", 1, "0.25")
        spec = tiny_spec(cls.corpus, time="8s")
        spec["adapt"]["batch"] = {"policy": "proportional", "per_worker": 16}
        spec["adapt"]["synchronization"] = {"policy": "periodic", "period": 2}
        cls.job = cls.cluster.submit(spec)
        done = cls.cluster.wait(cls.job, ["SUCCEEDED", "FAILED"])
        if done["state"] != "JOB_STATE_SUCCEEDED":
            raise AssertionError(done.get("state_reason"))

    def decisions(self):
        return json.loads(self.cluster.tactus("get", "decisions", self.job, "-o", "json")[1])["decisions"]

    def test_every_decision_is_on_record_with_its_reason(self):
        decisions = self.decisions()

        self.assertTrue(all(decision["reason"] for decision in decisions))
        versions = [int(decision["plan_version"]) for decision in decisions]
        self.assertEqual(versions, sorted(versions))
        first = {one["axis"]: one for one in decisions if int(one["plan_version"]) == versions[0]}
        self.assertEqual(first["AXIS_SYNCHRONIZATION"]["to"], "periodic 2")
        self.assertEqual(first["AXIS_BATCH"]["from"], "")
        self.assertIn("speeds that the workers tried out", first["AXIS_BATCH"]["reason"])
        shares = list(map(int, first["AXIS_BATCH"]["to"].split(",")))
        self.assertGreater(shares[0], shares[1])  # the second worker is slowed down
        later = [one for one in decisions if one["axis"] == "AXIS_BATCH" and one["from"]]
        self.assertTrue(all(one["inputs"] for one in later))

    def test_rounds_say_under_what_they_ran(self):
        rounds = json.loads(self.cluster.tactus("get", "rounds", self.job, "-o", "json")[1])["rounds"]

        self.assertEqual({one["steps"] for one in rounds}, {2})
        self.assertTrue(all(one["learning_rate"] > 0 for one in rounds))
        progress = [one["progress"] for one in rounds]
        self.assertEqual(progress, sorted(progress))

    def test_explain_tells_a_story(self):
        code, story, said = self.cluster.tactus("explain", self.job)

        self.assertEqual((code, said), (0, ""))
        paragraphs = [" ".join(one.split("\n")) for one in story.strip().split("\n\n")]
        self.assertTrue(paragraphs[0].startswith(f"{self.job} trains bytes-lm with sgd on 2 workers"), paragraphs[0])
        self.assertEqual(len(paragraphs), len(self.decisions()) + 2)
        self.assertTrue(paragraphs[1].startswith("At the start"), paragraphs[1])
        self.assertTrue(paragraphs[-1].startswith("It succeeded after"), paragraphs[-1])
        self.assertLessEqual(max(len(line) for line in story.split("\n")), 100)

    def test_a_decision_is_taken_back_and_devices_are_valued_while_a_job_trains(self):
        spec = tiny_spec(self.corpus, time="10m")
        spec["adapt"]["synchronization"] = {"policy": "adacomm", "initial_period": 16, "interval": "1s"}
        job = self.cluster.submit(spec)

        def decisions():
            listed = json.loads(self.cluster.tactus("get", "decisions", job, "-o", "json")[1])["decisions"]
            return [one for one in listed if one["from"]]

        # Whichever is in force: the period shrinks as the loss falls, and the next may travel meanwhile.
        def reverted():
            for one in reversed(decisions()):
                code, _, said = self.cluster.tactus("revert", job, one["name"].rsplit("/", 1)[-1], check=False)
                if code == 0:
                    return one, said
            return None

        taken_back, said = wait_until(reverted, 60, "a decision is taken back")
        self.assertIn(f"the synchronization goes back to {taken_back['from']} and stays there", said)
        made = wait_until(lambda: [one for one in decisions() if one["reason"].startswith("reverted by a request")],
                          60, "its plan is decided")
        self.assertEqual(made[0]["to"], taken_back["from"])
        self.assertEqual(self.cluster.job(job)["spec"]["adapt"]["frozen"], ["synchronization"])
        wait_until(lambda: self.cluster.job(job)["progress"]["plan"]["version"] == made[0]["plan_version"], 60,
                   "its plan is in force")
        code, _, said = self.cluster.tactus("revert", job, taken_back["name"].rsplit("/", 1)[-1], check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("already", said)
        code, _, said = self.cluster.tactus("revert", job, "999999-batch", check=False)
        self.assertEqual(code, 3, said)

        values = json.loads(self.cluster.tactus("explain", job, "--value-of-devices", "-o", "json")[1])
        self.assertEqual({one["node"] for one in values["devices"]}, {"fast", "slow"})
        self.assertEqual(len(values["more"]), 3)
        self.assertGreater(values["useful_samples_per_second"], 0)
        self.cluster.tactus("cancel", job)

    def test_an_unknown_job_is_not_found(self):
        for words in (["explain", "none-77"], ["get", "decisions", "none-77"]):
            code, output, said = self.cluster.tactus(*words, check=False)
            self.assertEqual((code, output), (3, ""), words)
            self.assertIn("no such job", said)

    def test_choices_that_do_not_go_together_are_refused_with_field_and_reason(self):
        spec = tiny_spec(self.corpus, rounds=20)
        spec["adapt"]["aggregation"] = {"policy": "adasum"}
        spec["adapt"]["learning_rate"] = {"policy": "adascale"}
        spec["adapt"]["encoding"] = {"policy": "float16"}
        path = self.folder.path / "clash.json"
        path.write_text(json.dumps(spec))

        code, output, said = self.cluster.tactus("submit", path, check=False)

        self.assertEqual((code, output), (2, ""))
        for field, found in (("learning_rate", "adascale"), ("encoding", "float16")):
            self.assertIn(f"adapt.{field}.policy", said)
            self.assertIn(f"found {found}, which does not go with adapt.aggregation.policy adasum", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
