"""What kernels take of a multiprocessor, as the compiler and the machine code say it."""
import re

KERNEL = re.compile(r"Compiling entry function '([^']+)'")
OF_KERNEL = re.compile(r"Function properties for (\S+)")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
IN_SASS = re.compile(r"^\s*Function : (\S+)", re.M)
ACCESS = re.compile(r"\b(?:LDG|STG)\.[\w.]*")


def from_ptxas(text):
    """{kernel: {registers, stack_bytes, spilled_bytes}} of what `nvcc -Xptxas -v` says."""
    found, kernel = {}, None
    for line in text.splitlines():
        if match := KERNEL.search(line) or OF_KERNEL.search(line):
            kernel = match[1]
        elif kernel and (match := SPILLS.search(line)):
            stack, stores, loads = map(int, match.groups())
            found.setdefault(kernel, {}).update(stack_bytes=stack, spilled_bytes=stores + loads)
        elif kernel and (match := USED.search(line)):
            found.setdefault(kernel, {})["registers"] = int(match[1])
    return {kernel: said for kernel, said in found.items() if "registers" in said}


def from_sass(text):
    """{kernel: {accesses, accesses_of_16_bytes}} of what `cuobjdump --dump-sass` says: to global memory."""
    parts = IN_SASS.split(text)
    found = {}
    for kernel, code in zip(parts[1::2], parts[2::2]):
        accesses = ACCESS.findall(code)
        found[kernel] = {"accesses": len(accesses), "accesses_of_16_bytes": sum(".128" in one for one in accesses)}
    return found


def merged(*found):
    every = {}
    for one in found:
        for kernel, said in one.items():
            every.setdefault(kernel, {}).update(said)
    return every


def name_behind(kernel, digits):
    """The name of ours whose length the digits say, or their last ones: a hash may end right before them."""
    for begin in range(digits.start(), digits.end()):
        length = int(kernel[begin:digits.end()])
        name = kernel[digits.end():digits.end() + length]
        if len(name) == length and re.fullmatch(r"[A-Z][A-Za-z0-9]{3,}", name):
            return name
    return ""


def short(kernel):
    """Of a mangled name the types and functions of ours, which are what tells kernels apart."""
    names = [name for digits in re.finditer(r"\d+", kernel) if (name := name_behind(kernel, digits))]
    return " ".join(list(dict.fromkeys(names))[:3]) or kernel


def table(found):
    """Markdown: first what spills, then by registers."""
    lines = ["| kernel | registers | stack, bytes | spilled, bytes | of global accesses 16 bytes wide |",
             "| --- | --- | --- | --- | --- |"]
    for kernel, said in sorted(found.items(), key=lambda item: (-item[1].get("spilled_bytes", 0),
                                                                -item[1].get("registers", 0), item[0])):
        wide = f"{said['accesses_of_16_bytes']} of {said['accesses']}" if "accesses" in said else ""
        cells = [said.get(name, "") for name in ("registers", "stack_bytes", "spilled_bytes")]
        lines.append(f"| {short(kernel)} | {cells[0]} | {cells[1]} | {cells[2]} | {wide} |")
    return "\n".join(lines)
