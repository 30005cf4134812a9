"""What a machine has: told first, and what the steps decide by. Nothing here loads libtorch, which takes long."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

from gpu_check.commands import Missing, find_tool

ASK_SECONDS = 10  # for each question

# Asked of the Python that has torch, which need not be this one.
OF_PYTHON = """
import importlib.util, json, pathlib, re, sys
def folders(name):
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        spec = None
    return [str(pathlib.Path(p).resolve()) for p in (spec.submodule_search_locations if spec else None) or []]
found = {"python": sys.version.split()[0], "torch": None, "torch_folder": None, "libraries": []}
for folder in folders("torch"):
    text = (pathlib.Path(folder) / "version.py").read_text()
    version = re.search(r"__version__ = '([^']+)'", text)
    cuda = re.search(r"^cuda[^=]*= '([^']+)'", text, re.M)
    found["torch"] = f"{version[1] if version else 'of unknown version'}, CUDA {cuda[1] if cuda else 'none'}"
    found["torch_folder"] = folder
    found["libraries"].append(folder + "/lib")
for folder in folders("nvidia"):
    found["libraries"] += sorted(str(p) for p in pathlib.Path(folder).glob("*/lib"))
print(json.dumps(found))
"""

# A library is loaded by a process of its own: what is wrong with it then ends nobody else.
OF_LIBRARY = """
import ctypes, sys
try:
    library = ctypes.CDLL(sys.argv[1])
except OSError as error:
    sys.exit(str(error))
if len(sys.argv) > 2:
    version = ctypes.c_int()
    getattr(library, sys.argv[2])(ctypes.byref(version))
    print(version.value)
"""

# What the driver says where its tools are not, as in a container.
OF_DRIVER = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
count, name = ctypes.c_int(), ctypes.create_string_buffer(256)
if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
    for number in range(count.value):
        driver.cuDeviceGetName(name, len(name), number)
        print(name.value.decode())
"""


def ask(command):
    """A command's standard output, empty where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def devices():
    """What nvidia-smi lists; the older ones know less."""
    fields = ["name", "driver_version", "memory.total", "compute_cap", "mig.mode.current"]
    for asked in (fields, fields[:3]):
        listed = ask(["nvidia-smi", f"--query-gpu={','.join(asked)}", "--format=csv,noheader"])
        if listed:
            return [dict(zip(asked, re.split(r",\s*", line))) for line in listed.splitlines()]
    return [{"name": name} for name in ask([sys.executable, "-c", OF_DRIVER]).splitlines()]


def visible(listed):
    """How many of the listed devices a program sees."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return len(listed) if named is None else len([name for name in named.split(",") if name])


def why_not_loaded(library):
    """Empty if the library loads."""
    try:
        done = subprocess.run([sys.executable, "-c", OF_LIBRARY, library], capture_output=True, text=True, timeout=ASK_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"ended with {done.returncode}"


def nccl_version(library):
    """As ncclGetVersion gives it; 0 where it does not load."""
    text = ask([sys.executable, "-c", OF_LIBRARY, str(library), "ncclGetVersion"])
    return int(text) if text.isdigit() else 0


def nccl_libraries(folders):
    """Every libnccl.so.2 that a process may find, the wheel's first: it is the one that libtorch loads."""
    system = re.findall(r"libnccl\.so\.2 .*=> (\S+)", ask(["ldconfig", "-p"]) or ask(["/sbin/ldconfig", "-p"]))
    roots = [os.environ.get("NCCL_ROOT", ""), os.environ.get("CUDA_HOME", "/usr/local/cuda")]
    places = [f"{folder}/libnccl.so.2" for folder in folders] + system
    places += [f"{root}/{lib}/libnccl.so.2" for root in roots if root for lib in ("lib", "lib64")]
    # By what they are: folders of a toolkit have several names.
    return list({os.path.realpath(place): place for place in reversed(places) if os.path.exists(place)}.values())[::-1]


def tool(name):
    try:
        return find_tool(name)
    except Missing:
        return None


def memory_gib():
    found = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return round(int(found[1]) / (1 << 20), 1) if found else None


def interfaces():
    folder = pathlib.Path("/sys/class/net")
    return sorted(one.name for one in folder.iterdir()) if folder.exists() else []


def header(name, prefixes):
    return next((str(folder) for prefix in [*prefixes, "/usr", "/usr/local"]
                 if (folder := pathlib.Path(prefix) / "include" / name).exists()), None)


def release():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def collect(options):
    """As one flat dictionary, in the order in which it is told."""
    text = ask([options.python, "-c", OF_PYTHON])
    python = json.loads(text) if text else {"python": None, "torch": None, "torch_folder": None, "libraries": []}
    libraries = nccl_libraries(python["libraries"])
    nvcc = tool("nvcc")
    found = re.search(r"release ([0-9.]+)", ask([nvcc, "--version"])) if nvcc else None
    return {
        "devices": devices(),
        "driver_library": why_not_loaded("libcuda.so.1") or "loads",
        "system": f"{release() or platform.system()}, {platform.release()}, glibc {os.confstr('CS_GNU_LIBC_VERSION').split()[-1]}",
        "cores": os.cpu_count(), "memory_gib": memory_gib(), "interfaces": interfaces(),
        "nvcc": f"{found[1]} at {nvcc}" if found else None,
        **{name.replace("-", "_"): tool(name) for name in ("compute-sanitizer", "cuobjdump")},
        **{name: shutil.which(name) for name in ("cmake", "ninja", "c++")},
        "googletest": header("gtest/gtest.h", options.prefixes), "abseil": header("absl/base/config.h", options.prefixes),
        **python,
        "nccl": [{"path": one, "version": nccl_version(one)} for one in libraries],
    }
