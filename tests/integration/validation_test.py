"""Validation while a job trains: the curve, its ends, the best parameters, through restarts; and equality with PyTorch."""
import json
import unittest

from cluster import tiny_spec, wait_until
from one_coordinator import OneCoordinator


class ValidationTest(OneCoordinator):
    def spec(self, validation=None, result=None, data=(), **stop):
        spec = tiny_spec(self.corpus, **stop)
        spec["data"].update(dict(data))
        if validation is not None:
            spec["validation"] = validation
        if result is not None:
            spec["result"] = result
        return spec

    def validations(self, job):
        return json.loads(self.cluster.tactus("get", "validations", job, "-o", "json")[1])["validations"]

    def run_to_end(self, spec):
        job = self.cluster.submit(spec)
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED", "CANCELLED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done["state_reason"])
        return job, done

    def validation_loss(self, weights, samples):
        """The mean loss of the first samples that are kept for validation, by PyTorch."""
        try:
            import torch
        except ImportError:
            self.skipTest("python3-torch is not installed")
        model = torch.jit.load(str(weights))
        text = self.corpus.read_bytes()
        part = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()[len(text) - int(len(text) * 0.1):]
        inputs = part[:samples * 16].view(samples, 16)
        targets = part[1:samples * 16 + 1].view(samples, 16)
        with torch.no_grad():
            return torch.nn.functional.cross_entropy(model(inputs).transpose(1, 2), targets).item()

    def test_unequal_workers_draw_one_curve_that_is_everywhere(self):
        self.cluster.start_agent("node", 3)
        spec = self.spec({"rounds": 20, "samples": 100}, rounds=70)
        spec["workers"] = {"min": 3, "max": 3}
        spec["adapt"] = {"policy": "none", "batch": {"policy": "proportional", "per_worker": 8}}

        job, done = self.run_to_end(spec)

        points = self.validations(job)
        self.assertEqual([int(point["rounds"]) for point in points], [20, 40, 60, 70])
        self.assertTrue(all(int(point["samples"]) == 100 and point["loss"] > 0 for point in points), points)
        self.assertLess(points[-1]["loss"], points[0]["loss"])
        progress = done["progress"]["validation"]
        self.assertEqual(int(progress["count"]), 4)
        self.assertEqual(progress["newest"]["loss"], points[-1]["loss"])
        self.assertEqual(done["result"]["validation"]["loss"], points[-1]["loss"])
        self.assertTrue(">validation<" in self.cluster.tactus("plot", job)[1], "the curve is drawn")
        self.assertIn("newest loss", self.cluster.tactus("describe", "job", job)[1])
        self.assertRegex(self.cluster.tactus("explain", job)[1], r"4\s+validations\s+took")
        result = self.folder.path / "result"
        self.cluster.tactus("download", job, "--to", result)
        curves = b"".join(path.read_bytes() for path in result.glob("tensorboard/*"))
        self.assertIn(b"validation/loss", curves)
        self.assertIn(b"validation/accuracy", curves)
        self.assertAlmostEqual(self.validation_loss(result / "model.pt", 100), points[-1]["loss"], delta=1e-4)

    def test_the_best_parameters_are_the_result_though_training_went_on(self):
        self.cluster.start_agent("node", 2)
        # So high a rate that the loss is soon no lower than it was.
        spec = self.spec({"rounds": 10}, "best", patience=3, rounds=2000)
        spec["optimizer"] = {"sgd": {"learning_rate": 0.8, "momentum": 0.9}}

        job, done = self.run_to_end(spec)

        points = self.validations(job)
        best = min(points, key=lambda point: point["loss"])
        self.assertIn("patience: 3 validations in a row without a new best", done["state_reason"])
        self.assertEqual(points.index(best), len(points) - 4)
        self.assertEqual(int(done["result"]["validation"]["rounds"]), int(best["rounds"]))
        self.assertEqual(done["result"]["validation"]["loss"], best["loss"])
        self.assertEqual(int(done["result"]["rounds"]), int(points[-1]["rounds"]))
        result = self.folder.path / "result"
        self.cluster.tactus("download", job, "--to", result)
        summary = json.loads((result / "summary.json").read_text())
        self.assertEqual(summary["validation"]["rounds"], int(best["rounds"]))
        samples = int(best["samples"])
        self.assertAlmostEqual(self.validation_loss(result / "model.pt", samples), best["loss"], delta=1e-4)

    def test_it_ends_when_the_validation_loss_is_low_enough(self):
        self.cluster.start_agent("node", 2)
        spec = self.spec({"rounds": 5, "samples": 64}, validation_loss=2.5, rounds=2000)

        job, done = self.run_to_end(spec)

        points = self.validations(job)
        self.assertLessEqual(points[-1]["loss"], 2.5)
        self.assertTrue(all(point["loss"] > 2.5 for point in points[:-1]), points)
        self.assertIn("validation_loss", done["state_reason"])
        self.assertEqual(int(done["result"]["rounds"]), int(points[-1]["rounds"]))

    def test_a_job_that_was_paused_and_one_that_lost_a_worker_go_on_counting(self):
        self.cluster.start_agent("node", 2)
        spec = self.spec({"rounds": 10, "samples": 64}, "best", rounds=1000000)
        spec["checkpoints"] = {"every": "1s"}
        job = self.cluster.submit(spec)
        wait_until(lambda: len(self.validations(job)) >= 3, 60, "three validations")

        self.cluster.tactus("pause", job)
        self.cluster.wait(job, ["PAUSED"])
        before = self.validations(job)
        best = self.cluster.job(job)["progress"]["validation"]["best"]
        self.cluster.tactus("resume", job)
        wait_until(lambda: len(self.validations(job)) >= len(before) + 2, 60, "it validates on")
        after = self.validations(job)
        self.assertEqual(after[:len(before)], before)
        self.assertLessEqual(self.cluster.job(job)["progress"]["validation"]["best"]["loss"], best["loss"])

        wait_until(lambda: int(self.cluster.job(job)["checkpoint_rounds"]) > int(after[-1]["rounds"]), 60, "a checkpoint")
        self.cluster.kill("node")
        self.cluster.start_agent("node", 2)
        reached = int(self.cluster.job(job)["checkpoint_rounds"])
        wait_until(lambda: self.cluster.state(job) == "RUNNING" and self.validations(job)
                   and int(self.validations(job)[-1]["rounds"]) > reached, 120, "it validates again")
        rounds = [int(point["rounds"]) for point in self.validations(job)]
        self.assertEqual(rounds, sorted(set(rounds)))
        self.assertEqual({number % 10 for number in rounds}, {0})
        self.cluster.tactus("cancel", job)
        done = self.cluster.wait(job, ["CANCELLED"])
        files = {artifact["path"] for artifact in done["result"]["artifacts"]}
        self.assertLessEqual({"model.pt", "checkpoint.safetensors"}, files)
        result = self.folder.path / "result"
        self.cluster.tactus("download", job, "--to", result)
        told = done["result"]["validation"]
        self.assertAlmostEqual(self.validation_loss(result / "model.pt", 64), told["loss"], delta=1e-4)
        self.assertEqual(told["loss"], min(point["loss"] for point in self.validations(job)))

    def test_the_curve_outlives_the_coordinator(self):
        self.cluster.start_agent("node", 2)
        job = self.cluster.submit(self.spec({"rounds": 10, "samples": 64}, rounds=1000000))
        wait_until(lambda: len(self.validations(job)) >= 3, 60, "three validations")
        before = self.validations(job)
        address = self.cluster.address
        self.cluster.kill("coordinator")
        self.cluster.start_coordinator(listen=address)

        wait_until(lambda: len(self.validations(job)) > len(before), 60, "the curve goes on")
        after = self.validations(job)
        # What was written last may have gone with the process; what was is as it was.
        kept = [point for point in before if point in after]
        self.assertGreaterEqual(len(kept), len(before) - 1)
        self.cluster.tactus("cancel", job, "--discard")
        self.cluster.wait(job, ["CANCELLED"])

    def test_watchers_see_each_validation(self):
        self.cluster.start_agent("node", 2)
        path = self.folder.path / "job.yaml"
        path.write_text(json.dumps(self.spec({"rounds": 50}, rounds=100)))

        code, out, err = self.cluster.tactus("submit", path, "--follow")

        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"validation: loss \d+\.\d+, accuracy \d+\.\d+ % \(\d+ samples\), after 100 rounds")

    def test_bad_files_are_refused_with_a_line_each(self):
        cases = [
            (self.spec({"epochs": 0}, rounds=5), "validation.epochs", "found 0, allowed is 1 to"),
            (self.spec({"every": "10ms"}, rounds=5), "validation.every", "found 0.01s, allowed is 1s"),
            (self.spec({"every": "5m", "rounds": 3}, rounds=5), "validation", "'every' and 'rounds' are given"),
            (self.spec("never", rounds=5), "validation", "'never'"),
            (self.spec({"samples": 0}, rounds=5), "validation.samples", "found 0"),
            (self.spec("none", patience=3), "stop.patience", "validation is none"),
            (self.spec("none", "best", rounds=5), "result", "validation is none"),
            (self.spec(None, "first", rounds=5), "result", "'first'"),
            (self.spec(None, "best", {"validation_fraction": 0}, rounds=5), "result", "no validation data"),
            (self.spec({"epochs": 1}, None, {"validation_fraction": 0}, rounds=5), "validation.epochs", "no validation data"),
            (self.spec({"samples": 5}, None, {"validation_samples_max": 6}, rounds=5), "validation.samples", "allowed is 6"),
        ]
        path = self.folder.path / "bad.yaml"
        for spec, field, words in cases:
            with self.subTest(field=field, words=words):
                path.write_text(json.dumps(spec))
                code, out, err = self.cluster.tactus("submit", path, check=False)
                self.assertEqual(code, 2, out + err)
                lines = err.splitlines()
                self.assertEqual(len(lines), 1, "the complaint alone, and no file was brought along first: " + err)
                self.assertIn(field, lines[0])
                self.assertIn(words, lines[0])

    def test_data_without_a_validation_sample_fail_the_job_that_needs_some(self):
        self.cluster.start_agent("node", 2)
        short = self.folder.path / "short.txt"
        short.write_text("a round " * 20)  # nine samples, of which a hundredth is none
        spec = self.spec({"epochs": 1}, None, {"text": str(short), "validation_fraction": 0.01}, rounds=5)
        job = self.cluster.submit(spec)

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])

        self.assertEqual(done["state"], "JOB_STATE_FAILED")
        self.assertEqual(done["error_field"], "validation")
        self.assertIn("found no validation sample", done["state_reason"])


if __name__ == "__main__":
    unittest.main()
