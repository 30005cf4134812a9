"""--pack: builds what is carried to a machine that has little but a GPU.

    bin/          programs, stripped; those of kernels need the driver alone
    source/       GoogleTest and Abseil's one header, for when these do not start there and are compiled there
    nccl/         an NCCL of few collectives, whose ranks may share a device
    ptxas.txt     what kernels take of a multiprocessor
    packed.json   what this is, and what was left out for want of what
"""
import json
import os
import pathlib
import re
import shutil

from gpu_check import commands, programs
from gpu_check.commands import Failed, Missing, find_tool
from gpu_check.options import EXIT_FAILED

BYTES_MAX = 64 << 20
BUILD_SECONDS = 7200
# Programs of the kernels bring their C++ library along, and name no library that they do not call. Those of the worker
# share libtorch's C++ library.
KERNEL_LINKS = "-static-libstdc++ -static-libgcc -Wl,--as-needed"
# libtorch's own needs are those of the machine it comes from.
WORKER_LINKS = "-Wl,--as-needed -Wl,--unresolved-symbols=ignore-in-shared-libs"
STATIC = ["-DTACTUS_STATIC_ABSEIL=ON", "-DZLIB_USE_STATIC_LIBS=ON"]
# Of targets that are no programs.
FILES = {"tactus_sdk_c": programs.LIBRARY}
# What cuda/nccl.cc calls.
NCCL_FUNCTIONS = "AllReduce Sum f32 (RING|TREE) *|Broadcast RING *|Reduce Sum f32 RING *|AllGather RING *|SendRecv"
NO_NCCL = "NCCL's header and library (NCCL_ROOT)"
GOOGLETEST = pathlib.Path("/usr/src/googletest")


class Packing:
    def __init__(self, asked, root, folder):
        self.asked, self.root, self.folder = asked, root, folder
        self.into = asked.pack
        self.left_out = {}  # name -> what it lacks

    def run(self, command, environment=None, cwd=None):
        print(f"gpu-check: {' '.join(map(str, command))}", flush=True)
        ended = commands.run(command, BUILD_SECONDS, self.folder, "pack", environment, cwd or self.root)
        if ended.code != 0:
            print(ended.out[-8000:] + ended.err[-8000:])
            raise Failed(f"{command[0]} failed with {ended.code}")
        return ended

    def build(self, preset, links, targets, *flags, without_nccl):
        """Takes what was built; the build folder, and what the compilers said. without_nccl: what is left out then."""
        build = self.asked.build / preset
        configured = self.run(["cmake", "--preset", preset, "-S", self.root, "-B", build, "-DTACTUS_WERROR=OFF",
                               f"-DCMAKE_CUDA_COMPILER={find_tool('nvcc')}",
                               f"-DCMAKE_CUDA_ARCHITECTURES={self.asked.architectures}",
                               f"-DCMAKE_EXE_LINKER_FLAGS={links}", *flags]).out
        if "-- NCCL: /" not in configured:
            self.left_out[without_nccl] = NO_NCCL
            targets = [target for target in targets if target != without_nccl]
        said = self.run(["cmake", "--build", build, "-j", self.asked.jobs, "--target", *targets])
        for target in targets:
            places = (f"bin/{target}", f"tests/{target}", f"lib/{FILES.get(target)}")
            self.take(next(path for place in places if (path := build / place).exists()), "bin")
        return build, said.out + said.err

    def take(self, path, folder):
        """Copies a binary, without its symbols."""
        target = self.into / folder / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        self.run(["strip", "-o", target, os.path.realpath(path)])

    def kernels(self):
        build, said = self.build("kernels", KERNEL_LINKS, programs.OF_KERNELS, "-DCMAKE_CUDA_FLAGS=-Xptxas=-v",
                                 without_nccl="bench_nccl")
        # Of kernels that were compiled in an earlier call nothing is said again.
        kept = build / "ptxas.txt"
        if "ptxas info" in said:
            kept.write_text("\n".join(line for line in said.splitlines() if "ptxas" in line or "bytes stack" in line) + "\n")
        if kept.exists():
            shutil.copy(kept, self.into)

    def trace(self):
        build = self.asked.build / "kernels"
        if "device_trace" not in self.run(["cmake", "--build", build, "--target", "help"]).out:
            raise Missing("CUPTI of the toolkit")
        self.run(["cmake", "--build", build, "--target", "device_trace"])
        self.take(build / "bin" / programs.TRACE, "bin")

    def sources(self):
        for part in ("googletest", "googlemock"):
            for kept in ("CMakeLists.txt", "cmake", "include", "src"):
                source, target = GOOGLETEST / part / kept, self.into / "source/googletest" / part / kept
                if not source.exists():
                    raise Missing(f"{source} (googletest)")
                target.parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        shutil.copy(GOOGLETEST / "CMakeLists.txt", self.into / "source/googletest")
        # The header that is included, and what it includes.
        main = self.folder / "absl.cc"
        main.write_text('#include "absl/base/thread_annotations.h"\n')
        for header in re.findall(r"\S*/(absl/\S+\.h)", self.run(["c++", "-M", main]).out):
            target = self.into / "source/include" / header
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(pathlib.Path("/usr/include") / header, target)

    def library(self):
        """Programs bring their torch along; the library has none."""
        self.build("gpu", WORKER_LINKS, FILES, "-DTACTUS_TORCH=OFF", "-DTACTUS_TESTS=OFF", *STATIC,
                   without_nccl=f"NCCL in {programs.LIBRARY}")

    def worker(self):
        if self.asked.torch is None:
            raise Missing("a libtorch with CUDA (--torch)")
        self.build("gpu", WORKER_LINKS, programs.OF_WORKER, "-DTACTUS_TORCH=ON", "-DTACTUS_TESTS=ON",
                   f"-DCMAKE_PREFIX_PATH={self.asked.torch}", *STATIC, without_nccl="NCCL in tactus-worker")

    def cuda_headers(self):
        """A folder of the toolkit's headers without the NCCL of some: they would be found before those that are built."""
        folder = self.asked.build / "cuda-headers"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for header in (pathlib.Path(find_tool("nvcc")).resolve().parents[1] / "include").iterdir():
            if not header.name.startswith("nccl"):
                (folder / header.name).symlink_to(header)
        return folder

    def nccl(self):
        source = self.asked.nccl_source
        if source is None:
            raise Missing("NCCL's source, 2.30 or newer (--nccl-source)")
        build = self.asked.build / "nccl"
        number = self.asked.architectures.split("-")[0].split(";")[0]
        self.run(["make", "-C", source, "-j", self.asked.jobs, "src.build", f"BUILDDIR={build}",
                  f"CUDA_HOME={pathlib.Path(find_tool('nvcc')).parents[1]}", f"CUDA_INC={self.cuda_headers()}",
                  f"ONLY_FUNCS={NCCL_FUNCTIONS}",
                  f"NVCC_GENCODE=-gencode=arch=compute_{number},code=sm_{number}"])
        self.take(build / "lib/libnccl.so.2", "nccl")

    def optional(self, names, make):
        try:
            make()
        except (Missing, Failed) as why:
            self.left_out |= {name: str(why) for name in names}

    def files(self):
        return sorted((path for path in self.into.rglob("*") if path.is_file()), key=lambda path: -path.stat().st_size)

    def tell(self, commit):
        (self.into / "packed.json").write_text(json.dumps(
            {"commit": commit, "architectures": self.asked.architectures, "left_out": self.left_out}, indent=1) + "\n")
        files = self.files()
        whole = sum(path.stat().st_size for path in files)
        for path in files[:12]:
            print(f"gpu-check: {path.stat().st_size / (1 << 20):6.1f} MiB {path.relative_to(self.into)}")
        for name, why in self.left_out.items():
            print(f"gpu-check: left out: {name}: needs {why}")
        fits = whole <= BYTES_MAX
        print(f"gpu-check: packed {len(files)} files, {whole / (1 << 20):.1f} MiB of at most {BYTES_MAX >> 20}, in "
              f"{self.into}" + ("" if fits else ": TOO MUCH"))
        return 0 if fits else EXIT_FAILED


def pack(asked, root, folder, commit):
    packing = Packing(asked, root, folder)
    if packing.into.exists() and any(packing.into.iterdir()) and not (packing.into / "packed.json").exists():
        print(f"gpu-check: {packing.into} is not empty, and not of an earlier --pack")
        return EXIT_FAILED
    shutil.rmtree(packing.into, ignore_errors=True)
    packing.into.mkdir(parents=True)
    try:
        packing.kernels()
        packing.sources()
    except (Missing, Failed) as why:
        print(f"gpu-check: nothing was packed: {'needs ' if isinstance(why, Missing) else ''}{why}")
        return EXIT_FAILED
    packing.optional([programs.TRACE], packing.trace)
    packing.optional([programs.LIBRARY], packing.library)
    packing.optional(programs.OF_WORKER, packing.worker)
    packing.optional(["libnccl.so.2"], packing.nccl)
    return packing.tell(commit)
