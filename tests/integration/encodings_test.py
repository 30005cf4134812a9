"""Real jobs of two workers whose vectors travel in few bits: they learn, and send less than dense ones; told and counted as such."""
import json
import unittest
import urllib.request

from cluster import tiny_spec, wait_until
from shared_cluster import SharedCluster

ROUNDS = 300
# Of dense values' bytes in this model, whose short tensors travel dense: what each may send at most.
MOST = {"float16": 0.55, "dq": 0.35, "adacomp": 0.35}


class EncodingsTest(SharedCluster):
    @classmethod
    def begin(cls):
        cls.corpus = cls.folder.corpus()
        cls.cluster.start_agent("a", 1)
        cls.cluster.start_agent("b", 1)
        cls.jobs = {name: cls.train({"policy": name}) for name in ("dense", *MOST)}

    @classmethod
    def spec(cls, encoding, **stop):
        spec = tiny_spec(cls.corpus, **stop)
        spec["model"]["options"] |= {"width": 64, "heads": 4}
        spec["adapt"]["encoding"] = encoding
        return spec

    @classmethod
    def train(cls, encoding, **more):
        job = cls.cluster.submit({**cls.spec(encoding, rounds=ROUNDS), **more})
        done = cls.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        if done["state"] != "JOB_STATE_SUCCEEDED":
            raise AssertionError(done.get("state_reason"))
        return job

    def rounds(self, name):
        return self.rounds_of(self.jobs[name])

    def rounds_of(self, job):
        return json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]

    def test_all_of_them_learn(self):
        ends = {}
        for name in self.jobs:
            losses = [one["loss"] for one in self.rounds(name)]
            first, last = sum(losses[:10]) / 10, sum(losses[-10:]) / 10
            self.assertLess(last, 0.7 * first, name)
            ends[name] = last
        for name, last in ends.items():
            self.assertLess(last, 1.25 * ends["dense"], name)

    def test_they_send_fewer_bytes(self):
        # The middle of them: AdaComp's first round is its longest.
        bytes_of = {name: sorted(int(one["bytes"]) for one in self.rounds(name))[ROUNDS // 2] for name in self.jobs}
        for name, most in MOST.items():
            self.assertLess(bytes_of[name], most * bytes_of["dense"], bytes_of)

    def test_explain_and_decisions_name_them(self):
        for name, job in self.jobs.items():
            story = " ".join(self.cluster.tactus("explain", job)[1].split())
            self.assertIn(f"encoding {name} (", story)
            decisions = json.loads(self.cluster.tactus("get", "decisions", job, "-o", "json")[1])["decisions"]
            found = [one for one in decisions if one["axis"] == "AXIS_ENCODING"]
            self.assertEqual([one["to"] for one in found], [name])
            self.assertIn(f"{name}: as the job asks", found[0]["reason"])

    def test_metrics_name_the_one_in_force(self):
        def modes():
            with urllib.request.urlopen(f"http://{self.cluster.metrics}/metrics", timeout=10) as answer:
                lines = answer.read().decode().splitlines()
            return [line for line in lines if line.startswith("tactus_job_encoding_mode{") and line.endswith(" 1")]

        wait_until(lambda: any(f'job_id="{self.jobs["dq"]}"' in line and 'mode="dq"' in line for line in modes()), 20,
                   "the job's mode is dq")

    def test_another_number_of_bits_is_another_number_of_bytes(self):
        job = self.train({"policy": "dq", "bits": 8})

        rounds = self.rounds_of(job)

        self.assertGreater(int(rounds[5]["bytes"]), 1.15 * int(self.rounds("dq")[5]["bytes"]))

    def test_a_sketch_learns_from_few_values_and_what_is_left_of_others(self):
        rounds = self.rounds_of(self.train({"policy": "sketch"}))

        self.assertLess(int(rounds[5]["bytes"]), 0.25 * int(self.rounds("dense")[5]["bytes"]))
        self.assertLess(rounds[-1]["loss"], 0.4 * rounds[0]["loss"])

    def test_signs_of_the_momentum_travel_after_the_warm_up(self):
        adamw = {"adamw": {"learning_rate": 0.003}}
        dense = self.rounds_of(self.train({"policy": "dense"}, optimizer=adamw))
        signs = self.rounds_of(self.train({"policy": "one_bit", "warm_up": 60}, optimizer=adamw))

        self.assertEqual(signs[20]["bytes"], dense[20]["bytes"])  # 40 base steps of 8 samples
        self.assertLess(int(signs[70]["bytes"]), int(dense[70]["bytes"]) / 20)
        ends = [sum(one["loss"] for one in rounds[-10:]) / 10 for rounds in (signs, dense)]
        self.assertLess(ends[0], 1.1 * ends[1])

    def test_a_pause_is_nothing_to_the_result(self):
        job = self.cluster.submit(self.spec({"policy": "adacomp"}, rounds=ROUNDS))
        wait_until(lambda: int(self.cluster.job(job).get("progress", {}).get("rounds", 0)) > 20, 60, "it trains")
        self.cluster.tactus("pause", job)
        self.cluster.wait(job, ["PAUSED"])
        self.cluster.tactus("resume", job)
        self.cluster.wait(job, ["SUCCEEDED"])

        hashes = {self.result_of(one) for one in (job, self.jobs["adacomp"])}
        self.assertEqual(len(hashes), 1, "what was left with each of the two goes on with it")

    def result_of(self, job):
        folder = self.folder.path / f"result-{job}"
        self.cluster.tactus("download", job, "--to", folder)
        return (folder / "model.safetensors").read_bytes()

    def test_what_they_do_not_go_with_is_refused(self):
        for encoding, other, found in (("dq", {"aggregation": {"policy": "adasum"}}, "adasum"),
                                       ("adacomp", {"learning_rate": {"policy": "adascale"}}, "adascale")):
            spec = self.spec({"policy": encoding}, rounds=20)
            spec["adapt"] |= other
            path = self.folder.path / "clash.json"
            path.write_text(json.dumps(spec))

            code, output, said = self.cluster.tactus("submit", path, check=False)

            self.assertEqual((code, output), (2, ""))
            self.assertIn(f"found {encoding}, which does not go with", said)
            self.assertIn(found, said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
