"""Processes of plain PyTorch, one a device, that measure when they are told to."""
import json
import os
import pathlib
import selectors
import subprocess
import sys
import time

PEER = pathlib.Path(__file__).resolve().parent / "peer.py"


class PeerFailed(Exception):
    pass


class NoDevice(Exception):
    pass


class PeerGroup:
    """Members of one process group.

    device        cpu or cuda
    environments  one a member: which device it sees
    """

    def __init__(self, device, environments, folder, seconds):
        self.members = []
        self.buffers = []
        folder.mkdir(parents=True)
        self.errors = folder / "peer.err"
        try:
            with open(self.errors, "wb") as errors:
                for rank, environment in enumerate(environments):
                    command = [sys.executable, "-B", str(PEER), device, str(rank), str(len(environments)),
                               str(folder / "store")]
                    self.members.append(subprocess.Popen(command, env={**os.environ, **environment}, stderr=errors,
                                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE))
                    self.buffers.append(b"")
            self.versions = self._answers(seconds)[0]
            if "no_device" in self.versions:
                raise NoDevice(self.versions["no_device"])
        except BaseException:
            self.close()
            raise

    def _answers(self, seconds):
        """One line of each member."""
        deadline = time.monotonic() + seconds
        answers = {}
        with selectors.DefaultSelector() as selector:
            for rank, member in enumerate(self.members):
                selector.register(member.stdout, selectors.EVENT_READ, rank)
            while len(answers) < len(self.members):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise PeerFailed(f"no answer in {seconds:.0f} s")
                for key, _ in selector.select(left):
                    rank = key.data
                    chunk = os.read(key.fd, 1 << 16)
                    if not chunk:
                        raise PeerFailed(f"a process of the peer's ended{self._last_words()}")
                    self.buffers[rank] += chunk
                    if b"\n" in self.buffers[rank]:
                        line, self.buffers[rank] = self.buffers[rank].split(b"\n", 1)
                        answers[rank] = json.loads(line)
                        selector.unregister(key.fileobj)
        return [answers[rank] for rank in range(len(self.members))]

    def _last_words(self):
        lines = self.errors.read_text(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def measure(self, task, seconds):
        """The first member's answer; an error of any of them."""
        try:
            for member in self.members:
                member.stdin.write(json.dumps(task).encode() + b"\n")
                member.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(f"a process of the peer's ended{self._last_words()}") from None
        answers = self._answers(seconds)
        for answer in answers:
            if "error" in answer:
                raise PeerFailed(answer["error"])
        return answers[0]

    def close(self):
        for member in self.members:
            member.kill()
            member.wait()
            member.stdin.close()
            member.stdout.close()
        self.members = []
