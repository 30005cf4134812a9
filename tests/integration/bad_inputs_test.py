"""Every bad input of the table gives one clear line and its exit code, and leaves nothing behind."""
import http.server
import os
import re
import socket
import subprocess
import sys
import threading
import unittest

import bad_inputs
from cluster import BIN, SOURCE
from shared_cluster import SharedCluster

sys.path.insert(0, str(SOURCE / "examples/python"))


HEADERS, SETTINGS, PING = 1, 4, 6  # frames of HTTP/2


class BadInputsTest(SharedCluster):
    @classmethod
    def begin(cls):
        (cls.folder.path / "job.yaml").write_text(bad_inputs.JOB_FILE)
        cls.job = cls.cluster.tactus("submit", cls.folder.path / "job.yaml")[1].strip()  # no agent: it waits

    def run_case(self, number, case):
        folder = self.folder.path / f"case-{number}"
        folder.mkdir()
        for name, text in case.files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        words = [re.sub(r"\{([\w./-]+)\}", lambda found: str(folder / found[1]), word) for word in case.words]
        environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder / "state-home")}
        if case.program == "tactus" and not case.environment and "tactus/config.yaml" not in case.files:
            environment["TACTUS_SERVER"] = self.cluster.address
        done = subprocess.run([str(BIN / case.program), *words], env={**environment, **case.environment}, cwd=folder, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
        # An agent tells that it starts before it looks at everything.
        said = [line for line in done.stderr.splitlines() if " info " not in line]
        self.assertEqual(len(said), 1, done.stderr + done.stdout)
        self.assertTrue(said[0].startswith(f"{case.program}: "), said[0])
        for part in case.says:
            self.assertIn(part, said[0])
        self.assertEqual(done.returncode, case.code, said[0])
        self.assertEqual(done.stdout, "")
        self.assertEqual([], [path for path in folder.rglob("*") if path.is_socket()])

    def test_the_table(self):
        cases = list(bad_inputs.commands())
        self.assertGreaterEqual(len(cases) + len(list(bad_inputs.requests())), 300)
        for number, case in enumerate(cases):
            with self.subTest(case.name):
                self.run_case(number, case)
        self.assertEqual(self.cluster.processes["coordinator"].poll(), None)
        jobs = self.cluster.tactus("get", "jobs", "-o", "name")[1].split()
        self.assertEqual(jobs, [self.job])

    def test_what_answers_and_is_no_coordinator_is_said_to_be_that(self):
        def frame(kind, flags, stream, payload=b""):
            return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

        def exactly(connection, count):
            data = b""
            while len(data) < count and (part := connection.recv(count - len(data))):
                data += part
            return data

        def answer(connection):
            """As a proxy for HTTP/2 answers every request: 404."""
            with connection:
                connection.sendall(frame(SETTINGS, 0, 0))
                exactly(connection, len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
                while len(head := exactly(connection, 9)) == 9:
                    payload = exactly(connection, int.from_bytes(head[:3], "big"))
                    if head[3] == HEADERS:
                        connection.sendall(frame(HEADERS, 5, int.from_bytes(head[5:], "big"), b"\x8d"))  # :status 404, the end
                    elif head[3] in (SETTINGS, PING) and not head[4] & 1:
                        connection.sendall(frame(head[3], 1, 0, payload if head[3] == PING else b""))

        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            def serve():
                for _ in range(20):
                    try:
                        answer(listener.accept()[0])
                    except OSError:
                        return

            threading.Thread(target=serve, daemon=True).start()
            port = listener.getsockname()[1]
            done = subprocess.run([str(BIN / "tactus"), "--server", f"127.0.0.1:{port}", "--request-timeout", "2s", "get", "jobs"],
                                  capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(f"what answers at 127.0.0.1:{port} is no coordinator", done.stderr)

    def test_what_speaks_http_1_is_said_to_be_no_coordinator_too(self):
        """The port of a status page, say."""
        class Page(http.server.BaseHTTPRequestHandler):
            def log_message(self, *words):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            port = server.server_address[1]
            done = subprocess.run([str(BIN / "tactus"), "--server", f"127.0.0.1:{port}", "--request-timeout", "2s", "get", "jobs"],
                                  capture_output=True, text=True, timeout=60)
            server.shutdown()
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(f"what answers at 127.0.0.1:{port} is no coordinator", done.stderr)

    def test_requests(self):
        import grpc
        from reflection import Reflected
        with grpc.insecure_channel(self.cluster.address) as channel:
            api = Reflected(channel)
            services = {name: api.service(f"tactus.v1.{name}") for name in ("Jobs", "Nodes", "Artifacts", "Admin")}
            for service, call, request, says, code in bad_inputs.requests():
                with self.subTest(f"{service}/{call} {request}"):
                    with self.assertRaises(grpc.RpcError) as refused:
                        getattr(services[service], call)(request, timeout=10)
                    self.assertEqual(refused.exception.code().name, code, refused.exception.details())
                    self.assertNotIn("\n", refused.exception.details())
                    for part in says:
                        self.assertIn(part, refused.exception.details())
        self.assertEqual(self.cluster.tactus("get", "jobs", "-o", "name")[1].split(), [self.job])


if __name__ == "__main__":
    unittest.main()
