"""Plays agent and coordinator towards tactus-worker, or a program with Tactus: no other process is needed to train. What is said is in
proto/tactus/v1/worker.proto."""
import json
import os
import pathlib
import selectors
import socket
import subprocess
import time

CONNECT_SECONDS = 60
END_SECONDS = 60
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # the environment of a worker on a processor
CAUSE_SECONDS = 5  # for the one that is to blame to say so


class WorkerFailed(Exception):
    """A worker gave up, or went without a word. `others`: because another one of its group did."""

    def __init__(self, message, others=False):
        super().__init__(message)
        self.others = others


class Worker:
    """One worker process and the line to it. binary: tactus-worker, or a list, a program's command."""

    def __init__(self, binary, folder, rank, environment, device="cpu:0"):
        self.rank = rank
        self.errors = folder / f"worker-{rank}.err"
        self.input = b""
        path = folder / f"worker-{rank}.sock"
        with socket.socket(socket.AF_UNIX) as listener, open(self.errors, "wb") as errors:
            listener.bind(str(path))
            listener.listen(1)
            listener.settimeout(0.2)
            command = [str(binary), "--socket", str(path)]
            if isinstance(binary, list):
                command, told = binary, {"TACTUS_CONTROL_SOCKET": str(path), "TACTUS_DEVICE": device.replace("cpu:0", "cpu")}
                environment = {**environment, **told}
            self.process = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=errors,
                                            stderr=errors)
            self.socket = self._accept(listener)

    def _accept(self, listener):
        deadline = time.monotonic() + CONNECT_SECONDS
        while time.monotonic() < deadline:
            try:
                connected = listener.accept()[0]
                connected.settimeout(None)
                return connected
            except socket.timeout:
                if self.process.poll() is not None:
                    break
        self.kill()
        raise WorkerFailed(f"worker {self.rank} did not connect{self._last_words()}")

    def _last_words(self):
        lines = self.errors.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def say(self, kind, content):
        self.socket.sendall(json.dumps({kind: content}).encode() + b"\n")

    def read(self):
        """The messages that have come, as (kind, content). Raises WorkerFailed for a failed one, and at the end."""
        chunk = self.socket.recv(1 << 16)
        if not chunk:
            self.process.wait(END_SECONDS)
            raise WorkerFailed(f"worker {self.rank} ended with {self.process.returncode}{self._last_words()}")
        *lines, self.input = (self.input + chunk).split(b"\n")
        messages = [next(iter(json.loads(line).items())) for line in lines]
        for kind, content in messages:
            if kind == "failed":
                field = f"{content['field']}: " if content.get("field") else ""
                raise WorkerFailed(field + content.get("message", ""))
            if kind == "group_lost":
                raise WorkerFailed(content.get("reason", ""), True)
        return messages

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Group:
    """Workers that train one job together, one a device.

    devices  of the job's view, one a worker: each (name, environment), as ("cuda:0", {"CUDA_VISIBLE_DEVICES": "1"})
    spec     tactus.v1.JobSpec in its JSON form
    batch    samples of each worker a step
    """

    def __init__(self, binary, folder, devices, spec, batch):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.workers = []
        self.selector = selectors.DefaultSelector()
        try:
            for rank, (name, environment) in enumerate(devices):
                worker = Worker(binary, self.folder, rank, environment, name)
                self.workers.append(worker)
                self.selector.register(worker.socket, selectors.EVENT_READ, worker)
                worker.say("start", {"jobId": "gpu-train", "workerId": str(rank + 1), "spec": spec, "device": name,
                                     "address": "127.0.0.1", "outputDirectory": str(self.folder)})
            self.batch = batch
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for worker in self.workers:
            worker.kill()
            worker.socket.close()
        self.selector.close()

    def messages(self, seconds):
        """Yields (worker, kind, content) as they come, for so long at most; then raises WorkerFailed."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkerFailed(f"no answer in {seconds:.0f} s")
            for key, _ in self.selector.select(left):
                try:
                    messages = key.data.read()
                except WorkerFailed as failure:
                    raise self._first_cause(key, failure) from None
                for kind, content in messages:
                    yield key.data, kind, content

    def _first_cause(self, key, failure):
        """Where the worker that failed first blames others: what one of those says, if it does so soon."""
        deadline = time.monotonic() + CAUSE_SECONDS
        self.selector.unregister(key.fileobj)
        while failure.others and self.selector.get_map() and time.monotonic() < deadline:
            for other, _ in self.selector.select(deadline - time.monotonic()):
                try:
                    other.data.read()
                except WorkerFailed as cause:
                    self.selector.unregister(other.fileobj)
                    if not cause.others:
                        return cause
        return failure

    def await_ready(self, seconds):
        """Returns when all have loaded model and data."""
        ready = set()
        for worker, kind, _ in self.messages(seconds):
            if kind == "ready":
                ready.add(worker.rank)
            if len(ready) == len(self.workers):
                return

    def form(self, seconds, plan=None, transport=""):
        """Makes them a group, which starts to train. plan: what it has beyond batch sizes; transport: of
        tactus.v1.Group."""
        size = len(self.workers)
        told = {"version": "1", "batchSizes": [self.batch] * size, **(plan or {})}
        for worker in self.workers:
            worker.say("group", {"generation": "1", "rank": worker.rank, "size": size, "plan": told,
                                 "nodes": [0] * size, "transport": transport})
        endpoints = {}
        for worker, kind, content in self.messages(seconds):
            if kind == "endpoint":
                endpoints[worker.rank] = content["endpoint"]
            if len(endpoints) == size:
                break
        for worker in self.workers:
            worker.say("peers", {"generation": "1", "endpoints": [endpoints[rank] for rank in range(size)]})

    def samples_per_second(self, warm_up_rounds, seconds, limit):
        """Of all workers together, by this process's clock, from one report of the first worker's to another: the
        first `warm_up_rounds` are not counted, and the window is `seconds` long or a round, whichever is longer."""
        begun, samples, rounds = None, 0, 0
        for worker, kind, content in self.messages(limit):
            if worker.rank != 0 or kind != "report":
                continue
            now = time.monotonic()
            rounds += 1
            if rounds < warm_up_rounds:
                continue
            if begun is None:
                begun = now
                continue
            samples += int(content["samplesGlobal"])
            if now - begun >= seconds:
                return samples / (now - begun)
        raise WorkerFailed("the reports ended")

    def seconds_a_round(self, warm_up_rounds, rounds, limit):
        """Of so many rounds behind the first `warm_up_rounds`, by this process's clock."""
        begun, seen = None, 0
        for worker, kind, _ in self.messages(limit):
            if worker.rank != 0 or kind != "report":
                continue
            seen += 1
            if seen == warm_up_rounds:
                begun = time.monotonic()
            if seen == warm_up_rounds + rounds:
                return (time.monotonic() - begun) / rounds
        raise WorkerFailed("the reports ended")

    def stop(self, discard, seconds):
        """Asks them to end at the next round's edge and waits until all have. Returns their last messages."""
        for worker in self.workers:
            worker.say("stop", {"reason": "measured", "discard": discard})
        return self.await_finished(seconds)

    def await_finished(self, seconds):
        """The last message of each, in rank order."""
        finished = {}
        for worker, kind, content in self.messages(seconds):
            if kind == "finished":
                finished[worker.rank] = content
                self.selector.unregister(worker.socket)
            if len(finished) == len(self.workers):
                break
        for worker in self.workers:
            worker.process.wait(END_SECONDS)
        return [finished[rank] for rank in sorted(finished)]
