"""A room: namespaces of processes, mounts and network in which a program runs, so that all that it starts, mounts or makes
there is gone when it ends, however it ends. Root has what is needed; others where the kernel lets them."""
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # ctest's word for a test that could not be made
INTERRUPTED = 130
FOLDER = "TACTUS_CHAOS_FOLDER"  # the room's own folder; set inside alone
DEATH_SIGNAL = 1  # of prctl
SPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
CGROUPS = [pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")]  # versions 1 and 2


def spaces():
    """The words before a command's that give it a room."""
    return SPACES if os.geteuid() == 0 else [*SPACES, "--user", "--map-root-user"]


def why_none():
    """Why there can be no room on this machine; empty: there can."""
    for program in ("unshare", "nsenter", "ip"):
        if not shutil.which(program):
            return f"no program `{program}`"
    try_it = "mount -t tmpfs none /run && mkdir /run/netns && ip netns add a && ip link add name b0 type bridge"
    done = subprocess.run([*spaces(), "sh", "-c", try_it], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"no namespaces here: {done.stderr.strip()}"


def cgroup_of(folder):
    """The cgroup that goes with a room's folder, in the hierarchy that can limit memory; None: there is none to be had."""
    for root in CGROUPS:
        limits = "memory.limit_in_bytes" if root.name == "memory" else "cgroup.subtree_control"
        if not (root / limits).exists():
            continue
        if root.name == "cgroup" and "memory" not in (root / limits).read_text().split():
            return None
        return root / pathlib.Path(folder).name
    return None


def _remove_cgroup(group):
    """Those below it first; a process that is about to be gone holds its own for a moment."""
    if group is None or not group.exists():
        return
    for one in [*(path for path in group.iterdir() if path.is_dir()), group]:
        for _ in range(100):
            try:
                one.rmdir()
                break
            except OSError:
                time.sleep(0.05)


def _run_inside(folder):
    """This program anew, in a room; its exit code. A signal ends the room at once."""
    def die_with_parent():
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
    def interrupted(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, interrupted)
    inside = subprocess.Popen([*spaces(), sys.executable, "-B", *sys.argv], env={**os.environ, FOLDER: folder},
                              start_new_session=True, preexec_fn=die_with_parent)
    try:
        return inside.wait()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        inside.kill()
        inside.wait()


def _reap():
    """The first process of a room inherits those whose parents died: it waits for all of them, and ends as the one does that
    goes on from here."""
    child = os.fork()
    if child == 0:
        return
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def enter(keep=False):
    """Returns inside, with the room's folder, which is removed at the end unless it is to be kept; ends the program that
    calls it outside, with the exit code of that inside."""
    if FOLDER in os.environ:
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        os.mkdir("/run/netns")
        _reap()
        return pathlib.Path(os.environ[FOLDER])
    reason = why_none()
    if reason:
        print(f"chaos: {reason}")
        sys.exit(SKIPPED)
    folder = tempfile.mkdtemp(prefix="tactus-chaos-")
    print(f"chaos: until it ends, all of it is in {folder}", flush=True)
    try:
        code = _run_inside(folder)
    finally:
        _remove_cgroup(cgroup_of(folder))
        if keep:
            print(f"chaos: all that was written is in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(code)
