"""A model of two inputs and two outputs, with a loss of its own, on data that lie with the user: through a cluster and back."""
import unittest
from typing import Dict

import numpy
import torch

from cluster import Cluster, Folder, processes_of


class Towers(torch.nn.Module):
    """Words, of which a mask says which count, to a score and what it was made of."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 8)
        self.score = torch.nn.Linear(8, 1)

    def forward(self, tokens, mask):
        counted = mask.unsqueeze(-1).to(torch.float32)
        mean = (self.words(tokens) * counted).sum(1) / counted.sum(1).clamp(min=1.0)
        return {"score": self.score(mean).squeeze(1), "mean": mean}


class Loss(torch.nn.Module):
    def forward(self, output: Dict[str, torch.Tensor], target):
        return (output["score"] - target).square() + 0.01 * output["mean"].square().mean(1)


class ModelsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        torch.manual_seed(1)
        folder = self.folder.path
        torch.jit.script(Towers()).save(str(folder / "towers.pt"))
        torch.jit.script(Loss()).save(str(folder / "loss.pt"))
        chance = numpy.random.default_rng(1)
        self.tokens = chance.integers(0, 50, (2000, 6), dtype=numpy.int16)
        self.mask = chance.random((2000, 6)) < 0.7
        self.target = ((self.tokens * self.mask).sum(1) / numpy.maximum(self.mask.sum(1), 1) / 25 - 1).astype(numpy.float16)
        for name in ("tokens", "mask", "target"):
            numpy.save(folder / f"{name}.npy", getattr(self, name))
        self.cluster = Cluster(folder)
        self.cluster.start_coordinator()
        self.cluster.start_agent("a", 2)

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def spec(self, **model):
        files = {name: str(self.folder.path / f"{name}.npy") for name in ("tokens", "mask", "target")}
        return {"name": "towers",
                "model": {"torchscript": str(self.folder.path / "towers.pt"), "loss": str(self.folder.path / "loss.pt"), **model},
                "data": {"numpy": {"inputs": [files["tokens"], files["mask"]], "targets": files["target"]}},
                "optimizer": {"adam": {"learning_rate": 0.01}}, "stop": {"rounds": 200}, "workers": {"min": 2, "max": 2},
                "adapt": {"policy": "none", "batch": {"per_worker": 16}}}

    def run_job(self, spec):
        job = self.cluster.submit(spec)
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        return job, done

    def validation_loss(self, path):
        """Of the model at `path`, on the last tenth."""
        model, loss = torch.jit.load(str(path)), Loss()
        tokens, mask = torch.from_numpy(self.tokens[-200:].astype("int64")), torch.from_numpy(self.mask[-200:])
        target = torch.from_numpy(self.target[-200:].astype("float32"))
        with torch.no_grad():
            return float(loss(model(tokens, mask), target).mean())

    def test_it_trains_on_files_that_no_node_was_given(self):
        job, done = self.run_job(self.spec())

        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        data = done["spec"]["data"]["numpy"]
        for file in (data["inputs"], data["targets"], *data["more_inputs"], done["spec"]["model"]["loss"]):
            self.assertRegex(file, "^sha256:[0-9a-f]{64}$")
        result = self.folder.path / "result"
        self.cluster.tactus("download", job, "--to", result)
        loss = self.validation_loss(result / "model.pt")
        self.assertLess(loss, 0.5 * self.validation_loss(self.folder.path / "towers.pt"))
        self.assertAlmostEqual(float(done["result"]["validation"]["loss"]), loss, delta=1e-4 * loss + 1e-6)

        # Another job begins with what this one ended with.
        again, done = self.run_job({**self.spec(weights=str(result / "model.safetensors")), "stop": {"rounds": 1},
                                    "optimizer": {"sgd": {"learning_rate": 1e-9}}})
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.assertAlmostEqual(float(done["result"]["validation"]["loss"]), loss, delta=1e-4 * loss + 1e-6)

    def test_what_does_not_fit_ends_with_one_line(self):
        for change, field, said in (
                ({"loss": "mse"}, "model.torchscript", "forward returns a dict of score, mean; allowed: a tensor, or model.output"),
                ({"loss": "mse", "output": "scores"}, "model.output", '"scores" is not among what forward returns, a dict of'),
                ({"weights": str(self.folder.path / "tokens.npy")}, "model.weights", "is no safetensors file")):
            with self.subTest(change=change):
                _, done = self.run_job(self.spec(**change))
                self.assertEqual(done["state"], "JOB_STATE_FAILED")
                self.assertEqual(done["error_field"], field)
                self.assertIn(said, done["state_reason"])


if __name__ == "__main__":
    unittest.main()
