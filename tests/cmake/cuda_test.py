#!/usr/bin/env python3
"""What cmake makes of the NCCLs and compilers of CUDA that it may find, in projects of their own with made-up files.

usage: cuda_test.py SOURCE_ROOT
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()

NCCL = """cmake_minimum_required(VERSION 3.25)
project(found NONE)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
set(TACTUS_HAVE_CUDA ON)
set(TACTUS_torch_cuda ON)
set(torch_folder ${CMAKE_SOURCE_DIR}/site/torch/lib)
set(CUDAToolkit_INCLUDE_DIRS ${CMAKE_SOURCE_DIR}/toolkit/include)
set(CUDAToolkit_LIBRARY_DIR ${CMAKE_SOURCE_DIR}/toolkit/lib)
add_library(CUDA::cudart_static INTERFACE IMPORTED)
include(${TACTUS}/cmake/Nccl.cmake)
"""

FLEET = """cmake_minimum_required(VERSION 3.25)
project(found NONE)
set(TACTUS_CUDA OFF)
include(${TACTUS}/cmake/Cuda.cmake)
tactus_cuda_fleet(${CMAKE_SOURCE_DIR}/nvcc fleet)
message(STATUS "fleet: ${fleet}")
"""


class Project:
    def __init__(self, test, lists):
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.write("CMakeLists.txt", lists)

    def write(self, name, text, mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def header(self, folder, version):
        names = zip(("MAJOR", "MINOR", "PATCH"), version.split("."))
        self.write(folder + "/nccl.h", "".join(f"#define NCCL_{name} {number}\n" for name, number in names))

    def library(self, path, version):
        self.write(path, f"\0\0NCCL version {version}+cuda13.0\0")

    def configure(self):
        done = subprocess.run(
            ["cmake", "-G", "Ninja", "-S", self.root, "-B", self.root / "build", f"-DTACTUS={ROOT}"],
            capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + " ".join(done.stderr.split())


class NcclTest(unittest.TestCase):
    def setUp(self):
        self.project = Project(self, NCCL)
        (self.project.root / "site/torch/lib").mkdir(parents=True)
        self.project.header("toolkit/include", "2.28.9")
        self.project.library("toolkit/lib/libnccl.so", "2.28.9")

    def test_the_header_is_that_of_the_library_which_came_with_libtorch(self):
        self.project.header("site/nvidia/nccl/include", "2.27.5")
        self.project.library("site/nvidia/nccl/lib/libnccl.so.2", "2.27.5")

        code, said = self.project.configure()

        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"NCCL: \S*/nvidia/nccl/lib/libnccl.so.2 \(2.27.5\), compiled for 2.27.5")

    def test_a_header_newer_than_the_library_is_refused_with_both(self):
        self.project.library("site/nvidia/nccl/lib/libnccl.so.2", "2.27.5")

        code, said = self.project.configure()

        self.assertNotEqual(code, 0)
        self.assertRegex(said, r"toolkit/include/nccl.h is of version 2.28.9, newer than \S*libnccl.so.2, which is 2.27.5")

    def test_an_older_header_will_do(self):
        self.project.library("site/nvidia/nccl/lib/libnccl.so.2", "2.30.7")

        code, said = self.project.configure()

        self.assertEqual(code, 0, said)
        self.assertIn("(2.30.7), compiled for 2.28.9", said)

    def test_without_one_beside_libtorch_it_is_the_toolkits(self):
        code, said = self.project.configure()

        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"NCCL: \S*/toolkit/lib/libnccl.so \(2.28.9\), compiled for 2.28.9")


class FleetTest(unittest.TestCase):
    def fleet(self, known):
        project = Project(self, FLEET)
        words = "".join(f"echo compute_{architecture}\n" for architecture in known)
        project.write("nvcc", '#!/bin/sh\n[ "$1" = --list-gpu-arch ] || exit 1\n' + words, 0o755)
        code, said = project.configure()
        self.assertEqual(code, 0, said)
        return next(line for line in said.splitlines() if "fleet:" in line).split("fleet: ")[1]

    def test_kernels_are_for_all_from_the_t4_to_blackwell(self):
        known = [75, 80, 86, 87, 88, 89, 90, 100, 110, 103, 120, 121]
        self.assertEqual(self.fleet(known), "75-real;80-real;86-real;89-real;90-real;100-real;120")

    def test_an_older_compiler_ends_with_what_it_knows(self):
        self.assertEqual(self.fleet([50, 60, 70, 75, 80, 86, 89, 90]), "75-real;80-real;86-real;89-real;90")


unittest.main()
