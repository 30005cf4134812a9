"""A coordinator and agents, each on a host of its own: a network namespace on a bridge, with its state folder on a disk of
its own. In a room (room.py) alone."""
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))
from cluster import BIN, OF_WORKER, Cluster, wait_until  # noqa: E402

from room import cgroup_of  # noqa: E402

NET = "10.214.0."
PORT = 7070
COORDINATOR = "coordinator"
BRIDGE = "bridge0"
NOBODY = "02:00:00:00:00:01"  # an address that no host of the bridge has
DISK_MIB = {COORDINATOR: 512}
NODE_DISK_MIB = 128
TAPE = "64MiB"
REST = 1  # seconds between a daemon's start and the next


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


class Hosts(Cluster):
    """Nodes a, b, c ... and the coordinator. Daemons are started again where they ended, as a service manager would do."""

    within = ("nsenter", f"--net=/run/netns/{COORDINATOR}")  # the command line, on the coordinator's host

    def __init__(self, folder, nodes, devices):
        super().__init__(folder)
        self.nodes = [chr(ord("a") + i) for i in range(nodes)]
        self.devices = devices
        self.numbers = {COORDINATOR: 1, **{node: 2 + i for i, node in enumerate(self.nodes)}}
        self.address = f"127.0.0.1:{PORT}"  # for the command line
        self.group = cgroup_of(folder)
        self.ended = []  # (daemon, exit code) of those that ended by themselves
        self.started = {}  # when, of each
        self.starts = collections.Counter()
        run("ip", "link", "add", "name", BRIDGE, "type", "bridge")
        run("ip", "link", "set", BRIDGE, "up")
        for name in self.numbers:
            self._make_host(name)

    def _make_host(self, name):
        number = self.numbers[name]
        run("ip", "netns", "add", name)
        run("ip", "link", "add", "name", f"host{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run("ip", "link", "set", f"host{number}", "master", BRIDGE, "up")
        run("ip", "-n", name, "addr", "add", f"{NET}{number}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "link", "set", "lo", "up")
        disk = self.folder / name
        disk.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={DISK_MIB.get(name, NODE_DISK_MIB)}m", "none", disk)
        if self.group:
            self.group_of(name).mkdir(parents=True)

    def group_of(self, name):
        return self.group / name

    def _start(self, name, command):
        """On its host, in its cgroup."""
        words = ["nsenter", f"--net=/run/netns/{name}", *command]
        if self.group:
            words = ["sh", "-c", f'echo $$ > {self.group_of(name)}/cgroup.procs && exec "$@"', "sh", *words]
        super()._start(name, words)

    def start(self, name):
        self.started[name] = time.monotonic()
        self.starts[name] += 1
        if name == COORDINATOR:
            self._start(name, [BIN / "tactus-coordinator", "--listen", f"0.0.0.0:{PORT}", "--state-dir", self.folder / name,
                               "--metrics-listen", "off", "--tape-bytes", TAPE, "--insecure"])
            return
        self._start(name, [BIN / "tactus-agent", "--coordinator", f"{NET}1:{PORT}", "--node", name, "--devices",
                           ",".join(f"cpu:{i}" for i in range(self.devices)), "--state-dir", self.folder / name,
                           "--drain-deadline", "0", "--address", f"{NET}{self.numbers[name]}", "--allow-programs", "--insecure"])

    def start_all(self):
        for name in self.numbers:
            self.start(name)
        wait_until(lambda: self.ready_nodes() == self.nodes, 120, "all agents joined")

    def revive(self):
        """Starts again who ended without being told to, once a second at most; returns their names."""
        ended = [name for name, process in self.processes.items() if process.poll() is not None]
        for name in list(ended):
            if time.monotonic() < self.started[name] + REST:
                ended.remove(name)
            else:
                self.ended.append((name, self.processes[name].returncode))
                self.start(name)
        return ended

    def ask(self, *words):
        """The parsed answer of the command line, or None where the coordinator does not give one."""
        code, out, _ = self.tactus("--request-timeout", "2s", *words, "-o", "json", check=False)
        return json.loads(out) if code == 0 else None

    def ready_nodes(self):
        answer = self.ask("get", "nodes") or {}
        return sorted(node["name"].rsplit("/", 1)[-1] for node in answer.get("nodes", []) if node.get("connected"))

    def workers_of(self, job, agents=()):
        """{process id: node} of the workers of a job."""
        found = {}
        for node in agents or self.nodes:
            if node not in self.processes:
                continue
            for pid in self.workers(node):
                try:
                    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                except OSError:
                    continue
                if f"TACTUS_JOB_NAME={job}".encode() in environment:
                    found[pid] = node
        return found

    def cut(self, source, target):
        """What `source` sends to `target` arrives nowhere, from now on; nobody is told."""
        run("ip", "-n", source, "neigh", "replace", f"{NET}{self.numbers[target]}", "lladdr", NOBODY, "nud", "permanent",
            "dev", "eth0")

    def mend(self, source, target):
        run("ip", "-n", source, "neigh", "del", f"{NET}{self.numbers[target]}", "dev", "eth0")

    def log_lines(self):
        for name in self.numbers:
            path = self.folder / f"{name}.log"
            if path.exists():
                for line in path.read_text(errors="replace").splitlines():
                    yield name, line

    def left(self):
        """Programs of ours, or of a job, that run, though nobody is left who started them."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    name = (entry / "comm").read_text().strip()
                    state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                    of_job = OF_WORKER in (entry / "environ").read_bytes()
                except OSError:
                    continue
                if (name.startswith("tactus") or of_job) and state != "Z":
                    found.append(f"{name} {entry.name}")
        return found

    def keep(self):
        """Copies of the disks, which are gone with the room."""
        for name in self.numbers:
            shutil.copytree(self.folder / name, self.folder / f"disk-of-{name}", ignore=shutil.ignore_patterns("*.sock"))

    def stop(self):
        """Agents first, while there is a coordinator; with the signals that a service manager would send."""
        for name in [*self.nodes, COORDINATOR]:
            process = self.processes.pop(name, None)
            if process is None:
                continue
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                self.ended.append((name, "not within a minute of SIGTERM"))
                process.kill()
                process.wait()
