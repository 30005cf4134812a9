"""The command line of scripts/gpu-check."""
import argparse
import dataclasses
import os
import pathlib
import re

EXIT_FAILED, EXIT_USAGE, EXIT_NO_DEVICE = 1, 64, 69
STAGES = ("facts", "kernels", "NCCL", "worker and model", "training")

USAGE = """usage: scripts/gpu-check [options]                              build here, then all stages
       scripts/gpu-check --stage N[-M] --deadline SECONDS --out DIR --carried DIR
       scripts/gpu-check --pack DIR [--torch PREFIX] [--nccl-source DIR]

Stages: 0 facts, 1 kernels, 2 NCCL, 3 worker and model, 4 training. A step that fails or cannot run hides no other, and
says what it lacks. DIR/report.md, figures.json and log.txt are written anew after every step.

On a machine that has little but a GPU:
  --stage N[-M]         these stages alone; nothing is built, unless what was carried does not start
  --deadline SECONDS    over all: each step gets its own limit or what is left less 15 s, whichever is less
  --out DIR             where the report goes; default BUILD/gpu-check
  --carried DIR         what --pack has made

Beforehand, on a machine that has nvcc:
  --pack DIR            build what is carried there, at most 64 MiB, and say what was left out for want of what
  --torch PREFIX        a libtorch with CUDA (torch.utils.cmake_prefix_path, or the folder of the package): the worker
                        and its tests as well
  --nccl-source DIR     NCCL's source, 2.30 or newer: the few collectives that two ranks on one device need
  --architectures LIST  what kernels are compiled for; default 90-real

Where all of it can be built:
  --only STEP,...       these steps alone
  --quick               short benchmarks and fewer sanitized tests: does it work at all?
  --build-only          configure and build, with or without a device
  --report              write the report to bench/results/DATE-DEVICE.md too
  --prefix DIR          where cmake finds libraries that are in no system folder (CMAKE_PREFIX_PATH); may be repeated
  --python PYTHON       the Python that has torch: its libtorch is built against, and it runs the peers; default python3
  --build DIR           where to build; default build/gpu
  --jobs N              compilers at once; default one a core
  --devices N           train also on N devices together; default: all there are
  --models NAME,...     models of the training; default: all, and with --stage the first alone
  --cifar DIR, --text FILE   data for the training; default: made up
  --limit SECONDS       the longest that any one step may take; default by step

Exit code: 0, 1 if a step failed or could not run, 64 wrong usage, 69 without a device.
"""


class WrongUsage(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise WrongUsage(message)


@dataclasses.dataclass(frozen=True)
class Options:
    stages: range          # those that run
    staged: bool           # --stage: on a machine where nothing is built
    deadline: float | None
    out: pathlib.Path
    carried: pathlib.Path | None
    pack: pathlib.Path | None
    torch: pathlib.Path | None
    nccl_source: pathlib.Path | None
    architectures: str
    only: tuple
    quick: bool
    build_only: bool
    report: bool
    prefixes: tuple
    python: str
    build: pathlib.Path
    jobs: int
    devices: int | None
    models: str | None
    data: tuple            # options of bench/gpu-train
    limit: float | None

    def wants(self, step):
        return not self.only or step in self.only


def seconds(text):
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"not a number of seconds: {text}")
    return float(text)


def count(text):
    return int(seconds(text))


def stages(text):
    found = re.fullmatch(r"([0-4])(?:-([0-4]))?", text)
    if not found or found[2] and found[2] < found[1]:
        raise argparse.ArgumentTypeError(f"no such stages: {text}")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def path(text):
    """Of the folder that the script is called in."""
    return pathlib.Path(os.path.abspath(text))


def command(text):
    return str(path(text)) if "/" in text else text


def parser():
    made = Parser(add_help=False, allow_abbrev=False)
    made.add_argument("--stage", type=stages)
    for name in ("--deadline", "--limit"):
        made.add_argument(name, type=seconds)
    for name in ("--out", "--carried", "--pack", "--torch", "--nccl-source", "--cifar", "--text"):
        made.add_argument(name, type=path)
    for name in ("--jobs", "--devices"):
        made.add_argument(name, type=count)
    for name in ("--quick", "--build-only", "--report"):
        made.add_argument(name, action="store_true")
    made.add_argument("--architectures", default="90-real")
    made.add_argument("--only", type=lambda text: tuple(text.split(",")), default=())
    made.add_argument("--prefix", type=path, action="append", default=[])
    made.add_argument("--python", type=command, default="python3")
    made.add_argument("--build", type=path)
    made.add_argument("--models")
    return made


def parse(arguments, root, all_steps):
    """Throws WrongUsage."""
    given = parser().parse_args(arguments)
    for step in given.only:
        if step not in all_steps:
            raise WrongUsage(f"no such step: {step}")
    if given.stage and given.pack:
        raise WrongUsage("--pack builds here, --stage runs elsewhere")
    build = given.build or root / "build" / ("pack" if given.pack else "gpu")
    data = [text for name in ("cifar", "text") if (value := getattr(given, name)) for text in (f"--{name}", str(value))]
    return Options(stages=given.stage or range(len(STAGES)), staged=given.stage is not None, deadline=given.deadline,
                   out=given.out or build / "gpu-check", carried=given.carried, pack=given.pack, torch=given.torch,
                   nccl_source=given.nccl_source, architectures=given.architectures,
                   only=("configure", "build") if given.build_only else given.only, quick=given.quick,
                   build_only=given.build_only, report=given.report, prefixes=tuple(given.prefix), python=given.python,
                   build=build, jobs=given.jobs or os.cpu_count() or 1, devices=given.devices, models=given.models,
                   data=tuple(data), limit=given.limit)
