"""Clients of the API: the Python and C++ examples, and the verbs of the CLI, against real daemons."""
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from cluster import BIN, SOURCE, Cluster, Folder, processes_of, tiny_spec, wait_until

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


class ClientsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        self.cluster.start_agent("a", 2)

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def run_example(self, *command, **environment):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def have(self, module):
        if importlib.util.find_spec(module) is None:
            self.skipTest(f"{module} is not installed")

    def await_node(self):
        wait_until(lambda: json.loads(self.cluster.tactus("get", "nodes", "-o", "json")[1]).get("nodes"), 20,
                   "the agent has registered")

    def test_a_client_that_only_has_reflection_does_the_whole_life_of_a_job(self):
        self.have("grpc")
        out = self.run_example(PYTHON, SOURCE / "examples/python/job_life.py", self.cluster.address, self.corpus)

        steps = [line.split(":")[0] for line in out.splitlines()]
        self.assertEqual([s for i, s in enumerate(steps) if s not in steps[:i]],
                         ["services", "validate", "create", "watch", "update", "pause", "resume", "cancel", "rounds",
                          "decisions", "logs", "download", "delete"])
        self.assertIn("tactus.v1.Artifacts", out)

    def test_generated_stubs_submit_and_wait(self):
        self.have("grpc")
        stubs = self.folder.path / "stubs"
        stubs.mkdir()
        protos = sorted(str(p.relative_to(SOURCE / "proto")) for p in (SOURCE / "proto/tactus/v1").glob("*.proto"))
        self.run_example("protoc", f"--proto_path={SOURCE / 'proto'}", f"--python_out={stubs}",
                         f"--grpc_python_out={stubs}",
                         "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin", *protos)

        out = self.run_example(PYTHON, SOURCE / "examples/python/submit_and_wait.py", self.cluster.address,
                               self.corpus, PYTHONPATH=str(stubs))

        self.assertIn("JOB_STATE_SUCCEEDED", out)

    def test_the_client_library_submits_and_waits(self):
        model = self.folder.path / "model.pt"
        out = self.run_example(BIN.parent / "examples/submit_and_wait", self.cluster.address, self.corpus, model)

        self.assertIn("JOB_STATE_SUCCEEDED", out)
        self.assertGreater(model.stat().st_size, 1000)

    def test_the_verbs_lead_a_job_through_its_life(self):
        tactus = self.cluster.tactus
        path = self.folder.path / "job.yaml"
        path.write_text(json.dumps(tiny_spec(self.corpus, time="10m")))
        self.await_node()
        job = tactus("submit", path, "--label", "team=vision", "--priority", "3")[1].strip()
        tactus("wait", job, "--for", "state=running", "--timeout", "60s")

        self.assertIn(job, tactus("get", "jobs", "--filter", "state=RUNNING AND labels.team=vision")[1])
        self.assertNotIn(job, tactus("get", "jobs", "--filter", "labels.team=speech", "-o", "name")[1])
        self.assertEqual(tactus("wait", job, "--timeout", "1s", check=False)[0], 7)
        tactus("update", job, "--priority", "9", "--label", "zone=a", "--label", "team-", "--freeze", "batch")
        changed = self.cluster.job(job)
        self.assertEqual(changed["labels"], {"zone": "a"})
        self.assertEqual(changed["spec"]["priority"], 9)
        self.assertEqual(changed["spec"]["adapt"]["frozen"], ["batch"])
        self.assertEqual(tactus("update", job, "--priority", "1", "--if-etag", "no", check=False)[0], 4)
        self.assertIn("job file:", tactus("describe", "job", job)[1])

        tactus("pause", job)
        tactus("wait", job, "--for", "state=PAUSED", "--timeout", "60s")
        tactus("resume", job)
        tactus("wait", job, "--for", "state=RUNNING", "--timeout", "60s")
        self.assertEqual(tactus("delete", job, "--yes", check=False)[0], 4)
        self.assertEqual(tactus("delete", job, check=False)[0], 2)
        tactus("cancel", job, "--grace", "1m")
        self.assertEqual(tactus("wait", job, "--timeout", "60s", check=False)[0], 8)
        tactus("logs", job)
        # Its workers may still be ending, for which the call does not wait.
        wait_until(lambda: tactus("delete", job, "--yes", check=False)[0] == 0, 30, f"{job} is deleted")
        self.assertEqual(tactus("get", "job", job, check=False)[0], 3)

    def test_nodes_are_cordoned_and_drained(self):
        tactus = self.cluster.tactus
        self.await_node()

        def status():
            return tactus("get", "node", "a")[1].splitlines()[1].split()[1]

        tactus("cordon", "a")
        self.assertEqual(status(), "cordoned")
        tactus("drain", "a", "--wait", "--timeout", "30s")
        self.assertEqual(status(), "drained")
        tactus("uncordon", "a")
        self.assertEqual(status(), "ready")
        self.assertEqual(tactus("cordon", "none", check=False)[0], 3)

    def test_following_logs_ends_with_ctrl_c_and_the_job_goes_on(self):
        self.await_node()
        job = self.cluster.submit(tiny_spec(self.corpus, time="10m"))
        self.cluster.wait(job, ["RUNNING"])
        follow = subprocess.Popen([str(BIN / "tactus"), "--server", self.cluster.address, "logs", "--follow", job],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.set_blocking(follow.stderr.fileno(), False)
        wait_until(lambda: self.handles_interrupts(follow.pid), 20, "it handles signals")

        follow.send_signal(signal.SIGINT)

        follow.communicate(timeout=30)
        self.assertEqual(follow.returncode, 130)
        self.assertEqual(self.cluster.state(job), "RUNNING")
        self.cluster.tactus("cancel", job, "--discard")

    @staticmethod
    def handles_interrupts(pid):
        caught = next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                      if line.startswith("SigCgt"))
        return int(caught.split()[1], 16) & 1 << (signal.SIGINT - 1)

    def test_a_backup_is_a_database_and_all_is_sound(self):
        self.await_node()
        job = self.cluster.submit(tiny_spec(self.corpus, rounds=20))
        self.cluster.wait(job, ["SUCCEEDED"])
        copy = self.folder.path / "backup.db"

        self.cluster.tactus("admin", "backup", copy)

        self.assertEqual(copy.read_bytes()[:16], b"SQLite format 3\0")
        self.assertEqual(self.cluster.tactus("admin", "backup", copy, check=False)[0], 4)
        self.assertIn("are sound", self.cluster.tactus("admin", "integrity-check")[1])

    def test_contexts_choose_the_coordinator(self):
        config = self.folder.path / "config/tactus"
        config.mkdir(parents=True)
        (config / "config.yaml").write_text(f"contexts:\n  lab: {{server: '{self.cluster.address}'}}\n"
                                            "  away: {server: '127.0.0.1:1'}\n")
        environment = {**os.environ, "XDG_CONFIG_HOME": str(self.folder.path / "config")}

        def tactus(*words):
            return subprocess.run([str(BIN / "tactus"), *words], capture_output=True, text=True, env=environment,
                                  timeout=60)

        self.assertEqual(tactus("config", "use-context", "lab").returncode, 0)
        self.assertEqual(tactus("get", "nodes", "-o", "name").returncode, 0)
        self.assertEqual(tactus("get", "nodes", "--context", "away", "--request-timeout", "1s").returncode, 6)
        shown = json.loads(tactus("config", "show", "-o", "json").stdout)
        self.assertEqual(shown["server"]["value"], self.cluster.address)
        self.assertIn("lab", shown["server"]["source"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
