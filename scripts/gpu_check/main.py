"""What scripts/gpu-check does, from its command line to its exit code."""
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from gpu_check import builds, facts, options, pack, stages
from gpu_check.commands import Deadline
from gpu_check.options import EXIT_FAILED, EXIT_NO_DEVICE, EXIT_USAGE
from gpu_check.programs import Programs
from gpu_check.report import Report
from gpu_check.work import Work

ROOT = pathlib.Path(__file__).resolve().parents[2]
OF_EVERY_RUN = builds.STEPS + stages.STEPS


def commit():
    """Empty where this is no checkout, as on a machine to which the files alone were carried."""
    def git(*words):
        try:
            return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True).stdout.strip()
        except OSError:
            return ""
    found = git("rev-parse", "--short", "HEAD")
    return found + (", with changes" if git("status", "--porcelain") else "")


def chosen(asked):
    """The steps of a run."""
    if asked.staged:
        return [step for step in stages.STEPS if step.stage in asked.stages and asked.wants(step.name)]
    return [step for step in OF_EVERY_RUN if asked.wants(step.name)]


def keep(report):
    """Where reports are kept that are worth it."""
    slug = re.sub(r"[^a-z0-9]+", "-", report.device().lower()).strip("-")
    path = ROOT / "bench/results" / f"{report.date}-{slug}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.markdown())
    print(f"gpu-check: the report is in {path.relative_to(ROOT)}, too")


def verdict(asked, work):
    rows = work.report.rows
    bad = [row.step for row in rows if not row.good()]
    spent = f"{work.deadline.spent():.0f} s"
    print(f"gpu-check: the report is {asked.out}/report.md")
    if asked.build_only:
        print(f"gpu-check: built in {asked.build}; nothing was run" if not bad else f"gpu-check: FAILED: {' '.join(bad)}")
        return EXIT_FAILED if bad else 0
    if not work.facts["devices"] or work.no_device:
        print(f"gpu-check: no CUDA device ({spent})")
        return EXIT_NO_DEVICE
    if bad:
        print(f"gpu-check: FAILED: {' '.join(bad)} ({spent})")
        return EXIT_FAILED
    print(f"gpu-check: all passed ({spent})")
    return 0


def check(asked, folder):
    deadline = Deadline(asked.deadline)
    report = Report(asked.out, folder)
    report.facts = facts.collect(asked)
    programs = Programs(asked, folder, report.facts)
    report.commit = commit() or programs.packed().get("commit") or "unknown"
    devices = report.facts["devices"]
    if devices:
        print(f"gpu-check: {len(devices)} x {devices[0]['name']}", flush=True)
    else:
        print("gpu-check: no CUDA device was found, neither by nvidia-smi nor by the driver", flush=True)
        if not asked.staged and not asked.build_only:
            print("gpu-check: nothing was run; --build-only builds all of it")
            return EXIT_NO_DEVICE
    work = Work(asked, ROOT, report, programs, deadline, folder)
    work.go(chosen(asked))
    if asked.report and not asked.build_only:
        keep(report)
    report.print_table()
    return verdict(asked, work)


def main(arguments):
    if arguments == ["--help"]:
        print(options.USAGE, end="")
        return 0
    try:
        asked = options.parse(arguments, ROOT, [step.name for step in OF_EVERY_RUN])
    except options.WrongUsage as wrong:
        print(f"gpu-check: {wrong}\n{options.USAGE}", end="", file=sys.stderr)
        return EXIT_USAGE
    # Commands are ended, and what was found is on disk already.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="gpu-check-"))
    try:
        return pack.pack(asked, ROOT, folder, commit()) if asked.pack else check(asked, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
