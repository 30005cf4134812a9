"""What workers cannot do: hostile programs and models in the box that an agent puts them into. None of them succeeds, or the
node's label says that this kernel cannot stop it, which is printed."""
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

import numpy
import torch

from cluster import Cluster, Folder, tiny_spec, wait_until

HOSTILE = pathlib.Path(__file__).with_name("hostile.py")
KEY = b"-----BEGIN PRIVATE KEY-----"
SECRETS = {"AWS_SECRET_ACCESS_KEY": "a", "GITHUB_TOKEN": "b", "DATABASE_URL": "c"}
SPOILED = ("write_outside", "truncate_by_mode_three", "truncate_by_path", "unlink_outside", "rename_outside", "mode_outside")
CONTENT = "the content\n"
# By the word of the label that says that it is not stopped. Sockets that are files are the user's as well, and so no attempt.
LACKING = {"mode_outside": "user", "signal_victim": "signals", "signal_by_descriptor": "signals", "abstract_socket": "signals",
           "named_port": "ports", "truncate_by_path": "truncation", "fork_bomb": "tasks", "all_memory": "memory"}
# What a process of root's does without a box, whatever else its kernel and its container take away.
NOTHING_STOPS = {"read_key", "list_state", "key_through_proc", "key_through_symlink", "key_through_hard_link", "key_by_another_program",
                 "write_outside", "make_outside", "truncate_by_mode_three", "truncate_by_path", "unlink_outside", "rename_outside",
                 "mode_outside", "memory_of_victim", "memory_by_call", "signal_victim", "signal_by_descriptor", "abstract_socket",
                 "named_port", "secret_of_environment", "environment_of_agent", "files_of_agent"}
OTHER_USER = 54321


class Reads(torch.nn.Module):
    """A model that reads a file of the node's."""

    def __init__(self, path: str, shared: bool):
        super().__init__()
        self.inner, self.path, self.shared = torch.nn.Linear(4, 2), path, shared

    def forward(self, x):
        stolen = torch.from_file(self.path, self.shared, 8, dtype=torch.uint8)
        if self.shared:
            stolen.zero_()
        return self.inner(x) + stolen.sum() * 0.0


class Writes(torch.nn.Module):
    """A model that writes one."""

    def __init__(self, path: str):
        super().__init__()
        self.inner, self.path = torch.nn.Linear(4, 2), path

    def forward(self, x):
        torch.save(x, self.path)
        return self.inner(x)


class EscapeTest(unittest.TestCase):
    options = ()

    def setUp(self):
        self.folder = Folder()
        self.folder.path.chmod(0o711)
        self.key = self.folder.path / "a" / "agent.key"
        self.outside = self.folder.path / "outside"
        self.outside.mkdir()
        self.outside.chmod(0o777)
        for name in (*SPOILED, "model"):
            (self.outside / name).write_text(CONTENT)
            (self.outside / name).chmod(0o644)
        shutil.copy(HOSTILE, self.folder.path)
        self.cluster = None
        self.buffer = ctypes.create_string_buffer(b"SECRET OF VICTIM")
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0tactus-escape-{os.getpid()}")
        self.abstract.listen(64)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    def tearDown(self):
        self.abstract.close()
        self.victim.kill()
        self.victim.wait()
        if self.cluster:
            self.cluster.stop()
        self.folder.remove()

    def start(self):
        # One that is private to the agent's folder, and one that its environment has.
        os.environ.update(SECRETS)
        try:
            self.cluster = Cluster(self.folder.path)
            self.cluster.start_coordinator()
            self.key.parent.mkdir()
            self.key.write_bytes(KEY)
            self.cluster.start_agent("a", 2, options=["--allow-programs", "--worker-memory", "1G", "--worker-tasks", "32",
                                                      *self.options])
            wait_until(lambda: self.label(), 20, "the node is there")
        finally:
            for name in SECRETS:
                del os.environ[name]

    def label(self):
        nodes = json.loads(self.cluster.tactus("get", "nodes", "-o", "json")[1])
        nodes = nodes.get("nodes", nodes) if isinstance(nodes, dict) else nodes
        return nodes and nodes[0].get("labels", {}).get("tactus/sandbox")

    def said(self, **more):
        address = ctypes.addressof(self.buffer)  # of this process, which is the victim of what reads memory
        return json.dumps({"key": str(self.key), "state": str(self.key.parent), "outside": str(self.outside), "address": address,
                           "agent": self.cluster.processes["a"].pid if self.cluster else self.victim.pid,
                           "victim": os.getpid(), "abstract": f"tactus-escape-{os.getpid()}", "port": self.port,
                           "secrets": list(SECRETS), **more})

    def attempts(self, **more):
        """{name: (succeeded, words)} of a job that makes them, and ends."""
        job = self.cluster.submit({"name": "hostile", "workers": {"min": 1, "max": 1}, "adapt": {"policy": "none"},
                                   "program": {"command": [sys.executable, "hostile.py", self.said(stay=600, **more)],
                                               "files": ["hostile.py"]}})
        log = wait_until(lambda: self.over(job), 120, "all was tried")
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED", "FAILED", "SUCCEEDED"])
        return self.parse(log)

    def over(self, job):
        log = self.cluster.tactus("logs", job, check=False)[1]
        if self.cluster.state(job) == "FAILED":
            raise AssertionError(f"{self.cluster.job(job)['state_reason']}\n{log}")
        return "ATTEMPTS over" in log and log

    @staticmethod
    def parse(log):
        return {name: (how == "succeeded", words) for name, how, words in re.findall(r"ATTEMPT (\w+) (stopped|succeeded) (.*)", log)}

    def judge(self, tried):
        label = self.label()
        for name, (succeeded, words) in sorted(tried.items()):
            if succeeded and LACKING.get(name) in label.split():
                print(f"{type(self).__name__}: not stopped on this node ({label}): {name}: {words}")
                continue
            with self.subTest(name):
                self.assertFalse(succeeded, words)

    def models(self):
        return {"reads": Reads(str(self.key), False), "changes": Reads(str(self.outside / "model"), True),
                "writes": Writes(str(self.outside / "made"))}

    def left(self):
        """What runs of the hostile program."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and str(self.key).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
        return found


class BoxTest(EscapeTest):
    def test_no_program_gets_out(self):
        self.start()
        tried = self.attempts()
        self.assertGreaterEqual(len(tried), 40)
        self.judge(tried)
        for name in SPOILED:
            self.assertEqual((self.outside / name).read_text(), CONTENT, name)
        self.assertFalse((self.outside / "made").exists())
        wait_until(lambda: not self.left(), 15, "what left its session ends with its job")

    def test_no_program_takes_more_than_its_share(self):
        self.start()
        label = self.label()
        held = [name for name in ("fork_bomb", "all_memory") if self.is_held(name, label)]
        self.judge(self.attempts(attempts=held))
        wait_until(lambda: not self.left(), 15, "all that was started ends with its job")

    def test_a_job_that_wants_nothing_of_others_trains(self):
        self.start()
        job = self.cluster.submit(tiny_spec(self.folder.corpus(), rounds=30))
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        wait_until(lambda: not list((self.key.parent / "jobs").glob("*/scratch-*")), 10, "what was thrown away is gone")

    def is_held(self, name, label):
        # Without cgroups: memory by each process's own limit, tasks by that of a user of their own.
        if name == "all_memory" or LACKING[name] not in label.split() or "--worker-user" in self.options:
            return True
        print(f"{type(self).__name__}: not tried, as this node does not stop it ({label}): {name}")
        return False

    def test_no_model_gets_out(self):
        self.start()
        torch.manual_seed(1)
        numpy.save(self.folder.path / "x.npy", numpy.random.rand(200, 4).astype("float32"))
        numpy.save(self.folder.path / "y.npy", numpy.zeros(200, "int64"))
        for name, model in self.models().items():
            with self.subTest(name):
                torch.jit.script(model).save(str(self.folder.path / f"{name}.pt"))
                job = self.cluster.submit({
                    "name": name, "model": {"torchscript": f"{name}.pt"}, "stop": {"rounds": 5},
                    "data": {"numpy": {"inputs": "x.npy", "targets": "y.npy"}}, "optimizer": {"sgd": {"learning_rate": 0.1}},
                    "workers": {"min": 1, "max": 1}, "adapt": {"policy": "none", "batch": {"per_worker": 8}}})
                done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
                if name == "writes":  # a stream that is not open takes what is written to it
                    continue
                self.assertEqual(done["state"], "JOB_STATE_FAILED")
                self.assertRegex(done["state_reason"], "Permission denied|Operation not permitted|cannot be opened|file")
        self.assertEqual((self.outside / "model").read_text(), CONTENT)
        self.assertFalse((self.outside / "made").exists())


@unittest.skipIf(os.geteuid() != 0, "only root starts workers as another user")
class OwnUserTest(BoxTest):
    options = ("--worker-user", str(OTHER_USER))

    def test_root_is_no_user_of_workers(self):
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        self.cluster.start_agent("a", 1, options=["--worker-user", "root"])
        self.assertEqual(self.cluster.processes["a"].wait(20), 78)
        self.assertIn("is root, who may everything", (self.folder.path / "a.log").read_text())

    def test_no_user_has_the_files_of_a_job(self):
        """What was uploaded is read by the workers' group, and by nobody besides."""
        self.start()
        self.attempts(attempts=["read_key"])
        files = [path for path in (self.key.parent / "blobs").iterdir() if path.is_file()]
        self.assertTrue(files)
        for path in files:
            self.assertEqual(path.stat().st_mode & 0o037, 0, path)


class WithoutTest(EscapeTest):
    """That the attempts are some: outside of a box they succeed."""

    @unittest.skipIf(os.geteuid() != 0, "root has no need of escapes")
    def test_without_a_box_they_succeed(self):
        self.key.parent.mkdir()
        self.key.write_bytes(KEY)
        done = subprocess.run([sys.executable, HOSTILE.name, self.said()], cwd=self.folder.path, capture_output=True, text=True,
                              env={**os.environ, **SECRETS}, timeout=60, check=True)
        for left in self.left():
            os.kill(left, signal.SIGKILL)
        tried = self.parse(done.stdout)
        self.assertEqual({name for name in NOTHING_STOPS if not tried[name][0]}, set(), done.stdout)
        (self.outside / "made").unlink()
        for model in self.models().values():
            torch.jit.script(model)(torch.ones(1, 4))
        self.assertNotEqual((self.outside / "model").read_bytes(), CONTENT.encode())
        self.assertTrue((self.outside / "made").exists())


if __name__ == "__main__":
    unittest.main()
