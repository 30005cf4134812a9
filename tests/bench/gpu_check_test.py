#!/usr/bin/env python3
"""scripts/gpu-check with a driver, tools and benchmarks that are made up: what it runs, reports and returns. No kernel
runs here, and no figure is one.

usage: gpu_check_test.py SOURCE_ROOT
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.build = self.folder / "build"
        self.fake("tools/nvidia-smi", "echo 'NVIDIA Made Up 9000, 580.01, 1024 MiB'")
        self.fake("tools/ctest", 'echo "tests with gpu required: $TACTUS_REQUIRE_GPU"; echo "7/7 Test #7: two ... (Skipped)"')
        self.fake("tools/compute-sanitizer", 'echo "sanitized by $2: $6"')
        self.fake("tools/python", 'case "$*" in *gpu-train*) echo "| trained | $* |";; *version*) echo 9.9.9;; esac')
        self.fake("build/bin/bench_kernels", 'echo "| axpy | 1 |"')
        self.fake("build/bin/tactus-worker", "")
        self.fake("build/tests/cuda_gpu_test", "")

    def fake(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def check(self, *arguments):
        environment = {**os.environ, "PATH": f"{self.folder}/tools:/usr/bin:/bin", "CUDA_HOME": str(self.folder)}
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        return subprocess.run([str(SOURCE / "scripts/gpu-check"), "--build", "build", "--python", "python",
                               *arguments], env=environment, cwd=self.folder, capture_output=True, text=True, timeout=100)

    RUN = ("--only", "tests,memcheck,racecheck,kernels,train")

    def test_the_report_has_every_step_and_the_tables(self):
        done = self.check(*self.RUN)

        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[0], "gpu-check: 1 x NVIDIA Made Up 9000")
        report = done.stdout[done.stdout.index("# GPU check: NVIDIA Made Up 9000"):]
        for step in ("tests", "memcheck", "racecheck", "kernels", "train"):
            self.assertIn(f"\n| {step} | passed | ", report)
        self.assertIn("tests with gpu required: 1", report)
        self.assertIn("sanitized by memcheck: --gtest_filter=-LargeBufferTest.*", report)
        self.assertIn("sanitized by racecheck", report)
        self.assertIn("| axpy | 1 |", report)
        self.assertIn("| trained | -B bench/gpu-train --worker", report)
        self.assertIn("--devices 1 ", report)

    def test_paths_are_those_of_the_folder_that_it_is_called_in(self):
        done = self.check("--only", "train", "--text", "some/text")

        self.assertIn(f"--text {self.folder}/some/text", done.stdout)

    def test_skipped_tests_are_told(self):
        self.assertIn("| 1 skipped |", self.check("--only", "tests").stdout)

    def test_a_step_that_fails_hides_no_other(self):
        self.fake("tools/ctest", "echo kernel 3 is wrong; exit 8")
        self.fake("build/bin/bench_kernels", "echo out of memory >&2; exit 2")

        done = self.check(*self.RUN)

        self.assertEqual(done.returncode, 1)
        self.assertIn("\n| tests | failed with 8 | ", done.stdout)
        self.assertIn("\n| kernels | failed with 2 | ", done.stdout)
        self.assertIn("\n| train | passed | ", done.stdout)
        self.assertIn("## What kernels said at its end\n\n```\nout of memory\n```", done.stdout)
        self.assertIn("FAILED: tests kernels", done.stderr)

    def test_what_is_not_there_is_a_failure(self):
        (self.folder / "tools/compute-sanitizer").unlink()
        (self.build / "bin/bench_kernels").unlink()

        done = self.check(*self.RUN)

        self.assertEqual(done.returncode, 1)
        self.assertIn("| memcheck | not run: compute-sanitizer was not found |", done.stdout)
        self.assertIn("| kernels | not run: bench_kernels is not built |", done.stdout)

    def test_a_step_is_stopped_after_its_limit(self):
        self.fake("build/bin/bench_kernels", "sleep 90")

        done = self.check("--only", "kernels", "--limit", "1")

        self.assertEqual(done.returncode, 1)
        self.assertIn("| kernels | stopped after its limit of 1 s |", done.stdout)

    def test_without_a_device_nothing_is_run(self):
        for said in ("exit 9", "echo NVIDIA-SMI has failed because it could not talk to the driver; exit 9"):
            self.fake("tools/nvidia-smi", said)

            done = self.check(*self.RUN)

            self.assertEqual(done.returncode, 69, said)
            self.assertIn("no CUDA device was found", done.stdout.splitlines()[0])
            self.assertNotIn("passed", done.stdout)

    def test_a_limit_is_a_number(self):
        self.assertEqual(self.check("--limit", "abc").returncode, 64)

    def test_an_unknown_step_or_option_is_refused(self):
        self.assertEqual(self.check("--only", "tests,rest").returncode, 64)
        self.assertEqual(self.check("--all").returncode, 64)
        self.assertEqual(self.check("--limit").returncode, 64)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
