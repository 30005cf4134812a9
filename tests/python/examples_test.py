"""The programs of examples/torch, each at a small size."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ExamplesTest(unittest.TestCase):
    def run_example(self, name, *arguments):
        done = subprocess.run([sys.executable, "-W", "error::UserWarning", ROOT / "examples/torch" / name, *map(str, arguments)],
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

    def test_a_text_is_learned(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text"
            text.write_bytes(b"the quick brown fox jumps over the lazy dog. " * 400)
            out = self.run_example("shakespeare.py", text, "--steps", 60, "--width", 32)
        losses = [float(found) for found in re.findall(r"loss ([\d.]+)", out)]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], 2.5)  # bytes at random: 5.5
        self.assertTrue(out.endswith("60 steps completed\n"), out)

    def test_each_is_short(self):
        for path in (ROOT / "examples/torch").glob("*.py"):
            self.assertLess(len(path.read_text().splitlines()), 80, path.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
