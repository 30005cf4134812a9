#!/usr/bin/env python3
"""scripts/gpu-check with a driver, tools and programs that are made up: what it runs, reports and returns. No kernel
runs here, and no figure is one. bare_root_test.py runs what is real in a root that has nothing.

usage: gpu_check_test.py SOURCE_ROOT
"""
import json
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "scripts"))
sys.dont_write_bytecode = True
from gpu_check import commands, options, registers, report, stages  # noqa: E402  (path set above)

PYTHON = '{"python": "3.12.3", "torch": "9.9.9, CUDA 13.0", "torch_folder": "/no/torch", "libraries": ["/no/torch/lib"]}'
NO_DEVICE = {"CUDA_VISIBLE_DEVICES": ""}  # where the tests' machine has one, the driver would tell of it
NO_LIBRARY = "echo 'x: error while loading shared libraries: libmade.so.1: cannot open shared object file' >&2; exit 127"
BENCH_KERNELS = 'case "$*" in *none*|--help) echo "Device: Made Up";; *) echo "| axpy | $* |"; echo {} >"$3";; esac'
BENCH_NCCL = ('echo "NCCL INFO something"; echo \'{"case": "\'$1\'", "passed": true, "said": "it ran", '
              '"figures": {"init_us": 12.5}}\'')

needs_googletest = unittest.skipUnless(pathlib.Path("/usr/src/googletest").exists(), "GoogleTest's sources are not installed")


class Fakes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.build = self.folder / "build"
        self.fake("tools/nvidia-smi", "echo 'NVIDIA Made Up 9000, 580.01, 1024 MiB'")
        self.fake("tools/compute-sanitizer", 'shift 4; echo "sanitized by $0: $*"; exec "$@"')
        self.fake("tools/python", f"case \"$*\" in *gpu-train*) echo \"| trained | $* |\";; *find_spec*) echo '{PYTHON}';; esac")

    def fake(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def environment(self, **given):
        environment = {**os.environ, "PATH": f"{self.folder}/tools:/usr/bin:/bin", "CUDA_HOME": str(self.folder)}
        for name in ("CUDA_VISIBLE_DEVICES", "NCCL_ROOT", "LD_LIBRARY_PATH"):
            environment.pop(name, None)
        return {**environment, **given}

    def check(self, *arguments, **environment):
        return subprocess.run([str(SOURCE / "scripts/gpu-check"), "--python", "python", *arguments],
                              env=self.environment(**environment), cwd=self.folder, capture_output=True, text=True, timeout=100)


class BuiltHereTest(Fakes):
    """Without --stage: with what is built in a folder."""

    RUN = ("--only", "tests,memcheck,racecheck,kernels,train")

    def setUp(self):
        super().setUp()
        self.fake("build/bin/bench_kernels", BENCH_KERNELS)
        self.fake("build/bin/tactus-worker", "")
        self.fake("build/tests/cuda_gpu_test", 'echo "gpu required: $TACTUS_REQUIRE_GPU"; echo "[  PASSED  ] 7 tests."')

    def check(self, *arguments, **environment):
        return super().check("--build", "build", *arguments, **environment)

    def report(self):
        return (self.build / "gpu-check/report.md").read_text()

    def test_the_report_has_every_step_and_the_tables(self):
        done = self.check(*self.RUN)

        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[0], "gpu-check: 1 x NVIDIA Made Up 9000")
        report = self.report()
        self.assertIn("# GPU check: NVIDIA Made Up 9000", report)
        for step in ("tests", "memcheck", "racecheck", "kernels", "train"):
            self.assertIn(f"\n| {step} | passed | ", report)
        self.assertIn("7 passed", report)
        self.assertIn("tests: -LargeBufferTest.*", report)
        self.assertIn("| axpy | --graph --json", report)
        self.assertIn("| trained | -B bench/gpu-train --worker", report)
        self.assertIn("--devices 1 ", report)
        log = (self.build / "gpu-check/log.txt").read_text()
        self.assertIn("gpu required: 1", log)
        self.assertIn("--gtest_filter=-LargeBufferTest.*:*DeathTest.*", log)

    def test_paths_are_those_of_the_folder_that_it_is_called_in(self):
        self.check("--only", "train", "--text", "some/text")

        self.assertIn(f"--text {self.folder}/some/text", self.report())

    def test_skipped_and_failed_tests_are_told(self):
        self.fake("build/tests/cuda_gpu_test",
                  'echo "[  PASSED  ] 5 tests."; echo "[  SKIPPED ] 1 test, listed below:"; '
                  'echo "[  FAILED  ] 1 test, listed below:"; echo "[  FAILED  ] A.B/3"; test "$1" = --gtest_list_tests')

        self.check("--only", "tests")

        self.assertIn("| tests | failed with 1: 5 passed, 1 skipped, 1 failed: A.B/3 |", self.report())

    def test_a_step_that_fails_hides_no_other(self):
        self.fake("build/tests/cuda_gpu_test", 'echo kernel 3 is wrong; test "$1" = --gtest_list_tests || exit 8')
        self.fake("build/bin/bench_kernels", '[ "$1" = --help ] && exit 0; echo out of memory >&2; exit 2')

        done = self.check(*self.RUN)

        self.assertEqual(done.returncode, 1)
        report = self.report()
        self.assertIn("\n| tests | failed with 8 | ", report)
        self.assertIn("\n| kernels | failed with 2 | ", report)
        self.assertIn("\n| train | passed | ", report)
        self.assertRegex(report, r"## What kernels said at its end\n\n+```\nout of memory\n```")
        self.assertIn("FAILED: tests kernels", done.stdout)

    def test_what_is_not_there_is_a_failure(self):
        (self.folder / "tools/compute-sanitizer").unlink()
        (self.build / "bin/bench_kernels").unlink()

        done = self.check(*self.RUN)

        self.assertEqual(done.returncode, 1)
        self.assertIn("| memcheck | not run: needs compute-sanitizer |", self.report())
        self.assertIn("| kernels | not run: needs bench_kernels (not built) |", self.report())

    def test_a_step_is_stopped_after_its_limit(self):
        self.fake("build/bin/bench_kernels", '[ "$1" = --help ] && exit 0; sleep 90')

        done = self.check("--only", "kernels", "--limit", "2")

        self.assertEqual(done.returncode, 1)
        self.assertIn("| kernels | stopped after its limit of 2 s |", self.report())

    def test_without_a_device_nothing_is_run(self):
        for said in ("exit 9", "echo NVIDIA-SMI has failed because it could not talk to the driver; exit 9"):
            self.fake("tools/nvidia-smi", said)

            done = self.check(*self.RUN, **NO_DEVICE)

            self.assertEqual(done.returncode, 69, said)
            self.assertIn("no CUDA device was found", done.stdout.splitlines()[0])
            self.assertNotIn("passed", done.stdout)

    def test_configure_fails_where_cmake_takes_no_nccl(self):
        self.fake("tools/nvcc", "echo release 13.0")
        self.fake("tools/ninja", "")
        self.fake("tools/cmake", 'echo "-- CUDA: 13.0 at /x"; echo "-- NCCL: not found, building without it"; '
                                 'echo "-- libtorch: with CUDA, at /y"')

        self.check("--only", "configure")

        self.assertIn("| configure | cmake did not take NCCL: -- NCCL: not found, building without it |", self.report())

    def test_wrong_usage_is_refused(self):
        for arguments in (["--limit", "abc"], ["--only", "tests,rest"], ["--all"], ["--limit"], ["--stage", "5"],
                          ["--stage", "2-1"], ["--deadline", "0"], ["--stage", "1", "--pack", "x"]):
            self.assertEqual(self.check(*arguments).returncode, 64, arguments)


class StagesTest(Fakes):
    """With --stage: on a machine that has a device and little else."""

    def setUp(self):
        super().setUp()
        self.fake("carried/bin/bench_kernels", BENCH_KERNELS)
        self.fake("carried/bin/bench_nccl", BENCH_NCCL)
        self.fake("carried/bin/cuda_gpu_test", 'echo "[  PASSED  ] 7 tests."')
        self.fake("tools/cuobjdump", 'echo " Function : _ZN6tactus4KernEv"; echo "  LDG.E.128.CONSTANT R4, [R2]"')
        self.out = self.folder / "out"

    def check(self, *arguments, **environment):
        return super().check("--out", "out", "--carried", "carried", *arguments, **environment)

    def rows(self):
        found = json.loads((self.out / "figures.json").read_text())
        return {row["step"]: row["result"] for row in found["steps"]}

    def test_all_that_was_carried_is_run(self):
        done = self.check("--stage", "0-2", "--deadline", "90")

        rows = self.rows()
        self.assertTrue(rows.pop("nccl-pair").startswith("not run: needs NCCL 2.30.0 or newer"), done.stdout)
        self.assertEqual(set(rows.values()), {"passed"}, done.stdout)
        self.assertEqual(set(rows), {"facts", "carried", "device", "tests", "kernels", "registers", "nccl-alone",
                                     "nccl-incomplete", "nccl-refused", "memcheck", "racecheck"})
        self.assertEqual(done.returncode, 1)
        figures = json.loads((self.out / "figures.json").read_text())["figures"]
        self.assertEqual(figures["nccl"]["alone"]["figures"], {"init_us": 12.5})
        self.assertEqual(figures["registers"]["_ZN6tactus4KernEv"]["accesses_of_16_bytes"], 1)
        self.assertIn("--sizes 16,64,256", (self.out / "report.md").read_text())

    def test_two_devices_need_no_nccl_whose_ranks_share_one(self):
        self.fake("tools/nvidia-smi", "for i in 1 2; do echo 'NVIDIA Made Up 9000, 580.01, 1024 MiB'; done")

        done = self.check("--stage", "2", "--deadline", "90")

        self.assertEqual(set(self.rows().values()), {"passed"}, done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_groups_and_edges_are_run_with_what_was_carried(self):
        self.fake("carried/bin/tactus-worker", "")
        self.fake("tools/python", f"""case "$*" in *find_spec*) echo '{PYTHON}';; *) echo "| made | $* |";; esac""")

        self.check("--stage", "3-4", "--deadline", "90", "--only", "groups,edge")

        report = (self.out / "report.md").read_text()
        self.assertEqual(self.rows(), {"groups": "passed",
                                       "edge": "not run: needs libdevice_trace.so (neither carried nor built)"})
        self.assertIn("--devices 1 --transports staged --json", report)
        self.assertIn("staged alone; over NCCL it needs NCCL 2.30.0 or newer", report)

        trace = self.fake("carried/bin/libdevice_trace.so", "")
        self.fake("tools/nvidia-smi", "for i in 1 2; do echo 'NVIDIA Made Up 9000, 580.01, 1024 MiB'; done")
        self.check("--stage", "3-4", "--deadline", "90", "--only", "groups,edge")

        report = (self.out / "report.md").read_text()
        self.assertEqual(self.rows(), {"groups": "passed", "edge": "passed"})
        self.assertIn("--devices 2 --transports nccl,staged --json", report)
        self.assertIn(f"--trace {trace} --keep {self.out} --json", report)

    def test_programs_are_run_where_the_library_and_a_torch_with_cuda_are(self):
        def told():
            self.check("--stage", "3", "--deadline", "90", "--only", "programs")
            return self.rows()["programs"]

        self.assertEqual(told(), "not run: needs libtactus_sdk.so (neither carried nor built)")
        library = self.fake("carried/bin/libtactus_sdk.so", "")
        for version, cuda in (("2.15.0", "none"), ("2.15.0", "13.0")):
            found = PYTHON.replace(json.loads(PYTHON)["torch"], f"{version}, CUDA {cuda}")
            self.fake("tools/python", f"""case "$*" in *find_spec*) echo '{found}';; *) echo "| made | $* |";; esac""")
            self.assertEqual(told(), "passed" if cuda != "none" else f"not run: needs a torch with CUDA, which python does not have")
        self.assertIn(f"--library {library} --devices 1 --json", (self.out / "report.md").read_text())

    def test_a_stage_is_run_by_itself(self):
        self.check("--stage", "2", "--deadline", "90")

        self.assertEqual(set(self.rows()), {"nccl-alone", "nccl-incomplete", "nccl-refused", "nccl-pair"})

    def test_the_deadline_is_over_all_steps(self):
        self.fake("carried/bin/cuda_gpu_test", '[ "$1" = --gtest_list_tests ] && exit 0; exec sleep 90')

        done = self.check("--stage", "0-1", "--deadline", "19")

        rows = self.rows()
        self.assertEqual(done.returncode, 1)
        self.assertTrue(rows["tests"].startswith("stopped after its limit of "), rows)
        for step in ("kernels", "registers", "memcheck"):
            self.assertEqual(rows[step], "not run: the deadline of 19 s is over")

    def test_the_report_is_there_before_and_after_every_step(self):
        self.fake("carried/bin/bench_nccl", f'[ "$1" = --help ] || cp {self.out}/report.md {self.folder}/seen-$1; {BENCH_NCCL}')

        self.check("--stage", "1-2", "--deadline", "90")

        seen = (self.folder / "seen-incomplete").read_text()
        self.assertIn("| nccl-alone | passed |", seen)
        self.assertIn("| nccl-incomplete | running |", seen)
        self.assertNotIn("nccl-refused", seen)

    def test_who_ends_it_finds_the_report_and_no_command_of_it(self):
        ready = self.folder / "ready"
        os.mkfifo(ready)
        self.fake("carried/bin/bench_kernels", f'[ "$1" = --help ] && exit 0; echo $$ >{ready}; exec sleep 90')
        process = subprocess.Popen([str(SOURCE / "scripts/gpu-check"), "--python", "python", "--stage", "0-1", "--out", "out",
                                    "--carried", "carried"], env=self.environment(), cwd=self.folder,
                                   stdout=subprocess.DEVNULL)
        watch = threading.Timer(60, process.kill)
        watch.start()
        child = int(ready.read_text())

        process.send_signal(signal.SIGTERM)
        code = process.wait()
        watch.cancel()

        self.assertEqual(code, 128 + signal.SIGTERM)
        self.assertEqual(self.rows()["device"], "running")
        self.assertEqual(self.rows()["carried"], "passed")
        self.assertFalse(pathlib.Path(f"/proc/{child}").exists())

    def test_few_files_come_back_and_none_is_long(self):
        self.fake("carried/bin/cuda_gpu_test", "yes the same line | head -c 40000000; yes errors | head -c 40000000 >&2")

        self.check("--stage", "0-2", "--deadline", "90")

        files = sorted(self.out.iterdir())
        self.assertEqual([path.name for path in files], ["figures.json", "log.txt", "report.md"])
        self.assertLess(max(path.stat().st_size for path in files), 16 << 20)

    def test_the_table_is_at_the_end_of_the_terminal(self):
        done = self.check("--stage", "0-4", "--deadline", "90")

        last = done.stdout.splitlines()[-60:]
        begins = last.index("| step | result | seconds | remark |")
        self.assertEqual(len([line for line in last[begins:] if line.startswith("| ")]), 2 + len(self.rows()))
        self.assertLess(len("\n".join(last)), 12_000)

    def test_what_does_not_start_is_compiled_there(self):
        self.fake("carried/bin/bench_kernels", NO_LIBRARY)
        self.fake("tools/nvcc", "echo release 13.0")
        self.fake("tools/ninja", "")
        # Compiles into the folder behind -B or --build.
        self.fake("tools/cmake", f"""
while [ "$1" != -B ] && [ "$1" != --build ]; do shift; done
if [ "$1" = --build ]; then
  mkdir -p "$2/bin" "$2/tests"
  cp {self.folder}/carried/bin/cuda_gpu_test "$2/tests"
  printf '#!/bin/sh\\necho compiled there\\n' >"$2/bin/bench_kernels"; chmod +x "$2/bin/bench_kernels"
fi""")

        done = self.check("--stage", "1", "--deadline", "90", "--only", "compile,device")

        self.assertEqual(self.rows(), {"compile": "passed", "device": "passed"}, done.stdout)
        self.assertIn("libmade.so.1 (cannot open shared object file)", done.stdout)
        self.assertIn("compiled there", (self.out / "log.txt").read_text())

    def test_the_one_thing_that_is_missing_is_named(self):
        for name in ("bench_kernels", "cuda_gpu_test"):
            self.fake(f"carried/bin/{name}", NO_LIBRARY)
        (self.folder / "carried/bin/bench_nccl").unlink()
        (self.folder / "carried/packed.json").write_text('{"left_out": {"bench_nccl": "nccl.h"}}')

        done = self.check("--stage", "0-4", "--deadline", "90")

        rows = self.rows()
        self.assertEqual(rows["compile"], "not run: needs nvcc", done.stdout)
        self.assertEqual(rows["tests"], "not run: needs libmade.so.1 (cannot open shared object file), without which "
                                        "cuda_gpu_test does not start")
        self.assertEqual(rows["nccl-alone"], "not run: needs bench_nccl (not carried: nccl.h)")
        self.assertEqual(rows["model"], "not run: needs model_test (neither carried nor built)")

    def test_without_a_device_every_step_says_so(self):
        self.fake("tools/nvidia-smi", "exit 9")

        done = self.check("--stage", "0-2", "--deadline", "90", **NO_DEVICE)

        self.assertEqual(done.returncode, 69)
        rows = self.rows()
        for step in ("device", "tests", "kernels", "nccl-alone", "memcheck"):
            self.assertTrue(rows[step].startswith("not run: needs a CUDA device: "), rows)

    def test_what_the_first_program_says_of_the_device_holds_for_all(self):
        self.fake("carried/bin/bench_kernels", '[ "$1" = --help ] && exit 0; echo "bench_kernels: no CUDA device: too old" >&2; exit 69')

        done = self.check("--stage", "0-2", "--deadline", "90")

        self.assertEqual(done.returncode, 69)
        self.assertTrue(self.rows()["device"].startswith("not run: needs a CUDA device: "))
        self.assertEqual(self.rows()["tests"], self.rows()["device"])

    def test_what_nccl_says_of_a_failure_is_told(self):
        self.fake("carried/bin/bench_nccl", '[ "$1" = --help ] && exit 0; '
                  'echo \'{"case": "alone", "passed": false, "said": "invalid usage", "figures": {}}\'; exit 1')

        self.check("--stage", "2", "--deadline", "90")

        self.assertEqual(self.rows()["nccl-alone"], "failed: invalid usage")


class PackTest(Fakes):
    def setUp(self):
        super().setUp()
        self.fake("tools/nvcc", "echo release 13.0")
        self.fake("tools/strip", 'cp "$3" "$2"')
        self.fake_cmake("-- NCCL: /x/libnccl.so, compiled for 2.28.9")

    def fake_cmake(self, said, size=1000):
        self.fake("tools/cmake", f"""
echo "{said}"
while [ "$1" != -B ] && [ "$1" != --build ]; do shift; done
if [ "$1" = --build ]; then
  mkdir -p "$2/bin" "$2/tests"
  mkdir -p "$2/lib"
  for name in bin/bench_kernels bin/bench_nccl tests/cuda_gpu_test lib/libtactus_sdk.so; do head -c {size} /dev/zero >"$2/$name"; done
  echo "ptxas info    : Compiling entry function 'k' for 'sm_90'"
else mkdir -p "$2"; fi""")

    def packed(self):
        return {str(path.relative_to(self.folder / "pack")) for path in (self.folder / "pack").rglob("*") if path.is_file()}

    @needs_googletest
    def test_what_is_missing_is_left_out_and_told(self):
        done = self.check("--pack", "pack", "--build", "made")

        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertLessEqual({"bin/bench_kernels", "bin/bench_nccl", "bin/cuda_gpu_test", "ptxas.txt", "packed.json",
                              "source/googletest/googletest/src/gtest-all.cc", "source/include/absl/base/thread_annotations.h"},
                             self.packed())
        self.assertIn("bin/libtactus_sdk.so", self.packed(), "which takes no libtorch")
        self.assertRegex(done.stdout, "cmake --preset gpu .*-DTACTUS_TORCH=OFF -DTACTUS_TESTS=OFF .*\n.*--target tactus_sdk_c\n")
        self.assertIn("left out: tactus-worker: needs a libtorch with CUDA (--torch)", done.stdout)
        self.assertIn("left out: libnccl.so.2: needs NCCL's source, 2.30 or newer (--nccl-source)", done.stdout)
        self.assertRegex(done.stdout, r"packed \d+ files, [0-9.]+ MiB of at most 64")

    @needs_googletest
    def test_without_nccl_its_program_is_left_out(self):
        self.fake_cmake("-- NCCL: not found, building without it")

        done = self.check("--pack", "pack", "--build", "made")

        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("left out: bench_nccl: needs NCCL's header and library (NCCL_ROOT)", done.stdout)
        self.assertIn("left out: NCCL in libtactus_sdk.so: needs", done.stdout)
        self.assertNotIn("bin/bench_nccl", self.packed())
        self.assertIn("bin/libtactus_sdk.so", self.packed())

    @needs_googletest
    def test_more_than_can_be_carried_is_a_failure(self):
        self.fake_cmake("-- NCCL: not found, building without it", 40 << 20)

        done = self.check("--pack", "pack", "--build", "made")

        self.assertEqual(done.returncode, 1)
        self.assertIn("TOO MUCH", done.stdout)

    def test_a_folder_of_somebody_else_is_not_emptied(self):
        (self.folder / "pack").mkdir()
        (self.folder / "pack/thesis.tex").write_text("years of work")

        done = self.check("--pack", "pack", "--build", "made")

        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.packed(), {"thesis.tex"})


class PartsTest(unittest.TestCase):
    def test_a_deadline_keeps_what_the_report_takes(self):
        now = [100.0]
        deadline = commands.Deadline(60, lambda: now[0])
        self.assertEqual(deadline.left(), 45)
        now[0] = 130.0
        self.assertEqual(deadline.left(), 15)
        self.assertEqual(commands.Deadline(None).left(), float("inf"))

    def test_groups_have_the_time_of_all_plans_and_of_one_that_hangs(self):
        bench = runpy.run_path(str(SOURCE / "bench/gpu-groups"), run_name="gpu_groups")
        started = sum(3 * bench["workers_of"](plan) for plan in bench["PLANS"])  # on processors, over NCCL, staged
        step = next(step for step in stages.STEPS if step.name == "groups")

        # An H100 took 26 s for 30 workers; those of meshes have more groups each.
        wanted = 2 * started * 26 / 30 + bench["LIMIT_SECONDS"]

        self.assertGreater(step.staged_seconds, wanted)
        self.assertGreater(step.full_seconds, wanted)

    def test_stages_are_one_or_a_range(self):
        self.assertEqual(list(options.stages("2")), [2])
        self.assertEqual(list(options.stages("0-2")), [0, 1, 2])

    def test_registers_and_spills_are_read(self):
        found = registers.from_ptxas("""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN6tactus4cuda7kernels10AxpyKernelEf' for 'sm_90'
ptxas info    : Function properties for _ZN6tactus4cuda7kernels10AxpyKernelEf
    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 8 bytes cumulative stack size
""")
        wide = registers.from_sass("\tFunction : _ZN6tactus4cuda7kernels10AxpyKernelEf\n  /*0*/ LDG.E.128 R4, [R2.64] ;\n"
                                   "  /*1*/ STG.E [R2.64], R4 ;\n  /*2*/ LDS R1 ;\n")

        kernel = registers.merged(found, wide)["_ZN6tactus4cuda7kernels10AxpyKernelEf"]

        self.assertEqual(kernel, {"stack_bytes": 8, "spilled_bytes": 40, "registers": 32, "accesses": 2,
                                  "accesses_of_16_bytes": 1})
        self.assertIn("| AxpyKernel | 32 | 8 | 40 | 1 of 2 |",
                      registers.table({"_ZN6tactus4cuda7kernels10AxpyKernelEf": kernel}))

    def test_kernels_have_the_names_that_tell_them_apart(self):
        # Of an anonymous namespace's hash, digits may stand right before a length.
        self.assertEqual(registers.short("_ZN6tactus4cuda7kernels11SweepKernelINS1_40_GLOBAL__N__e999fa00_8_combi_cu_4de81b45"
                                         "15WeightedSumBodyEEEvT_m"), "SweepKernel WeightedSumBody")
        self.assertEqual(registers.short("_ZN6tactus4cuda7kernels40_GLOBAL__N__e999fa00_8_probe_cu_4de81b4513NothingKernelEv"),
                         "NothingKernel")
        self.assertEqual(registers.short("main"), "main")

    def test_long_output_keeps_its_ends(self):
        text = report.shortened(b"begin" + b"." * 10_000 + b"end", 1000)

        self.assertLess(len(text), 1100)
        self.assertTrue(text.startswith(b"begin") and text.endswith(b"end"))

    def test_a_row_stays_a_row(self):
        made = report.Report(pathlib.Path("."), pathlib.Path("."))
        made.rows.append(report.Row("tests", "failed | with\n1", 2.4, "x" * 500))

        line = made.table(columns=110)[-1]

        self.assertTrue(line.startswith("| tests | failed / with 1 | 2 | xxx"))
        self.assertLess(len(line), 160)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
