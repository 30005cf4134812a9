"""The programs of examples/torch, each at a small size."""
import importlib.util
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ExamplesTest(unittest.TestCase):
    def run_example(self, name, *arguments, warnings="error::UserWarning"):
        done = subprocess.run([sys.executable, "-W", warnings, ROOT / "examples/torch" / name, *map(str, arguments)],
                              capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_digits_are_learned(self):
        out = self.run_example("digits.py", "--epochs", 2)
        right = [float(found) for found in re.findall(r"([\d.]+)% right", out)]
        self.assertEqual(len(right), 2)
        self.assertGreater(right[-1], 60)  # of eight: chance is 12.5
        self.assertTrue(out.endswith("2 epochs completed\n"), out)

    def test_a_sweep_is_learned_in_one_program(self):
        out = self.run_example("sweep.py", "--epochs", 2, "--rates", "0.05,0.00001")
        well, hardly = re.findall(r"([\d.]+) ([\d.]+)% right", out)[-2:]
        self.assertGreater(float(well[1]), 60)  # as in digits
        self.assertLess(float(hardly[1]), 40)
        apart = self.run_example("sweep.py", "--epochs", 2, "--rates", "0.05,0.00001", "--apart")
        self.assertAlmostEqual(float(re.findall(r"([\d.]+)% right", apart)[-2]), float(well[1]), delta=2)

    def test_a_text_is_learned(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_bytes(b"the quick brown fox jumps over the lazy dog. " * 400)
            out = self.run_example("shakespeare.py", text, "--steps", 60, "--width", 32)
        losses = [float(found) for found in re.findall(r"loss ([\d.]+)", out)]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], 2.5)  # bytes at random: 5.5
        self.assertTrue(out.endswith("60 steps completed\n"), out)

    def test_pictures_are_read_and_learned(self):
        generator = random.Random(1)
        with tempfile.TemporaryDirectory() as folder:
            for name, count in (("data_batch_1", 200), ("data_batch_2", 200), ("test_batch", 100)):
                with open(pathlib.Path(folder) / f"{name}.bin", "wb") as file:
                    for _ in range(count):
                        label = generator.randrange(10)
                        file.write(bytes([label]) + bytes(generator.randrange(20) + 23 * label for _ in range(3 * 32 * 32)))
            out = self.run_example("cifar.py", folder, "--epochs", 4, "--save", pathlib.Path(folder) / "model.pt")
            self.assertTrue((pathlib.Path(folder) / "model.pt").exists())
        right = [float(found) for found in re.findall(r"([\d.]+)% right", out)]
        self.assertEqual(len(right), 4)
        self.assertGreater(right[-1], 25)  # of ten

    def test_adapters_learn_what_the_model_did_not(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = pathlib.Path(folder) / "first", pathlib.Path(folder) / "second"
            first.write_bytes(b"the quick brown fox jumps over the lazy dog. " * 200)
            second.write_bytes(b"0123456789" * 900)
            out = self.run_example("lora.py", first, second, "--steps", 120)
        losses = [float(found) for found in re.findall(r"loss ([\d.]+)", out)]
        self.assertEqual(len(losses), 2)
        self.assertLess(losses[0], 2.6)
        self.assertLess(losses[1], 1.0)  # the model alone has never seen a digit

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_decisions_are_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "decisions.svg"
            out = self.run_example("decisions.py", picture, "--epochs", 1)
            self.assertIn("training loss", picture.read_text())  # in its comments, as letters are lines
        self.assertIn("round 0: learning rate begins -> adascale", out)

    @unittest.skipUnless(importlib.util.find_spec("lightning"), "lightning is not installed")
    def test_lightning_learns_the_digits(self):
        out = self.run_example("with_lightning.py", "--epochs", 2, warnings="default")
        right = [float(found) for found in re.findall(r"([\d.]+)% right", out)]
        self.assertEqual(len(right), 2)
        self.assertGreater(right[-1], 60)
        self.assertTrue(out.endswith("2 epochs completed\n"), out)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_hugging_face_learns_a_text(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_bytes(b"the quick brown fox jumps over the lazy dog. " * 600)
            out = self.run_example("with_huggingface.py", text, "--epochs", 2, "--save", folder, warnings="default")
            self.assertTrue((pathlib.Path(folder) / "model.safetensors").exists())
        self.assertLess(float(re.search(r"loss ([\d.]+): 2 epochs completed", out).group(1)), 3)  # bytes at random: 5.5

    # What the pages' loops are given.
    GIVEN = """
import torch
from torch.nn import functional as F
from torch.utils.data import TensorDataset
make_model = lambda: torch.nn.Linear(6, 3)
train_set = test_set = TensorDataset(torch.randn(300, 6), torch.randint(0, 3, (300,)))
"""

    def run_snippet(self, text):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", self.GIVEN + text], capture_output=True, text=True, timeout=300, cwd=folder,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1",
                                       "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue((pathlib.Path(folder) / "model.pt").exists())

    def test_the_pages_loops_run_as_they_stand_there(self):
        self.run_snippet(re.search(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.S).group(1))
        both = re.search(r"```diff\n(.*?)```", (ROOT / "docs/coming-from.md").read_text(), re.S).group(1).splitlines()
        for side, other in ("+-", "-+"):
            with self.subTest(side):
                self.run_snippet("\n".join(line[1:] for line in both if not line.startswith(other)))

    def test_each_is_short(self):
        for path in (ROOT / "examples/torch").glob("*.py"):
            self.assertLess(len(path.read_text().splitlines()), 80, path.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
