"""Where the programs of the steps come from: built here, carried, or compiled on the machine for want of a carried one
that starts."""
import json
import os
import pathlib
import re

from gpu_check import commands
from gpu_check.commands import Failed, Missing

OF_KERNELS = ("cuda_gpu_test", "bench_kernels", "bench_nccl")
OF_WORKER = ("tactus-worker", "model_test", "parallel_model_test", "torchscript_test")
# Loaded, not started: by the driver, and by programs of PyTorch.
TRACE = "libdevice_trace.so"
LIBRARY = "libtactus_sdk.so"
EXIT_USAGE = 64   # of those that know no --help: they have started
START_SECONDS = 60  # libtorch alone takes long to load on a machine that has just started
NO_LIBRARY = re.compile(r"error while loading shared libraries: (\S+): (.*)")


def question(name):
    """What a program answers without a device."""
    return "--gtest_list_tests" if name.endswith("_test") else "--help"


def why_it_does_not_start(ended):
    found = NO_LIBRARY.search(ended.err)
    if found:
        return f"{found[1]} ({found[2]})"
    lines = (ended.err or ended.out).strip().splitlines()
    return f"a start: it ended with {ended.code}" + (f", {lines[-1]}" if lines else "")


class Programs:
    def __init__(self, options, folder, facts):
        self.options, self.folder, self.facts = options, folder, facts
        self.compiled = folder / "compiled"
        self.known = {}  # name -> path, or why there is none

    def packed(self):
        """What --pack says of what was carried."""
        path = self.options.carried / "packed.json" if self.options.carried else None
        return json.loads(path.read_text()) if path and path.exists() else {}

    def places(self, name):
        folders = [self.options.carried / "bin"] if self.options.carried else []
        for build in (self.compiled, self.options.build):
            folders += [build / "bin", build / "tests", build / "lib"]
        return [folder / name for folder in folders if (folder / name).exists()]

    def nccl_libraries(self):
        """The machine's own, and behind them the one that was carried."""
        carried = self.options.carried / "nccl/libnccl.so.2" if self.options.carried else None
        return [one["path"] for one in self.facts["nccl"]] + ([str(carried)] if carried and carried.exists() else [])

    def environment(self, name, nccl=None):
        """nccl: the libnccl.so.2 for it; default the first that there is."""
        folders = list(self.facts["libraries"]) if name in OF_WORKER else []
        libraries = self.nccl_libraries()
        if nccl or libraries:
            folders.insert(0, str(pathlib.Path(nccl or libraries[0]).parent))
        inherited = [folder for folder in [os.environ.get("LD_LIBRARY_PATH")] if folder]
        return {"LD_LIBRARY_PATH": ":".join(folders + inherited)} if folders else {}

    def try_one(self, path):
        """Empty if it starts."""
        try:
            ended = commands.run([path, question(path.name)], START_SECONDS, self.folder, f"start-{path.name}",
                                 self.environment(path.name))
        except (Missing, commands.OutOfTime) as why:
            return str(why)
        return "" if ended.code in (0, EXIT_USAGE) else why_it_does_not_start(ended)

    def find(self, name):
        """The first that starts, and why the others do not."""
        if name not in self.known:
            reasons = []
            for path in self.places(name):
                reasons.append(self.try_one(path))
                if not reasons[-1]:
                    break
            found = path if reasons and not reasons[-1] else None
            self.known[name] = (found, reasons[0] if reasons else f"{name} ({self._why_absent(name)})")
        return self.known[name]

    def _why_absent(self, name):
        left_out = self.packed().get("left_out", {})
        if name in left_out:
            return f"not carried: {left_out[name]}"
        return "neither carried nor built" if self.options.staged else "not built"

    def need(self, name):
        """Its path. Throws Missing."""
        path, why = self.find(name)
        if path is None:
            raise Missing(why if why.startswith(name) else f"{why}, without which {name} does not start")
        return path

    def need_library(self, name):
        """TRACE, of bench/device_trace/, or LIBRARY, of sdk/. Throws Missing."""
        path = next(iter(self.places(name)), None)
        if path is None:
            raise Missing(f"{name} ({self._why_absent(name)})")
        return path

    def started(self):
        """Of those that were carried: how many start, and the reasons of the others."""
        names = [name for name in OF_KERNELS + OF_WORKER if self.places(name)]
        reasons = {name: why for name in names if (why := self.find(name)[1]) and self.find(name)[0] is None}
        return names, reasons

    def compile_kernels(self, run, root):
        """Compiles what kernels need, from the tree and the sources that were carried. Throws Missing and Failed."""
        for name in ("cmake", "ninja", "c++"):
            if not self.facts.get(name):
                raise Missing(name)
        nvcc = commands.find_tool("nvcc")
        source = self.options.carried / "source" if self.options.carried else pathlib.Path("/")
        given = {"TACTUS_GOOGLETEST": source / "googletest", "TACTUS_ABSEIL": source / "include"}
        flags = [f"-D{name}={path}" for name, path in given.items() if path.exists()]
        library = next(iter(self.nccl_libraries()), None)
        if library:
            flags.append(f"-DNCCL_LIBRARY={library}")
            include = pathlib.Path(library).parent.parent / "include"
            flags += [f"-DNCCL_INCLUDE_DIR={include}"] if (include / "nccl.h").exists() else []
        run(["cmake", "--preset", "kernels", "-S", root, "-B", self.compiled, f"-DCMAKE_CUDA_COMPILER={nvcc}",
             "-DCMAKE_CUDA_ARCHITECTURES=native", "-DTACTUS_WERROR=OFF", *flags], cwd=root)
        targets = OF_KERNELS if library else OF_KERNELS[:2]
        run(["cmake", "--build", self.compiled, "-j", self.options.jobs, "--target", *targets], cwd=root)
        self.known.clear()
        for name in targets:
            if self.find(name)[0] is None:
                raise Failed(f"{name} was compiled and does not start: {self.find(name)[1]}")
