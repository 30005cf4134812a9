"""The steps, in the order in which they run: what is quick and sure first, so that a deadline cuts off the least."""
import json
import re

from gpu_check import facts, registers
from gpu_check.commands import Failed, Missing, find_tool
from gpu_check.programs import LIBRARY, TRACE
from gpu_check.work import Step

EXIT_NO_DEVICE = 69  # of our benchmarks
# What is not sanitized: buffers beyond 2^31 elements take too long, and tests that start processes are not followed.
NOT_SANITIZED = "-LargeBufferTest.*:*DeathTest.*"
# Quickly: one test or a few of each kernel that has threads work together.
QUICKLY_SANITIZED = "*CaseTest.*:Shifts/*"
SIZES = "16,64,256"           # MiB, where minutes count
SHARED_DEVICE_FROM = 23000    # the NCCL whose ranks may share a device
# Of the cases of bench_nccl, the limit of a step that waits for others.
NCCL_SECONDS = {"alone": 20, "incomplete": 1, "refused": 20, "pair": 20, "killed": 5}


def tests_remark(ended):
    """Of what GoogleTest says at its end."""
    counts = {what.lower(): int(count) for what, count in re.findall(r"\[  (PASSED|SKIPPED) *\] (\d+) test", ended.out)}
    names = re.findall(r"^\[  FAILED  \] ([\w./]+)(?:,|$)", ended.out.rpartition("[  PASSED  ]")[2], re.M)
    told = [f"{count} {what}" for what, count in counts.items()]
    if names:
        told.append(f"{len(names)} failed: {', '.join(names[:5])}" + (", ..." if len(names) > 5 else ""))
    return ", ".join(told)


def run_tests(work, name, *arguments, before=(), required=True):
    program = work.programs.need(name)
    environment = {"TACTUS_SOURCE": str(work.root), **work.programs.environment(name)}
    if required:  # a test that finds no device fails
        environment["TACTUS_REQUIRE_GPU"] = "1"
    ended = work.run([*before, program, *arguments], environment, allowed=range(-64, 256))
    remark = tests_remark(ended)
    if ended.code != 0:
        raise Failed(f"failed with {ended.code}" + (f": {remark}" if remark else ""))
    return remark


# --- everywhere -----------------------------------------------------------------------------------------------------

def tell_facts(work):
    devices = work.facts["devices"]
    return f"{len(devices)} x {devices[0]['name']}" if devices else f"no device; {work.facts['driver_library']}"


def carried(work):
    work.figures["packed"] = work.programs.packed()
    names, reasons = work.programs.started()
    if not names:
        raise Missing(f"programs in {work.options.carried}/bin")
    if reasons:
        raise Failed("; ".join(f"{name} needs {why}" for name, why in reasons.items()))
    return f"{len(names)} programs start: {', '.join(names)}"


def kernels_do_not_start(work):
    return work.options.staged and any(work.programs.find(name)[0] is None for name in ("cuda_gpu_test", "bench_kernels"))


def compile_kernels(work):
    reason = work.programs.find("cuda_gpu_test")[1] or work.programs.find("bench_kernels")[1]
    work.programs.compile_kernels(work.run, work.root)
    return f"what was carried needs {reason}"


# --- 1: kernels -----------------------------------------------------------------------------------------------------

def device(work):
    """Whether the machine's first device runs a kernel that was compiled for it."""
    program = work.programs.need("bench_kernels")
    ended = work.run([program, "--filter", "(none of them)"], allowed=(0, EXIT_NO_DEVICE))
    if ended.code == EXIT_NO_DEVICE:
        reason = ended.err.strip().splitlines()[-1].partition("no CUDA device: ")[2]
        if work.facts["driver_library"] != "loads":
            reason = work.facts["driver_library"]
        work.no_device = reason or "bench_kernels finds none"
        raise Missing(f"a CUDA device: {work.no_device}")
    return ended.out.strip().splitlines()[0] if ended.out.strip() else ""


def tests(work):
    return run_tests(work, "cuda_gpu_test")


def sanitize(tool):
    def run(work):
        sanitizer = find_tool("compute-sanitizer")
        chosen = (QUICKLY_SANITIZED if work.options.staged or work.options.quick else "") + NOT_SANITIZED
        remark = run_tests(work, "cuda_gpu_test", f"--gtest_filter={chosen}",
                           before=[sanitizer, "--tool", tool, "--error-exitcode", "1"])
        return ", ".join(filter(None, [remark, f"tests: {chosen}"]))
    return run


def bandwidth(work):
    program = work.programs.need("bench_kernels")
    figures = work.folder / "kernels.json"
    how = ["--quick"] if work.options.quick else ["--sizes", SIZES] if work.options.staged else []
    ended = work.run([program, "--graph", "--json", figures, *how])
    if figures.exists():
        work.figures["kernels"] = json.loads(figures.read_text())
    work.report.add_section("Kernels", ended.out)


def measure_registers(work):
    program = work.programs.need("cuda_gpu_test")
    carried_text = work.options.carried / "ptxas.txt" if work.options.carried else None
    of_ptxas = registers.from_ptxas(carried_text.read_text()) if carried_text and carried_text.exists() else {}
    try:
        of_sass = registers.from_sass(work.run([find_tool("cuobjdump"), "--dump-sass", program]).out)
    except Missing:
        if not of_ptxas:
            raise
        of_sass = {}
    found = registers.merged(of_ptxas, of_sass)
    if not found:
        raise Failed("no kernel was told of")
    work.figures["registers"] = found
    work.report.add_section("Registers", registers.table(found))
    spilling = [kernel for kernel, said in found.items() if said.get("spilled_bytes")]
    return f"{len(found)} kernels, {len(spilling)} that spill" + ("" if of_sass else "; no cuobjdump: accesses not told")


# --- 2: NCCL --------------------------------------------------------------------------------------------------------

def version_text(number):
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def shared_device_nccl(work):
    """An NCCL whose ranks may share a device. Throws Missing."""
    known = [(path, facts.nccl_version(path)) for path in work.programs.nccl_libraries()]
    for path, version in known:
        if version >= SHARED_DEVICE_FROM:
            return path
    found = ", ".join(version_text(version) for _, version in known) or "none"
    raise Missing(f"NCCL {version_text(SHARED_DEVICE_FROM)} or newer, whose ranks may share a device (found: {found}; "
                  "--pack --nccl-source carries one)")


def nccl(case):
    def run(work):
        program = work.programs.need("bench_nccl")
        environment = {"NCCL_DEBUG": "WARN"}
        if case in ("pair", "killed") and facts.visible(work.facts["devices"]) < 2:
            environment |= work.programs.environment("bench_nccl", shared_device_nccl(work))
            environment["NCCL_MULTI_RANK_GPU_ENABLE"] = "1"
        else:
            environment |= work.programs.environment("bench_nccl")
        ended = work.run([program, case, "--limit", NCCL_SECONDS[case]], environment, allowed=(0, 1, EXIT_NO_DEVICE))
        if ended.code == EXIT_NO_DEVICE:
            raise Missing(f"a CUDA device: {ended.err.strip().splitlines()[-1].partition('no CUDA device: ')[2]}")
        # NCCL's own words may be on standard output, too.
        line = next((line for line in reversed(ended.out.splitlines()) if line.startswith('{"case"')), None)
        if line is None:
            raise Failed(f"failed with {ended.code}")
        told = json.loads(line)
        work.figures.setdefault("nccl", {})[case] = told
        work.report.add_section(f"NCCL: {case}", "\n".join(f"- {name}: {value:g}" for name, value in told["figures"].items()))
        if not told["passed"]:
            raise Failed(f"failed: {told['said']}")
        return told["said"]
    return run


# --- 3 and 4: the worker --------------------------------------------------------------------------------------------

def model(work):
    return run_tests(work, "model_test", "--gtest_filter=*Gpu*")


def mesh(work):
    return run_tests(work, "parallel_model_test", "--gtest_filter=*Gpu*")


def worker(work):
    pair = facts.visible(work.facts["devices"]) > 1
    return run_tests(work, "torchscript_test", "--gtest_filter=*GpuWorker*" + (":*GpuPairWorker*" if pair else ""))


def need_worker(work):
    program = work.programs.need("tactus-worker")
    if not work.facts["torch"]:
        raise Missing(f"torch, which {work.options.python} does not have")
    return program


def told_by(work, title, name, script, *arguments, environment):
    """A script of bench/ that prints tables and writes its figures as JSON. Throws Failed."""
    figures = work.folder / f"{name}.json"
    ended = work.run([work.options.python, "-B", script, *arguments, "--json", figures], environment, allowed=(0, 1))
    if figures.exists():
        work.figures[name] = json.loads(figures.read_text())
    work.report.add_section(title, ended.out)
    if ended.code != 0:
        raise Failed(f"failed with {ended.code}")


def groups(work):
    program = need_worker(work)
    count = facts.visible(work.facts["devices"])
    transports, nccl_at_hand, remark = ["staged"], None, ""
    try:
        nccl_at_hand = shared_device_nccl(work) if count < 2 else None
        transports.insert(0, "nccl")
        if 1 < count < 4:
            remark = f"a mesh of four over NCCL takes one device or four, here are {count}"
    except Missing as missing:
        remark = f"staged alone; over NCCL it needs {missing}"
    told_by(work, "Groups", "groups", "bench/gpu-groups", "--worker", program, "--devices", max(count, 1), "--transports",
            ",".join(transports), environment=work.programs.environment("tactus-worker", nccl_at_hand))
    return remark


def programs(work):
    library = work.programs.need_library(LIBRARY)
    if not work.facts["torch"] or work.facts["torch"].endswith("CUDA none"):
        raise Missing(f"a torch with CUDA, which {work.options.python} does not have")
    told_by(work, "Programs", "programs", "bench/gpu-programs", "--library", library, "--devices",
            max(facts.visible(work.facts["devices"]), 1), environment=work.programs.environment(LIBRARY))


def edge(work):
    program = need_worker(work)
    told_by(work, "Edges of rounds", "edge", "bench/round-edge", "--worker", program, "--trace", work.programs.need_library(TRACE),
            "--keep", work.options.out, environment=work.programs.environment("tactus-worker"))


def train(work):
    program = need_worker(work)
    count = work.options.devices or facts.visible(work.facts["devices"])
    models = work.options.models or ("resnet18" if work.options.staged else None)
    options = [*(["--models", models] if models else []), *(["--quick"] if work.options.quick else []), *work.options.data]
    told_by(work, "Training", "train", "bench/gpu-train", "--worker", program, "--devices", count, *options,
            environment=work.programs.environment("tactus-worker"))



STEPS = [
    Step("facts", 0, 10, 60, tell_facts, device=False),
    Step("carried", 0, 120, 120, carried, device=False, when=lambda work: work.options.carried is not None),
    Step("compile", 1, 240, 600, compile_kernels, when=kernels_do_not_start),
    Step("device", 1, 60, 60, device),
    Step("tests", 1, 150, 1200, tests),
    Step("kernels", 1, 150, 1200, bandwidth),
    Step("registers", 1, 40, 120, measure_registers, device=False),
    Step("nccl-alone", 2, 60, 120, nccl("alone")),
    Step("nccl-incomplete", 2, 90, 120, nccl("incomplete")),
    Step("nccl-refused", 2, 60, 120, nccl("refused")),
    Step("nccl-pair", 2, 60, 120, nccl("pair")),
    Step("model", 3, 150, 1200, model),
    Step("mesh", 3, 60, 600, mesh),
    Step("worker", 3, 200, 1200, worker),
    Step("nccl-killed", 3, 60, 120, nccl("killed")),
    Step("groups", 3, 200, 600, groups),
    Step("programs", 3, 200, 600, programs),
    Step("edge", 4, 120, 600, edge),
    # Behind all others, as they take the longest.
    Step("memcheck", 1, 120, 2400, sanitize("memcheck")),
    Step("racecheck", 1, 120, 2400, sanitize("racecheck")),
    Step("train", 4, 560, 5400, train),
]
