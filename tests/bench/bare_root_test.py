#!/usr/bin/env python3
"""scripts/gpu-check in a root that has nothing but a C library and Python, with a made-up nvidia-smi, and with what
`scripts/gpu-check --pack` has really made: what was carried starts there, and each step says what it lacks.

usage: bare_root_test.py SOURCE_ROOT [SUITE ...]
TACTUS_CARRIED names what was packed. SUITE: bookworm, noble; default both. Exit code 77: nothing could be tried, for
want of that, of root, of debootstrap or of the mirror.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
SUITES = sys.argv[2:] or ["bookworm", "noble"]
SKIPPED = 77
# Suite -> mirror, keyring, and the script of debootstrap's that knows how (of Ubuntu's they are all one).
MIRRORS = {"bookworm": ("http://deb.debian.org/debian", "debian-archive-keyring.gpg", "bookworm"),
           "noble": ("http://archive.ubuntu.com/ubuntu", "ubuntu-archive-keyring.gpg", "gutsy")}
DEADLINE_SECONDS = 560
NVIDIA_SMI = "#!/bin/sh\necho 'NVIDIA Made Up 9000, 580.01, 1024 MiB, 9.0, Disabled'\n"


def make_root(suite, root):
    """Whether there is one now."""
    mirror, keyring, script = MIRRORS[suite]
    keys = pathlib.Path("/usr/share/keyrings") / keyring
    trust = [f"--keyring={keys}"] if keys.exists() else ["--no-check-gpg"]  # it is thrown away again
    made = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3-minimal,libpython3-stdlib", *trust, suite,
                           str(root), mirror, f"/usr/share/debootstrap/scripts/{script}"], capture_output=True, text=True)
    if made.returncode != 0:
        print(f"bare_root: no root of {suite}: {made.stdout.strip().splitlines()[-1:]}")
    return made.returncode == 0


def furnish(root, carried):
    """The tree's scripts, what was carried, and a driver's tool without a driver."""
    shutil.copytree(SOURCE / "scripts", root / "tactus/scripts")
    shutil.copytree(carried, root / "carried")
    tool = root / "usr/local/bin/nvidia-smi"
    tool.write_text(NVIDIA_SMI)
    tool.chmod(0o755)


def run(root):
    """Exit code, what it printed, figures.json."""
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    try:
        done = subprocess.run(["chroot", str(root), "/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin:/sbin",
                               "/usr/bin/python3", "-B", "/tactus/scripts/gpu-check", "--stage", "0-2", "--deadline",
                               str(DEADLINE_SECONDS), "--out", "/out", "--carried", "/carried"],
                              capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    finally:
        subprocess.run(["umount", str(root / "proc")], check=True)
    return done.returncode, done.stdout + done.stderr, json.loads((root / "out/figures.json").read_text())


def complaints(code, figures, packed):
    """What is not as it must be."""
    rows = {row["step"]: row for row in figures["steps"]}
    if code != 69:
        yield f"the exit code is {code}, not that of a machine without a device"
    # Without the driver's library every program starts all the same; what uses NCCL needs one.
    if "libnccl.so.2" in packed["left_out"]:
        if rows["carried"]["result"] != "bench_nccl needs libnccl.so.2 (cannot open shared object file: No such file or directory)":
            yield f"carried: {rows['carried']['result']}"
    elif rows["carried"]["result"] != "passed":
        yield f"carried: {rows['carried']['result']}"
    for step in ("device", "tests", "kernels", "nccl-alone", "nccl-incomplete", "nccl-refused", "nccl-pair", "memcheck",
                 "racecheck"):
        if "needs a CUDA device: libcuda.so.1" not in rows[step]["result"]:
            yield f"{step}: {rows[step]['result']}"
    if rows["registers"]["result"] != "passed":  # by what the compiler said
        yield f"registers: {rows['registers']['result']}"


def main():
    carried = os.environ.get("TACTUS_CARRIED")
    for lacks, why in ((not carried, "TACTUS_CARRIED, which names what scripts/gpu-check --pack has made"),
                       (os.geteuid() != 0, "root"), (not shutil.which("debootstrap"), "debootstrap")):
        if lacks:
            print(f"bare_root: SKIPPED: needs {why}")
            return SKIPPED
    packed = json.loads((pathlib.Path(carried) / "packed.json").read_text())
    tried, failed = 0, 0
    for suite in SUITES:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bare-root-", dir="/var/tmp"))
        folder.chmod(0o755)  # it becomes /
        try:
            if not make_root(suite, folder):
                continue
            furnish(folder, carried)
            code, said, figures = run(folder)
            print(f"bare_root: {suite}\n{said}")
            wrong = list(complaints(code, figures, packed))
            print("\n".join(f"bare_root: {suite}: WRONG: {one}" for one in wrong) or f"bare_root: {suite}: as it must be")
            tried, failed = tried + 1, failed + bool(wrong)
        finally:
            subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=True)
    return SKIPPED if tried == 0 else 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
