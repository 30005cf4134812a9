#!/usr/bin/env python3
"""bench/gpu-train from end to end on the CPU, against the tactus-worker that was just built: every row is there and has
figures. Nothing is said about how large they are.

usage: gpu_train_test.py SOURCE_ROOT WORKER        exit 77: this Python has no PyTorch
"""
import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

SOURCE, WORKER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SKIPPED = 77
SYSTEMS = ["PyTorch, foreach", "PyTorch, fused", "DistributedDataParallel"]


def gpu_train(*arguments, worker=WORKER):
    command = [sys.executable, "-B", str(SOURCE / "bench/gpu-train"), "--device", "cpu", "--quick", "--worker",
               str(worker), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


def rows(output):
    """The cells of each row of the table, by the header's names."""
    lines = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in output.splitlines() if line.startswith("| ")]
    return [dict(zip(lines[0], line)) for line in lines[1:] if not line[0].startswith("-")]


class GpuTrainTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def fake_worker(self, text):
        path = pathlib.Path(self.folder.name) / "worker"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def check(self, model, optimizer, devices):
        """Runs one model with one optimizer; each system has its row, and each figure is there."""
        written = pathlib.Path(self.folder.name) / "figures.json"
        done = gpu_train("--models", model, "--optimizers", optimizer, "--devices", devices, "--json", written)

        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        table = [row for row in rows(done.stdout) if row["precision"] == "float32"]
        self.assertEqual({(row["model"], row["optimizer"]) for row in table}, {(model, optimizer)})
        self.assertEqual([row["peer"] for row in table if row["devices"] == "1"], SYSTEMS, done.stdout)
        self.assertEqual([row["peer"] for row in table if row["devices"] != "1"], SYSTEMS[-1:] * (devices - 1))
        measured = json.loads(written.read_text())["measured"]
        ours = [entry for entry in measured if entry["system"] == "tactus-worker" and entry["precision"] == "float32"]
        self.assertEqual(len(ours), devices)
        for entry in measured:
            self.assertEqual(len(entry["samples_per_second"]), 1)
            self.assertGreater(entry["samples_per_second"][0], 0)

    def test_one_device(self):
        self.check("resnet18", "adamw", 1)

    def test_two_devices(self):
        self.check("bytes-lm", "sgd", 2)

    def test_a_worker_that_dies_is_a_failure_with_its_last_words(self):
        done = gpu_train("--models", "bytes-lm", worker=self.fake_worker("echo no such device >&2\nexit 3\n"))

        self.assertEqual(done.returncode, 1)
        self.assertIn("did not connect: no such device", done.stderr)

    def test_a_worker_that_is_not_there_is_a_wrong_call(self):
        done = gpu_train(worker=pathlib.Path(self.folder.name) / "missing")

        self.assertEqual(done.returncode, 2)
        self.assertIn("build it, or name it with --worker", done.stderr)


if __name__ == "__main__":
    try:
        import torch  # noqa: F401  (the peers need it)
    except ImportError:
        print("skipped: this Python has no PyTorch")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2)
