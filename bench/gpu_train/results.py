"""What was measured, as a table and as JSON."""
import dataclasses
import statistics

OURS = "tactus-worker"
SYSTEMS = ["PyTorch, foreach", "PyTorch, fused", "DistributedDataParallel"]


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    optimizer: str
    precision: str
    devices: int
    batch: int  # of each device

    def __str__(self):
        return f"{self.model}, {self.optimizer}, {self.precision}, {self.devices} x {self.batch}"


def spread(values, digits):
    """'median (minimum to maximum)'."""
    return (f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})")


class Results:
    def __init__(self):
        self.cases = []
        self.rates = {}  # (case, system) -> samples a second, one a run
        self.failed_for = {}  # (case, system) -> why
        self.missing_for = {}  # (case, system) -> why PyTorch does not offer it
        self.notes = []
        self.versions = {}
        self.tf32 = "default"
        self.made_up = []

    def case(self, *what):
        self.cases.append(Case(*what))
        return self.cases[-1]

    def add(self, case, system, rate):
        self.rates.setdefault((case, system), []).append(rate)

    def fail(self, case, system, reason):
        self.failed_for[case, system] = reason

    def miss(self, case, system, reason):
        self.missing_for[case, system] = reason

    def note(self, text):
        self.notes.append(text)

    def failed(self, case, system):
        return (case, system) in self.failed_for

    def missing(self, case, system):
        return (case, system) in self.missing_for

    def failures(self):
        return self.failed_for

    def ratios(self, case, system):
        """Ours over theirs, run by run; empty where either has no figure."""
        ours, theirs = self.rates.get((case, OURS), []), self.rates.get((case, system), [])
        return [mine / other for mine, other in zip(ours, theirs)]

    def cell(self, case, system):
        if (case, system) in self.failed_for:
            return f"failed: {self.failed_for[case, system]}"
        if (case, system) in self.missing_for:
            return f"not offered: {self.missing_for[case, system]}"
        rates = self.rates.get((case, system))
        return spread(rates, 0) if rates else ""

    def rows(self):
        for case in self.cases:
            for system in SYSTEMS:
                their = self.cell(case, system)
                if not their:
                    continue
                ratios = self.ratios(case, system)
                yield [case.model, case.optimizer, case.precision, str(case.devices), str(case.batch), system, their,
                       self.cell(case, OURS), spread(ratios, 3) if ratios else ""]

    def print(self):
        found = self.versions
        on = f"{found['device']}, CUDA {found['cuda']}, cuDNN {found['cudnn']}, NCCL {found['nccl']}" \
            if "device" in found else "CPU, tiny models: these figures show only that it works"
        print(f"Device: {on}; PyTorch {found.get('torch')}")
        if "device" in found:
            print(f"TF32: {self.tf32}, for all alike (PyTorch says: matmul {found['tf32_matmul']}, cuDNN "
                  f"{found['tf32_cudnn']}{'; overridden by NVIDIA_TF32_OVERRIDE=0' if self.tf32 == 'off' else ''})")
        if self.made_up:
            print(f"Made-up data: {', '.join(self.made_up)}")
        for note in self.notes:
            print(note)
        header = ["model", "optimizer", "precision", "devices", "batch", "peer", "peer samples/s",
                  "tactus-worker samples/s", "ratio, median (min to max)"]
        print("\n| " + " | ".join(header) + " |\n|" + " --- |" * len(header))
        for row in self.rows():
            print("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |")

    def as_json(self):
        measured = [{**dataclasses.asdict(case), "system": system, "samples_per_second": rates}
                    for (case, system), rates in self.rates.items()]
        told = [{**dataclasses.asdict(case), "system": system, kind: reason}
                for kind, reasons in (("failed", self.failed_for), ("not_offered", self.missing_for))
                for (case, system), reason in reasons.items()]
        return {"versions": self.versions, "tf32": self.tf32, "made_up_data": self.made_up, "notes": self.notes,
                "measured": measured, "without_a_figure": told}
