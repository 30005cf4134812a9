"""Real daemons for the integration tests: a coordinator and agents on free ports, in a folder of their own."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

BIN = pathlib.Path(os.environ["TACTUS_BIN"])
SOURCE = pathlib.Path(os.environ["TACTUS_SOURCE"])
OF_WORKER = b"TACTUS_CONTROL_SOCKET="  # in the environment of a worker, and of what it starts
ENDS = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})
ENDED_OTHERWISE = 8  # the exit code of tactus wait


def wait_until(condition, seconds, what):
    """Polls `condition` until it is true; fails with `what` after so many seconds. Returns the condition's value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def processes_of(folder):
    """Process ids whose environment mentions the folder (see Folder): everything that was started for it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if str(folder).encode() in environment and state != "Z":
            found.append(int(entry.name))
    return found


class Folder:
    """A temporary folder, removed at the end, or one that is there. Processes started meanwhile carry its path in their
    environment."""

    def __init__(self, path=None):
        self.path = path or pathlib.Path(tempfile.mkdtemp(prefix="tactus-it-"))
        os.environ["TACTUS_TEST_FOLDER"] = str(self.path)

    def corpus(self, size=60000):
        path = self.path / "corpus.txt"
        words = ["round", "plan", "lane", "batch", "worker", "speed", "tactus"]
        text, state = [], 1
        while sum(map(len, text)) + len(text) < size:
            for _ in range(500):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                text.append(words[(state >> 33) % len(words)])
        path.write_text(" ".join(text)[:size])
        return path

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Cluster:
    """One coordinator and its agents."""

    within = ()  # words before the command line's

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}
        self.address = ""
        self.metrics = ""
        self.tls = {}  # folders of certificates, by who; empty: plain

    def start_coordinator(self, listen="127.0.0.1:0", options=(), state="coordinator", program=BIN / "tactus-coordinator"):
        address_file = self.folder / "address"
        address_file.unlink(missing_ok=True)
        self._start("coordinator", [program, "--listen", listen, "--state-dir",
                                    self.folder / state, "--metrics-listen", "127.0.0.1:0",
                                    "--address-file", address_file, *self.security("coordinator", listen), *options])
        process = self.processes["coordinator"]
        wait_until(lambda: address_file.exists() or process.poll() is not None, 20, "the coordinator serves")
        if not address_file.exists():
            raise AssertionError(f"the coordinator ended: {process.returncode}")
        lines = dict(line.split("=", 1) for line in address_file.read_text().split())
        self.address, self.metrics = lines["grpc"], lines["metrics"]

    def security(self, who, address):
        """How to go to the address, or to be there."""
        if self.tls:
            return ["--tls-dir", self.tls[who]]
        return [] if address.startswith("127.") else ["--insecure"]

    def start_agent(self, node, devices, speeds=None, drain_deadline="0", options=()):
        command = [BIN / "tactus-agent", "--coordinator", self.address, "--node", node, "--devices",
                   ",".join(f"cpu:{i}" for i in range(devices)), "--state-dir", self.folder / node,
                   "--metrics-listen", "127.0.0.1:0", "--drain-deadline", drain_deadline,
                   *self.security(node, self.address), *options]
        if speeds:
            command += ["--emulated-speeds", speeds]
        self._start(node, command)

    def _start(self, name, command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log,
                                                    stdin=subprocess.DEVNULL)

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def tactus(self, *words, check=True, who="user", seconds=120):
        """Runs the CLI against this cluster; returns (exit code, stdout, stderr)."""
        command = [*self.within, BIN / "tactus", "--server", self.address, *self.security(who, self.address), *words]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=seconds)
        if check and done.returncode != 0:
            raise AssertionError(f"tactus {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.returncode, done.stdout, done.stderr

    def submit(self, spec):
        path = self.folder / "job.yaml"
        path.write_text(json.dumps(spec))  # JSON is YAML
        return self.tactus("submit", path, "-o", "name")[1].strip().rsplit("/", 1)[-1]

    def job(self, name):
        return json.loads(self.tactus("get", "job", name, "-o", "json")[1])

    def state(self, name):
        return self.job(name)["state"].removeprefix("JOB_STATE_")

    def wait(self, name, states, seconds=300):
        """The job when it has one of these states. An end is waited for by one call: who asks again and again takes a good part
        of a core from those who train."""
        if ENDS.issuperset(states):
            code, told, error = self.tactus("wait", name, "--for", f"state={min(states)}", "--timeout", f"{seconds}s", "-o", "json",
                                            check=False, seconds=seconds + 60)
            if code not in (0, ENDED_OTHERWISE):
                raise AssertionError(f"{name} is not {states} within {seconds} s: exit {code}\n{error}")
            job = json.loads(told)
            if job["state"].removeprefix("JOB_STATE_") not in states:
                raise AssertionError(f"{name} is not {states}, but {job['state']}: {job.get('state_reason')}")
            return job
        return wait_until(lambda: self.state(name) in states and self.job(name), seconds, f"{name} is {states}")

    def trains_on(self, name, workers):
        """Whether it has so many, who have made some rounds together."""
        progress = self.job(name).get("progress", {})
        return int(progress.get("rounds", 0)) >= 10 and len(progress.get("workers", [])) == workers

    def end_after(self, name, rounds):
        """Of a job that was to train on."""
        self.tactus("update", name, "--set", f"spec.stop.rounds={rounds}")

    def workers(self, *agents):
        """Process ids of these agents' workers, programs of users' too; of all agents' where none is named."""
        names = agents or [name for name in self.processes if name != "coordinator"]
        parents = [self.processes[name].pid for name in names]
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    environment = (entry / "environ").read_bytes() if int(fields[1]) in parents else b""
                except OSError:
                    continue
                if OF_WORKER in environment and fields[0] != "Z":
                    found.append(int(entry.name))
        return found

    def stop(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()


def tiny_spec(corpus, **stop):
    """A bytes-lm that trains hundreds of rounds a second."""
    return {
        "name": "tiny",
        "model": {"builtin": "bytes-lm", "options": {"width": 16, "heads": 2, "layers": 1, "context": 16}},
        "data": {"text": str(corpus)},
        "optimizer": {"sgd": {"learning_rate": 0.1, "momentum": 0.9}},
        "stop": stop or {"rounds": 100},
        "workers": {"min": 2, "max": 2},
        "adapt": {"policy": "none", "batch": {"per_worker": 8}},
    }
