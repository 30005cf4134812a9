"""Steps that build all of the worker's side, on a host that has what this takes."""
import re

from gpu_check.commands import Failed, Missing, find_tool
from gpu_check.work import Step

TARGETS = ["all", "bench_kernels", "bench_nccl"]
# What cmake has to say of what it found, and what it stands for.
TAKEN = {"CUDA": (r"^-- CUDA: [0-9].*", "the CUDA toolkit"), "NCCL": (r"^-- NCCL: /.*", "NCCL"),
         "libtorch": (r"^-- libtorch: with CUDA.*", "a libtorch with CUDA")}


def configure(work):
    for name in ("cmake", "ninja", "c++"):
        if not work.facts[name]:
            raise Missing(name)
    find_tool("nvcc")
    prefixes = [str(prefix) for prefix in work.options.prefixes]
    if work.facts["torch_folder"]:
        prefixes.append(work.facts["torch_folder"] + "/share/cmake")
    # Warnings of a compiler that we have not met are no reason to stop.
    said = work.run(["cmake", "--preset", "gpu", "-B", work.options.build, "-DTACTUS_WERROR=OFF",
                     f"-DCMAKE_PREFIX_PATH={';'.join(prefixes)}"]).out
    for name, (line, what) in TAKEN.items():
        if not re.search(line, said, re.M):
            found = re.search(f"^-- {name}: .*", said, re.M)
            raise Failed(f"cmake did not take {what}: {found[0] if found else 'it says nothing of it'}")
    return "; ".join(re.search(line, said, re.M)[0][3:] for line, _ in TAKEN.values())


def build(work):
    if not (work.options.build / "build.ninja").exists():
        raise Missing(f"a configured {work.options.build}")
    work.run(["cmake", "--build", work.options.build, "-j", work.options.jobs, "--target", *TARGETS])


STEPS = [Step("configure", None, 600, 600, configure, device=False), Step("build", None, 5400, 5400, build, device=False)]
