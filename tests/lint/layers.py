#!/usr/bin/env python3
"""Holds every #include against the layering: a folder may include only folders in the DEPS of its CMakeLists.txt
(and theirs), each outside library only in its home, and the pure layers none of the outside world.

usage: layers.py SOURCE_ROOT        exit 1 and one line a violation:  file:line: not allowed in FOLDER: #include ...
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
# Layers that decide: standard library and layers below alone, nothing of clocks, chance, threads or files.
PURE = {"base", "policies", "protocol", "cuda/ops", "agent/engine", "agent/engine/combine", "agent/engine/samples", "agent/life", "agent/subset", "coordinator/job", "coordinator/delivery", "session", "simulator"}
PURE_FORBIDDEN = {"random", "filesystem", "fstream", "iostream", "thread", "mutex", "condition_variable", "future",
                  "unordered_map", "unordered_set", "ctime", "semaphore", "atomic"}
PURE_TOKENS = re.compile(r"_clock::now|\bgetenv\b|\brand\(|\bstd::cout\b|\bstd::cerr\b")
# Outside libraries and the folders that may include them; in headers only the first group's homes may show them.
# "client/" names the rooms below it, too.
HOMES = {
    r"grpcpp/|google/protobuf/|google/rpc/|tactus/": ["coordinator", "coordinator/files", "coordinator/page", "coordinator/service",
                                                      "coordinator/shell", "coordinator/spec", "coordinator/telemetry",
                                                      "agent/daemon", "client/", "runtime", "identity", "coordinator/access"],
    r"torch/|ATen/|c10/": ["agent/model", "agent/model/parallel"],
    r"sqlite3\.h": ["coordinator/store"],
    r"libpq-fe\.h": ["coordinator/store"],
    r"curl/": ["coordinator/bucket"],
    r"CLI/|yaml-cpp/": ["client/cli", "client/verbs", "client/yaml", "coordinator", "agent/daemon", "runtime"],
    r"prometheus/": ["metrics"],
    r"openssl/": ["runtime", "identity", "crypto", "agent/collective"],
    r"cuda_runtime|cuda_fp16|cuda_bf16|nccl|cublas": ["cuda", "cuda/ops"],
    r"boost/context/": ["fibers"],
    r"seccomp\.h": ["agent/box"],
    r"absl/|boost/(?!context/)|spdlog/|fmt/": ["threads", "agent/data", "agent/tensors", "agent/model", "agent/model/parallel", "agent/worker", "agent/torchscript", "sdk", "agent/box", "agent/daemon", "runtime", "identity", "metrics", "client/",
                                   "coordinator", "coordinator/access", "coordinator/backup", "coordinator/bucket", "coordinator/codec", "coordinator/files", "coordinator/page",
                                   "coordinator/service", "coordinator/shell", "coordinator/spec", "coordinator/store",
                                   "coordinator/tape", "coordinator/telemetry"],
    # Elsewhere a lock is threads::Mutex. libtorch's own are taken as they are.
    r"(mutex|condition_variable|shared_mutex)$": ["threads", "agent/model"],
    r"nlohmann/": ["coordinator/access", "agent/tensors", "agent/model", "agent/worker", "sdk", "agent/daemon", "client/", "coordinator/codec", "coordinator/store",
                   "coordinator/files", "coordinator/service", "coordinator/shell", "coordinator/tape", "coordinator/telemetry",
                   "runtime"],
}
# CUDA's headers, and ours that include them: the rest of the tree sees CUDA through plain headers alone, so
# that it builds without the toolkit.
CUDA_HEADER = re.compile(r"cuda_runtime|cuda_fp16|cuda_bf16|cublas|.*\.cuh$")


def may_see_cuda(path, folder):
    """Kernels and what they share, in cuda/ops; in cuda/ the bodies."""
    return path.suffix in (".cu", ".cuh") or (folder == "cuda" and path.suffix == ".cc")


def folder_deps():
    """Folder -> folders it may include, transitively, from the CMakeLists.txt files."""
    direct, folder_of = {}, {}
    for lists in ROOT.glob("**/CMakeLists.txt"):
        folder = str(lists.parent.relative_to(ROOT))
        if folder == "." or folder.split("/")[0] in ("build", "tests"):
            continue
        text = re.sub(r"#.*", "", lists.read_text())
        for name, body in re.findall(r"tactus_(?:library|binary)\(\s*([\w-]+)([^)]*)\)", text):
            folder_of[name] = folder
            deps = re.split(r"\b(?:PRIVATE_)?DEPS\b", body)[1:]
            direct.setdefault(folder, set()).update(re.findall(r"tactus::(\w+)", " ".join(deps)))
    allowed = {}
    for folder in direct:
        seen, todo = {folder}, list(direct[folder])
        while todo:
            below = folder_of.get(todo.pop())
            if below and below not in seen:
                seen.add(below)
                todo += direct.get(below, [])
        allowed[folder] = seen
    return allowed


def violations(path, folder, allowed, folders):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if folder in PURE and PURE_TOKENS.search(line.split("//")[0]):
            yield number, line.strip()
        match = re.match(r'\s*#include\s+([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        target = match.group(2)
        if CUDA_HEADER.match(target) and not may_see_cuda(path, folder):
            yield number, line
            continue
        ours = str(pathlib.PurePosixPath(target).parent)
        if match.group(1) == '"' and ours in folders:
            if ours not in allowed[folder]:
                yield number, line
            continue
        if folder in PURE and target in PURE_FORBIDDEN:
            yield number, line
        for pattern, homes in HOMES.items():
            if re.match(pattern, target) and folder not in homes and folder.split("/")[0] + "/" not in homes:
                yield number, line


def main():
    allowed = folder_deps()
    failed = 0
    for folder in sorted(allowed):
        for path in sorted((ROOT / folder).iterdir()):
            if path.suffix not in (".h", ".cc", ".cu", ".cuh"):
                continue
            for number, line in violations(path, folder, allowed, allowed.keys()):
                print(f"{path.relative_to(ROOT)}:{number}: not allowed in {folder}: {line}")
                failed += 1
    if not allowed:
        print("layers: no tactus_library found")
        failed += 1
    sys.exit(1 if failed else 0)


main()
