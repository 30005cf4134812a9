"""From nothing to a cluster with TLS that trains a job: the authority, certificates, roles, what is taken away again."""
import json
import os
import pathlib
import socket
import stat
import subprocess
import unittest

from cluster import BIN, Cluster, Folder, processes_of, tiny_spec, wait_until

WHO = {"coordinator": ["--coordinator"], "a": ["--node", "a"], "b": ["--node", "b"], "user": ["--user", "alice"],
       "bob": ["--user", "bob"], "admin": ["--user", "admin"]}


def tactus(*words, environment=None):
    """The command line, without a cluster: (exit code, stdout, stderr)."""
    done = subprocess.run([str(BIN / "tactus"), *map(str, words)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout, done.stderr


class TlsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()
        self.cluster = Cluster(self.folder.path)
        self.ca = self.folder.path / "ca"
        self.run_tactus("admin", "init-ca", "--out", self.ca)
        for who, words in WHO.items():
            self.cluster.tls[who] = self.folder.path / f"{who}-tls"
            self.run_tactus("admin", "issue", *words, "--ca", self.ca, "--out", self.cluster.tls[who])

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def run_tactus(self, *words):
        code, out, err = tactus(*words)
        self.assertEqual(code, 0, f"{words}: {out}{err}")
        return out

    def start(self, **coordinator):
        self.cluster.start_coordinator(**coordinator)
        for node in ("a", "b"):
            self.cluster.start_agent(node, 1)
        wait_until(lambda: len(self.cluster.tactus("get", "nodes", "-o", "name")[1].split()) == 2, 20, "both joined")

    def refused(self, who, *words):
        code, out, err = self.cluster.tactus(*words, who=who, check=False)
        self.assertEqual(code, 5, f"{who} {words}: {out}{err}")
        return err

    def log(self, name):
        return (self.folder.path / f"{name}.log").read_text()

    def verify(self):
        return self.run_tactus("admin", "audit", "--state-dir", self.folder.path / "coordinator", "--verify")

    def test_a_job_is_trained_and_its_result_comes_back(self):
        self.start()
        job = self.cluster.submit({**tiny_spec(self.corpus, rounds=200), "workers": {"min": 2, "max": 2}})
        self.cluster.wait(job, ["SUCCEEDED"])
        result = self.folder.path / "result"
        _, _, said = self.cluster.tactus("download", job, "--to", result)

        self.assertTrue((result / "model.pt").stat().st_size > 0)
        self.assertNotIn("ssl_transport_security", said)  # gRPC's own lines are nobody's
        self.assertEqual(self.cluster.job(job)["owner"], "user/alice")
        self.assertIn("user/alice", self.cluster.tactus("describe", "job", job)[1])
        self.assertIn("is that of user/alice, and user/bob asks", self.refused("bob", "delete", job, "--yes"))
        self.refused("user", "cordon", "a")
        self.refused("user", "admin", "integrity-check")
        self.cluster.tactus("admin", "integrity-check", who="admin")
        self.cluster.tactus("delete", job, "--yes", who="admin")
        self.cluster.stop()
        self.assertIn("intact: ", self.verify())
        lines = [json.loads(line) for line in
                 self.run_tactus("admin", "audit", "--state-dir", self.folder.path / "coordinator").splitlines()]
        self.assertEqual([(line["who"], line["code"]) for line in lines if line["method"] == "Jobs/DeleteJob"],
                         [("user/bob", "PERMISSION_DENIED"), ("user/admin", "OK")])
        self.assertEqual({line["about"] for line in lines if line["method"] == "AgentSession/Session"}, {"nodes/a", "nodes/b"})

    def test_a_node_that_is_revoked_is_left_out_and_its_job_goes_on(self):
        self.start()
        job = self.cluster.submit({**tiny_spec(self.corpus, time="10m"), "workers": {"min": 1, "max": 2}})
        rounds = lambda: int(self.cluster.job(job).get("progress", {}).get("rounds", 0))
        wait_until(lambda: rounds() >= 20, 60, "it trains")

        self.run_tactus("admin", "revoke", "--node", "b", "--in", self.cluster.tls["coordinator"])
        wait_until(lambda: self.cluster.job(job)["attempts"][-1]["nodes"] == ["a"], 60, "the others go on")
        so_far = rounds()
        wait_until(lambda: rounds() > so_far, 60, "they train")

        self.assertIn("node b was lost: certificate: that of node/b is revoked", self.cluster.job(job)["regroup_reason"])
        wait_until(lambda: "is revoked" in self.log("b"), 20, "the agent says why")

    def test_a_renewed_certificate_is_taken_up_while_all_goes_on(self):
        self.start()
        job = self.cluster.submit({**tiny_spec(self.corpus, time="10m"), "workers": {"min": 2, "max": 2}})
        rounds = lambda: int(self.cluster.job(job).get("progress", {}).get("rounds", 0))
        wait_until(lambda: rounds() >= 20, 60, "it trains")
        certificates = {who: (folder / "cert.pem").read_text() for who, folder in self.cluster.tls.items()}

        for who, folder in self.cluster.tls.items():
            self.run_tactus("admin", "issue", "--renew", "--ca", self.ca, "--out", folder)
            self.assertNotEqual((folder / "cert.pem").read_text(), certificates[who])
        self.cluster.kill("coordinator")
        port = self.cluster.address.rsplit(":", 1)[1]
        self.cluster.start_coordinator(listen=f"127.0.0.1:{port}")

        wait_until(lambda: self.cluster.job(job)["state"] == "JOB_STATE_RUNNING", 30, "it goes on")
        so_far = rounds()
        wait_until(lambda: rounds() > so_far + 20, 60, "it trains")
        self.assertEqual(int(self.cluster.job(job).get("regroups", 0)), 0)

    def test_the_page_reads_on(self):
        self.start()
        self.cluster.submit({**tiny_spec(self.corpus, time="10m"), "workers": {"min": 1, "max": 1}})
        with socket.create_connection(self.cluster.metrics.rsplit(":", 1)) as connection:
            connection.sendall(f"GET /api/jobs HTTP/1.1\r\nHost: {self.cluster.metrics}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        self.assertIn(b"200 OK", answer)
        self.assertIn(b"tiny-1", answer)

    def test_nobody_goes_plainly_where_others_could_come(self):
        """Each program, one clear line."""
        for command, says in (
                ([BIN / "tactus-coordinator", "--listen", "0.0.0.0:0", "--state-dir", self.folder.path / "none"], "listen: found 0.0.0.0:0"),
                ([BIN / "tactus-agent", "--coordinator", "10.0.0.1:1", "--state-dir", self.folder.path / "none"], "coordinator: found 10.0.0.1:1"),
                ([BIN / "tactus", "--server", "10.0.0.1:1", "get", "jobs"], "server: found 10.0.0.1:1")):
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=20)
            self.assertNotEqual(done.returncode, 0, command)
            self.assertIn(says, done.stderr)
            self.assertIn("--tls-dir DIR, or --insecure", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse((self.folder.path / "none").exists())

        self.start(listen="0.0.0.0:0")  # with TLS
        port = self.cluster.address.rsplit(":", 1)[1]
        code, _, err = tactus("--server", f"127.0.0.1:{port}", "get", "jobs", "--request-timeout", "5s")
        self.assertEqual(code, 6, err)  # plainly, it gets no answer
        environment = {"TACTUS_SERVER": f"127.0.0.1:{port}", "TACTUS_TLS_DIR": str(self.cluster.tls["bob"])}
        self.assertEqual(tactus("get", "jobs", environment=environment)[0], 0)
        # Neither an agent's certificate nor another node's name opens that door.
        self.assertEqual(tactus("get", "jobs", environment={**environment, "TACTUS_TLS_DIR": str(self.cluster.tls["a"])})[0], 5)
        agent = subprocess.run([str(BIN / "tactus-agent"), "--coordinator", f"127.0.0.1:{port}", "--node", "c", "--tls-dir",
                                str(self.cluster.tls["a"]), "--state-dir", str(self.folder.path / "none")],
                               capture_output=True, text=True, timeout=20)
        self.assertEqual(agent.returncode, 78, agent.stderr)
        self.assertIn("is that of node/a; allowed is one of node/c", agent.stderr)

    def test_keys_are_private_and_nothing_is_overwritten(self):
        for path in (self.ca / "ca-key.pem", *(folder / "key.pem" for folder in self.cluster.tls.values())):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
        key = (self.ca / "ca-key.pem").read_text()
        self.assertEqual(tactus("admin", "init-ca", "--out", self.ca)[0], 4)
        self.assertEqual(tactus("admin", "issue", "--user", "eve", "--ca", self.ca, "--out", self.cluster.tls["a"])[0], 4)
        self.assertEqual((self.ca / "ca-key.pem").read_text(), key)

    def test_a_changed_line_of_the_audit_log_is_named(self):
        self.start()
        self.cluster.tactus("cordon", "a", who="admin")
        self.cluster.tactus("uncordon", "a", who="admin")
        self.cluster.stop()
        self.assertIn("intact: 4 lines, 1 to 4", self.verify())
        audit = next((self.folder.path / "coordinator" / "audit").iterdir())
        self.assertEqual(stat.S_IMODE(audit.stat().st_mode), 0o600)
        audit.write_text(audit.read_text().replace("Nodes/CordonNode", "Nodes/UncordonNode", 1))

        code, _, err = tactus("admin", "audit", "--state-dir", self.folder.path / "coordinator", "--verify")
        self.assertEqual(code, 1)
        self.assertIn(f"{audit.name}: line 3 its hash is not that of its content", err)

    def test_a_run_on_this_machine_needs_none_of_it(self):
        """Though the user's environment has certificates for elsewhere."""
        job = self.folder.path / "job.yaml"
        job.write_text(json.dumps(tiny_spec(self.corpus, rounds=5)))
        code, out, err = tactus("run", job, "--output", self.folder.path / "result",
                                environment={"TACTUS_TLS_DIR": str(self.cluster.tls["user"]), "TACTUS_SERVER": "10.0.0.1:7070",
                                             "TACTUS_COORDINATOR_TLS_DIR": str(self.cluster.tls["coordinator"]),
                                             "TACTUS_AGENT_TLS_DIR": str(self.cluster.tls["a"]), "TACTUS_POLICY": "/nowhere"})
        self.assertEqual(code, 0, out + err)
        self.assertTrue(pathlib.Path(self.folder.path / "result" / "model.pt").exists())


if __name__ == "__main__":
    unittest.main()
