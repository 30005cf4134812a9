"""What the benchmarks share: a cluster on this machine, tables, medians with their spread."""
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("TACTUS_BIN", str(ROOT / "build/release/bin"))
os.environ.setdefault("TACTUS_SOURCE", str(ROOT))
sys.path.insert(0, str(ROOT / "tests/integration"))
sys.dont_write_bytecode = True

from cluster import BIN, Cluster, Folder, tiny_spec, wait_until  # noqa: E402,F401  (path set above)


COORDINATOR = "10.99.0.254"  # the machine itself, as the shaped hosts see it

# A process that enters a network namespace by `ip netns exec` has a /sys without control groups. Agents look there for the
# quota of their host, as in a container, and would count the machine's cores.
_GROUPS = ["-t tmpfs none /sys/fs/cgroup", "-t cgroup -o cpu none /sys/fs/cgroup/cpu"]
_WITH_GROUPS = f"mount {_GROUPS[0]} && mkdir /sys/fs/cgroup/cpu && mount {_GROUPS[1]} && exec \"$@\""
if not pathlib.Path("/sys/fs/cgroup/cpu").is_dir():  # of the second kind
    _WITH_GROUPS = "mount -t cgroup2 none /sys/fs/cgroup && exec \"$@\""


def spread(values):
    """'median (minimum to maximum)'."""
    return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def reached(points, loss):
    """The x of the first point (x, loss) at or below `loss`, between it and the point before; None: never."""
    before = None
    for x, value in points:
        if value <= loss:
            if before is None or before[1] == value:
                return x
            share = (before[1] - loss) / (before[1] - value)
            return before[0] + share * (x - before[0])
        before = (x, value)
    return None


def table(header, rows):
    cells = [header] + [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for number, row in enumerate(cells):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def scrape(address):
    """The samples of /metrics: {'name{labels}': value}."""
    import urllib.request
    text = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
    samples = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            samples[name] = float(value)
    return samples


def processor_seconds(pid):
    """[s] of all threads, to the nanosecond. Those of threads that ended are missing: a coordinator's stay."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def resident_mib(pid, peak=False):
    key = "VmHWM" if peak else "VmRSS"
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    raise LookupError(pid)


class ShapedCluster(Cluster):
    """Agents on shaped hosts, one device each, which take programs; the coordinator on the machine itself."""

    def __init__(self, folder, shaped, rate, shares):
        super().__init__(folder)
        self.shaped = shaped
        os.environ["PYTHONPATH"] = str(ROOT / "python")  # of programs
        subprocess.run([shaped, "down"], check=True)
        subprocess.run([shaped, "up", "--rate", rate, "--cpu", shares], check=True, stdout=subprocess.DEVNULL)
        self.start_coordinator(f"{COORDINATOR}:0")
        for host in range(len(shares.split(","))):
            self.start_on(host)
        hosts = len(shares.split(","))
        wait_until(lambda: self.tactus("get", "nodes", "-o", "name")[1].count("h") >= hosts, 20, "all agents are there")

    def start_on(self, host):
        self.start_agent_on(host, "cpu:0")

    def start_agent_on(self, host, devices, within=()):
        """within: words before those that enter the host, such as for one more limit."""
        node = f"h{host}"
        self._start(node, [*within, self.shaped, "exec", str(host), "--", "bash", "-c", _WITH_GROUPS, "bash", BIN / "tactus-agent",
                           "--coordinator", self.address, "--node", node, "--devices", devices, "--address", f"10.99.0.{host + 1}",
                           "--state-dir", self.folder / node, "--metrics-listen", "127.0.0.1:0", "--drain-deadline", "0",
                           "--allow-programs", *self.security(node, self.address)])

    def stop(self):
        super().stop()
        subprocess.run([self.shaped, "down"], check=True)
