"""What an attacker does, one test each, named so: none of it succeeds. Those of processes on a node (programs that kill or read
their neighbours) are escape_test.py's. That they succeed where nothing protects is attacks_unprotected_test.py's."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc

from cluster import BIN, SOURCE, Cluster, Folder, processes_of, tiny_spec, wait_until

WHO = {"coordinator": ["--coordinator", "--dns", "localhost"], "a": ["--node", "a"], "b": ["--node", "b"], "user": ["--user", "alice"],
       "bob": ["--user", "bob"], "vera": ["--user", "vera"], "admin": ["--user", "admin"]}
POLICY = {"viewers": ["vera"], "submitters": ["alice", "bob"], "admins": ["admin"], "nodes": ["*"]}
DENIED = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)


def generated():
    """The messages of the API, made of the protos here."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tactus-proto-"))
    protos = [str(path.relative_to(SOURCE / "proto")) for path in (SOURCE / "proto").glob("**/*.proto")]
    subprocess.run(["protoc", "-I", SOURCE / "proto", f"--python_out={folder}", *protos], check=True)
    sys.path.insert(0, str(folder))
    try:
        from tactus.agent.v1 import session_pb2
        from tactus.v1 import artifacts_pb2, jobs_pb2, spec_pb2
    finally:
        sys.path.pop(0)
        shutil.rmtree(folder)
    return session_pb2, artifacts_pb2, jobs_pb2, spec_pb2


session, artifacts, jobs, spec = generated()


class Attacker:
    """Calls a coordinator, byte by byte its own client."""

    def __init__(self, cluster, tls=None, certificate=True, plain=False):
        port = cluster.address.rsplit(":", 1)[1]
        options = [("grpc.ssl_target_name_override", "localhost"), ("grpc.use_local_subchannel_pool", 1)]
        if plain:
            self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options)
            return
        read = lambda name: (tls / name).read_bytes()
        keys = {"private_key": read("key.pem"), "certificate_chain": read("cert.pem")} if certificate else {}
        self.channel = grpc.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials(read("ca.pem"), **keys), options)

    def unary(self, method, request, answer, timeout=10):
        return self.channel.unary_unary(f"/{method}", type(request).SerializeToString, answer.FromString)(request, timeout=timeout)

    def up(self, method, requests, answer, timeout=20):
        call = self.channel.stream_unary(f"/{method}", lambda message: message.SerializeToString(), answer.FromString)
        return call(iter(requests), timeout=timeout)

    def both(self, method, requests, answer, timeout=60):
        call = self.channel.stream_stream(f"/{method}", lambda message: message.SerializeToString(), answer.FromString)
        return call(requests, timeout=timeout)

    def down(self, method, request, answer, timeout=60):
        return self.channel.unary_stream(f"/{method}", type(request).SerializeToString, answer.FromString)(request, timeout=timeout)


def code_of(call):
    """What a call ends with."""
    try:
        call()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


class AttackTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()
        self.cluster = Cluster(self.folder.path)
        self.tactus("admin", "init-ca", "--out", self.folder.path / "ca")
        for who, words in WHO.items():
            self.cluster.tls[who] = self.folder.path / f"{who}-tls"
            self.tactus("admin", "issue", *words, "--ca", self.folder.path / "ca", "--out", self.cluster.tls[who])
        self.policy = self.folder.path / "policy.json"
        self.policy.write_text(json.dumps(POLICY))

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def tactus(self, *words, code=0):
        done = subprocess.run([str(BIN / "tactus"), *map(str, words)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self, *options, agents=("a",), agent_options=()):
        self.cluster.start_coordinator(options=("--policy", self.policy, *options))
        for node in agents:
            self.cluster.start_agent(node, 1, options=agent_options)
        wait_until(lambda: len(self.cluster.tactus("get", "nodes", "-o", "name")[1].split()) == len(agents), 20, "all joined")

    def attacker(self, who, **more):
        return Attacker(self.cluster, self.cluster.tls[who], **more)

    def spec(self, **more):
        return {**tiny_spec(self.corpus, time="10m"), "workers": {"min": 1, "max": 1}, **more}

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def submit_and_train(self, **more):
        job = self.cluster.submit(self.spec(**more))
        wait_until(lambda: self.rounds(job) >= 5, 60, "it trains")
        return job

    def audit(self):
        lines = self.tactus("admin", "audit", "--state-dir", self.folder.path / "coordinator").splitlines()
        return [json.loads(line) for line in lines]

    def verify_audit(self):
        return self.tactus("admin", "audit", "--state-dir", self.folder.path / "coordinator", "--verify")


class StrangersTest(AttackTest):
    def test_a_stranger_submits_code_that_nodes_would_run(self):
        self.start()
        request = jobs.CreateJobRequest(spec=spec.JobSpec(name="evil"), request_id="1")
        method = "tactus.v1.Jobs/CreateJob"
        for stranger in (Attacker(self.cluster, plain=True), self.attacker("user", certificate=False)):
            self.assertEqual(code_of(lambda: stranger.unary(method, request, jobs.Job)), grpc.StatusCode.UNAVAILABLE)
        self.assertIn(code_of(lambda: self.attacker("vera").unary(method, request, jobs.Job)), DENIED)
        self.assertIn(code_of(lambda: self.attacker("a").unary(method, request, jobs.Job)), DENIED)
        self.assertEqual(self.cluster.tactus("get", "jobs", "-o", "name")[1], "")

    def test_a_stranger_or_a_user_joins_as_an_agent(self):
        self.start()
        hello = session.FromAgent(hello=session.Hello(node="fast", incarnation=7))
        method = "tactus.agent.v1.AgentSession/Session"
        for stranger in (Attacker(self.cluster, plain=True), self.attacker("user", certificate=False)):
            self.assertEqual(code_of(lambda: list(stranger.both(method, iter([hello]), session.ToAgent))), grpc.StatusCode.UNAVAILABLE)
        self.assertIn(code_of(lambda: list(self.attacker("bob").both(method, iter([hello]), session.ToAgent))), DENIED)
        self.assertEqual(self.cluster.tactus("get", "nodes", "-o", "name")[1].split(), ["a"])

    def test_a_node_takes_over_anothers_name(self):
        self.start()
        job = self.submit_and_train()
        hello = session.FromAgent(hello=session.Hello(node="a", incarnation=7))
        stolen = lambda: list(self.attacker("b").both("tactus.agent.v1.AgentSession/Session", iter([hello]), session.ToAgent))
        self.assertEqual(code_of(stolen), grpc.StatusCode.PERMISSION_DENIED)
        so_far = self.rounds(job)
        wait_until(lambda: self.rounds(job) > so_far, 30, "the job goes on")
        self.assertEqual(len(self.cluster.job(job)["attempts"]), 1)

    def test_somebody_on_the_wire_reads_and_changes_what_is_said(self):
        self.start()
        seen = bytearray()
        target = tuple(self.cluster.address.rsplit(":", 1))
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=self.listen_in, args=(server, (target[0], int(target[1])), seen), daemon=True).start()
            address = f"127.0.0.1:{server.getsockname()[1]}"
            path = self.folder.path / "job.yaml"
            path.write_text(json.dumps(self.spec()))
            done = subprocess.run([BIN / "tactus", "--server", address, "--tls-dir", self.cluster.tls["user"], "submit", path, "--label",
                                   "project=SECRETPROJECT"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(seen), 1000)
        for word in (b"SECRETPROJECT", b"bytes-lm", b"alice"):
            self.assertNotIn(word, seen)

    @staticmethod
    def listen_in(server, target, seen):
        def pump(source, sink):
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    seen.extend(data)
                    sink.sendall(data)
        try:
            while True:
                here = server.accept()[0]
                there = socket.create_connection(target)
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()
        except OSError:
            return  # the test is over


class InsidersTest(AttackTest):
    def test_another_node_or_user_replaces_a_jobs_result(self):
        self.start(agents=("a", "b"))
        job = self.submit_and_train()
        owner = self.cluster.job(job)["attempts"][-1]["nodes"]
        other = "b" if owner == ["a"] else "a"
        forged = session.UploadArtifactRequest(job_id=job, path="model.pt", size_bytes=6, data=b"forged")
        bring = lambda who: code_of(lambda: self.attacker(who).up("tactus.agent.v1.AgentSession/UploadArtifact", [forged],
                                                                  session.UploadArtifactResponse))
        for who in (other, "bob", "admin"):
            self.assertIn(bring(who), DENIED, who)
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED", "SUCCEEDED"])
        result = self.folder.path / "result"
        self.cluster.tactus("download", job, "--to", result)
        self.assertNotEqual((result / "model.pt").read_bytes(), b"forged")

    def test_a_poisoned_result_is_given_to_a_user(self):
        """Models are programs: what they are is known before they are loaded."""
        self.start()
        job = self.submit_and_train()
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED", "SUCCEEDED"])
        result = self.folder.path / "result"
        self.cluster.tactus("download", job, "--to", result)
        self.assertIn("signature: by spiffe://tactus/coordinator", self.tactus("verify", result, "--ca", self.folder.path / "ca/ca.pem"))
        self.assertIn("user/alice", self.tactus("--tls-dir", self.cluster.tls["bob"], "verify", result))
        record = json.loads((result / "provenance.intoto.jsonl").read_text())
        self.assertEqual(record["payloadType"], "application/vnd.in-toto+json")

        model = result / "model.pt"
        content = model.read_bytes()
        model.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        self.assertIn("WRONG  model.pt: is another one", self.tactus("verify", result, "--ca", self.folder.path / "ca/ca.pem", code=1))
        model.write_bytes(content)
        (result / "helper.py").write_text("import os")
        self.assertIn("WRONG  helper.py: is not in the record", self.tactus("verify", result, "--ca", self.folder.path / "ca/ca.pem", code=1))
        (result / "helper.py").unlink()
        # Another authority's coordinator vouches for nothing here.
        self.tactus("admin", "init-ca", "--out", self.folder.path / "other")
        self.assertIn("has not signed", self.tactus("verify", result, "--ca", self.folder.path / "other/ca.pem", code=1))
        # Nor does this one's certificate from when on somebody else had its key.
        asked = ("verify", result, "--ca", self.folder.path / "ca/ca.pem", "--revoked", self.cluster.tls["coordinator"] / "revoked")
        signed = int(time.time())  # what is of one second with it has no certain order, and is refused
        wait_until(lambda: int(time.time()) > signed, 5, "another second")
        self.tactus("admin", "revoke", "--coordinator", "--in", self.cluster.tls["coordinator"])
        self.assertIn("and by the record's own word signed before", self.tactus(*asked))
        self.tactus("admin", "revoke", "--coordinator", "--since", "2020-01-01T00:00:00Z", "--in", self.cluster.tls["coordinator"])
        self.assertRegex(self.tactus(*asked, code=1), "WRONG  signature: is by certificate .* is revoked since 2020-01-01T00:00:00Z")

    def test_a_job_reads_files_of_the_node_by_naming_them_as_data(self):
        secret = self.folder.path / "private" / "secret.txt"
        secret.parent.mkdir()
        secret.write_text("the key\n" * 20000)
        link = self.corpus.parent / "data" / "link.txt"
        link.parent.mkdir()
        link.symlink_to(secret)
        self.start(agent_options=("--data-roots", str(link.parent)))
        # Not by tactus submit, which uploads what its own user may read.
        alice = self.attacker("user")
        good = alice.unary("tactus.v1.Jobs/GetJob", jobs.GetJobRequest(name=self.submit_and_train()), jobs.Job).spec
        for path in (secret, link):
            good.data.text = str(path)
            made = alice.unary("tactus.v1.Jobs/CreateJob", jobs.CreateJobRequest(spec=good), jobs.Job)
            self.cluster.tactus("cancel", "tiny-1", check=False)  # its device
            done = self.cluster.wait(made.name.rsplit("/", 1)[-1], ["FAILED"], 60)
            self.assertRegex(done["state_reason"], "--data-roots|leads out of", str(path))

    def test_somebody_else_ends_a_users_job(self):
        self.start()
        job = self.submit_and_train()
        for words in (["cancel", job], ["delete", job, "--yes"], ["pause", job], ["drain", "a"]):
            self.assertEqual(self.cluster.tactus(*words, who="bob", check=False)[0], 5, words)
        so_far = self.rounds(job)
        wait_until(lambda: self.rounds(job) > so_far, 30, "it trains on")

    def test_a_user_on_the_coordinators_machine_takes_the_database(self):
        self.start()
        stolen = self.folder.path / "stolen.db"
        self.assertEqual(self.cluster.tactus("admin", "backup", stolen, check=False)[0], 5)
        self.assertFalse(stolen.exists())

    def test_a_local_user_reads_what_the_coordinator_keeps(self):
        """In a folder that a service manager made for everybody to enter."""
        state = self.folder.path / "coordinator"
        state.mkdir(mode=0o755)
        state.chmod(0o755)
        mask = os.umask(0)
        try:
            self.start()
            job = self.submit_and_train()
        finally:
            os.umask(mask)
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED", "SUCCEEDED"])
        files = [path for path in state.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 5)
        for path in files:
            self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path)

    def test_a_job_reads_the_agents_secrets_in_its_environment(self):
        secrets = {"AWS_ACCESS_KEY_ID": "AKIASTOLEN", "MY_PASSPHRASE": "stolen-1", "KUBECONFIG": "stolen-2", "SOME_API_KEY": "stolen-3"}
        os.environ.update(secrets)
        try:
            self.start()
        finally:
            for name in secrets:
                del os.environ[name]
        self.submit_and_train()
        [worker] = self.cluster.workers("a")
        environment = pathlib.Path(f"/proc/{worker}/environ").read_bytes()
        self.assertIn(b"PATH=", environment)
        for name, value in secrets.items():
            self.assertNotIn(value.encode(), environment, name)


class FloodTest(AttackTest):
    def test_a_user_fills_the_disk_with_uploads(self):
        self.start("--upload-bytes-per-user", "1MiB")
        job = self.submit_and_train()
        upload = lambda who, byte, size: code_of(lambda: self.attacker(who).up(
            "tactus.v1.Artifacts/UploadBlob", [artifacts.UploadBlobRequest(sha256=byte * 64, size_bytes=size, data=b"x")], artifacts.Blob))
        # Whether all of it comes or not: what was said is taken off.
        self.assertEqual(upload("bob", "a", 800 << 10), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(upload("bob", "b", 800 << 10), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(upload("bob", "c", 64 << 30), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(upload("user", "d", 800 << 10), grpc.StatusCode.INVALID_ARGUMENT)  # alice has her own
        self.cluster.kill("coordinator")
        port = self.cluster.address.rsplit(":", 1)[1]
        self.cluster.start_coordinator(listen=f"127.0.0.1:{port}", options=("--policy", self.policy, "--disk-floor", "100000GiB"))
        wait_until(lambda: self.cluster.job(job)["state"] == "JOB_STATE_RUNNING", 30, "it goes on")
        path = self.folder.path / "job.yaml"
        path.write_text(json.dumps(self.spec()))
        code, _, err = self.cluster.tactus("submit", path, check=False)
        self.assertNotEqual(code, 0)
        self.assertRegex(err, r"job: the coordinator's disk has \d+ MiB left, and the 102400000 MiB below which nothing is accepted")
        self.assertEqual(upload("user", "e", 1), grpc.StatusCode.RESOURCE_EXHAUSTED)
        # What the job has made comes in all the same.
        self.cluster.tactus("cancel", job)
        self.assertIn("result", self.cluster.wait(job, ["CANCELLED", "SUCCEEDED"]))
        self.cluster.tactus("download", job, "--to", self.folder.path / "result")

    def test_one_host_invents_nodes_until_the_table_is_full(self):
        self.cluster.tls.clear()  # plainly, where names are free
        self.cluster.start_coordinator(options=("--nodes-per-host", "20"))
        attacker = Attacker(self.cluster, plain=True)
        streams, codes = [], []
        for number in range(40):
            device = {"name": "cpu:0", "kind": 1}
            hello = session.FromAgent(hello=session.Hello(node=f"invented-{number}", incarnation=number + 1))
            hello.hello.devices.add(name=device["name"], kind=device["kind"])
            done = threading.Event()
            stream = attacker.both("tactus.agent.v1.AgentSession/Session", self.held(hello, done), session.ToAgent)
            streams.append((stream, done))
            codes.append(code_of(lambda: next(stream)))
        self.assertEqual(codes.count(grpc.StatusCode.OK), 20, codes)
        self.assertEqual(codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED), 20, codes)
        for stream, done in streams:
            done.set()
            stream.cancel()

    @staticmethod
    def held(message, done):
        """A stream of one message, or of none, that stays open."""
        if message is not None:
            yield message
        done.wait(60)

    def test_connections_sessions_and_streams_by_the_thousand_while_a_job_trains(self):
        """By a node and a user with certificates, and by a host without; another user works on."""
        self.start("--connections-per-host", "64", "--calls-per-user", "50")
        job = self.submit_and_train()
        done = threading.Event()
        bob, node = self.attacker("bob"), self.attacker("b")
        watch = jobs.WatchJobRequest(name=job)
        began = time.monotonic()
        sessions = [node.both("tactus.agent.v1.AgentSession/Session", self.held(None, done), session.ToAgent) for _ in range(300)]
        watches = [bob.down("tactus.v1.Jobs/WatchJob", watch, jobs.JobEvent) for _ in range(300)]
        silent = [self.dial("127.0.0.2") for _ in range(300)]

        so_far = self.rounds(job)
        seen = []
        while time.monotonic() - began < 14:
            time.sleep(1)
            seen.append(self.rounds(job))  # alice's, whose calls are answered
        increases = [later - earlier for earlier, later in zip([so_far, *seen], seen)]
        self.assertTrue(all(more > 0 for more in increases), f"the job stood still: {increases}")

        done.set()
        ends = [self.end_of(stream) for stream in sessions]
        late, many = ends.count(grpc.StatusCode.DEADLINE_EXCEEDED), ends.count(grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual((late, many), (50, 250), f"half-open sessions: {ends}")
        for stream in watches[1:]:
            stream.cancel()
        closed = sum(self.is_closed(connection) for connection in silent)
        self.assertEqual(closed, 300, "236 at once, and the others when they had not shaken hands in 10 s")
        self.assertEqual(self.cluster.job(job)["state"], "JOB_STATE_RUNNING")
        self.assertEqual(len(self.cluster.job(job)["attempts"]), 1)
        lines = self.audit()
        self.assertIn("intact: ", self.verify_audit())
        refused = [line for line in lines if line["code"] == "RESOURCE_EXHAUSTED"]
        self.assertIn("node/b", {line["who"] for line in refused})
        self.assertIn("user/bob", {line["who"] for line in refused})
        self.assertTrue(any(line["method"] == "connection" and line["peer"] == "127.0.0.2" for line in refused), refused[-3:])
        self.assertNotIn("user/alice", {line["who"] for line in refused})

    def dial(self, host):
        connection = socket.socket()
        self.addCleanup(connection.close)
        connection.bind((host, 0))
        connection.connect(("127.0.0.1", int(self.cluster.address.rsplit(":", 1)[1])))
        return connection

    @staticmethod
    def is_closed(connection):
        connection.settimeout(5)
        try:
            while connection.recv(4096):
                pass
            return True
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        finally:
            connection.close()

    @staticmethod
    def end_of(stream):
        try:
            for _ in stream:
                pass
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK


if __name__ == "__main__":
    unittest.main()
