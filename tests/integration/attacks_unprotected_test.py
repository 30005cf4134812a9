"""That the attacks of attacks_test.py are some: where what protects is switched off, each of them succeeds. Of those that have no
switch it is said why.

| attack of the review | fails in attacks_test.py | switched off here | then |
| --- | --- | --- | --- |
| S1 code of a stranger runs on the nodes | a_stranger_submits_code | no --tls-dir; the box: escape_test.WithoutTest | it trains; models read and write files |
| S2 a result is replaced | another_node_or_user_replaces_a_jobs_result | no --tls-dir | the file is in the result |
| S3 anyone is an agent, by another's name | a_stranger_or_a_user_joins, a_node_takes_over | no --tls-dir | it is a node; the job is taken |
| S4 any file of the node is data | a_job_reads_files_of_the_node | no --data-roots | the job trains on it |
| S5 the wire is read | somebody_on_the_wire | no --tls-dir; workers: mesh_test, `none` | the words are there |
| S6 jobs reach each other | escape_test.BoxTest | no box: escape_test.WithoutTest | 22 of 40 attempts succeed |
| S7 others' jobs end, nodes without end, half-open streams, full disk | somebody_else_ends, FloodTest | no --tls-dir; large bounds | it ends; all are taken |
| S8 a local user takes the database | a_user_on_the_coordinators_machine | no --tls-dir | the file is there |
| S9 the database is read by others | a_local_user_reads | none: its files are made 0600 whatever is said | |
| S10 secrets in the environment | a_job_reads_the_agents_secrets | --worker-env names them | the worker has them |
| S11 a poisoned result is loaded | a_poisoned_result_is_given | no --tls-dir: no signature | verify takes it |
"""
import base64
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import threading
import unittest

import grpc

import attacks_test as attacks
from cluster import BIN, Cluster, Folder, processes_of, tiny_spec, wait_until

SESSION = "tactus.agent.v1.AgentSession/Session"


class UnprotectedTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()
        self.cluster = Cluster(self.folder.path)

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def start(self, *options, agent_options=()):
        """As on loopback, where nobody is asked."""
        self.cluster.start_coordinator(options=options)
        self.cluster.start_agent("a", 1, options=agent_options)
        wait_until(lambda: self.nodes() == ["a"], 20, "it joined")
        return attacks.Attacker(self.cluster, plain=True)

    def nodes(self):
        return self.cluster.tactus("get", "nodes", "-o", "name")[1].split()

    def spec(self, **more):
        return {**tiny_spec(self.corpus, time="10m"), "workers": {"min": 1, "max": 1}, **more}

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def trains(self, job):
        wait_until(lambda: self.rounds(job) >= 5, 60, "it trains")
        return job

    def own_spec(self):
        """What the cluster has of a job that it took, as a message."""
        job = self.trains(self.cluster.submit(self.spec()))
        return attacks.Attacker(self.cluster, plain=True).unary("tactus.v1.Jobs/GetJob", attacks.jobs.GetJobRequest(name=job),
                                                                attacks.jobs.Job).spec

    def result(self, job):
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED", "SUCCEEDED"])
        self.cluster.tactus("download", job, "--to", self.folder.path / "result")
        return self.folder.path / "result"

    def test_a_stranger_submits_code_that_nodes_run_and_ends_anothers_job(self):
        attacker = self.start()
        spec = self.own_spec()
        former = "tiny-1"
        attacker.unary("tactus.v1.Jobs/CancelJob", attacks.jobs.CancelJobRequest(name=former), attacks.jobs.Job)
        self.cluster.wait(former, ["CANCELLED"])
        made = attacker.unary("tactus.v1.Jobs/CreateJob", attacks.jobs.CreateJobRequest(spec=spec, request_id="1"), attacks.jobs.Job)
        self.trains(made.name.rsplit("/", 1)[-1])

    def test_a_stranger_joins_as_an_agent_and_invents_as_many_as_it_likes(self):
        attacker = self.start("--nodes-per-host", "1000")
        done = threading.Event()
        streams = []
        for number in range(40):
            hello = attacks.session.FromAgent(hello=attacks.session.Hello(node=f"invented-{number}", incarnation=number + 1))
            hello.hello.devices.add(name="cpu:0", kind=1)
            stream = attacker.both(SESSION, attacks.FloodTest.held(hello, done), attacks.session.ToAgent)
            streams.append(stream)
            self.assertEqual(attacks.code_of(lambda: next(stream)), grpc.StatusCode.OK, number)
        self.assertEqual(len(self.nodes()), 41)
        done.set()
        for stream in streams:
            stream.cancel()

    def test_somebody_on_the_wire_reads_what_is_said(self):
        self.start()
        seen = bytearray()
        host, port = self.cluster.address.rsplit(":", 1)
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=attacks.StrangersTest.listen_in, args=(server, (host, int(port)), seen), daemon=True).start()
            path = self.folder.path / "job.yaml"
            path.write_text(json.dumps(self.spec()))
            subprocess.run([BIN / "tactus", "--server", f"127.0.0.1:{server.getsockname()[1]}", "submit", path, "--label",
                            "project=SECRETPROJECT"], capture_output=True, check=True, timeout=60)
        for word in (b"SECRETPROJECT", b"bytes-lm"):
            self.assertIn(word, seen)

    def test_anybody_brings_a_file_of_a_jobs_result(self):
        attacker = self.start()
        job = self.trains(self.cluster.submit(self.spec()))
        forged = attacks.session.UploadArtifactRequest(job_id=job, path="snapshots/1.safetensors", size_bytes=6, data=b"forged")
        attacker.up("tactus.agent.v1.AgentSession/UploadArtifact", [forged], attacks.session.UploadArtifactResponse)
        result = self.result(job)
        self.assertEqual((result / "snapshots/1.safetensors").read_bytes(), b"forged")

    def test_a_poisoned_result_passes_where_nobody_has_signed(self):
        self.start()
        result = self.result(self.trains(self.cluster.submit(self.spec())))
        model, path = result / "model.pt", result / "provenance.intoto.jsonl"
        former = hashlib.sha256(model.read_bytes()).hexdigest()
        model.write_bytes(b"poison")
        envelope = json.loads(path.read_text())
        said = base64.b64decode(envelope["payload"]).decode()
        self.assertIn(former, said)
        envelope["payload"] = base64.b64encode(said.replace(former, hashlib.sha256(b"poison").hexdigest()).encode()).decode()
        path.write_text(json.dumps(envelope))
        done = subprocess.run([BIN / "tactus", "verify", result], capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("ok     model.pt: as recorded", done.stdout)
        self.assertIn("whoever may write the files may write the record", done.stdout)

    def test_a_job_reads_any_file_of_the_node(self):
        secret = self.folder.path / "private" / "secret.txt"
        secret.parent.mkdir()
        secret.write_text("the key\n" * 20000)
        attacker = self.start(agent_options=("--sandbox", "off"))
        spec = self.own_spec()
        self.cluster.tactus("cancel", "tiny-1")
        spec.data.text = str(secret)
        made = attacker.unary("tactus.v1.Jobs/CreateJob", attacks.jobs.CreateJobRequest(spec=spec), attacks.jobs.Job)
        self.trains(made.name.rsplit("/", 1)[-1])

    def test_any_user_of_the_machine_takes_the_database(self):
        self.start()
        stolen = self.folder.path / "stolen.db"
        self.cluster.tactus("admin", "backup", stolen)
        self.assertTrue(stolen.read_bytes().startswith(b"SQLite format 3"))

    def test_a_worker_has_what_the_agents_list_names(self):
        os.environ["AWS_ACCESS_KEY_ID"] = "AKIASTOLEN"
        try:
            self.start(agent_options=("--worker-env", "AWS_ACCESS_KEY_ID"))
        finally:
            del os.environ["AWS_ACCESS_KEY_ID"]
        self.trains(self.cluster.submit(self.spec()))
        [worker] = self.cluster.workers("a")
        self.assertIn(b"AKIASTOLEN", pathlib.Path(f"/proc/{worker}/environ").read_bytes())

    def test_bounds_are_what_stops_a_flood(self):
        attacker = self.start("--connections-per-host", "100000", "--calls-per-user", "100000")
        done = threading.Event()
        sessions = [attacker.both(SESSION, attacks.FloodTest.held(None, done), attacks.session.ToAgent) for _ in range(300)]
        # Each is heard out, for the time that a first message may take.
        ends = [attacks.FloodTest.end_of(stream) for stream in sessions]
        done.set()
        self.assertEqual(set(ends), {grpc.StatusCode.DEADLINE_EXCEEDED})


if __name__ == "__main__":
    unittest.main(verbosity=2)
