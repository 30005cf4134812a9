"""Workers that are told a secret of their generation, under a scripted agent and coordinator: strangers come while they wait
for one another, one of them is told another secret, and what they say to each other passes by where it can be read."""
import base64
import hashlib
import hmac
import socket
import struct
import threading
import unittest

from regrouped_workers_test import ScriptedGroups


def secret_of(generation):
    return hashlib.sha256(f"generation {generation}".encode()).digest()


def place_of(endpoint):
    """(port, word) of an endpoint of IPv4, as it travels."""
    bytes_ = base64.b64decode(endpoint)
    assert bytes_[:1] == b"4", bytes_
    return struct.unpack(">H", bytes_[17:19])[0], struct.unpack(">Q", bytes_[19:27])[0]


def with_port(endpoint, port):
    bytes_ = base64.b64decode(endpoint)
    return base64.b64encode(bytes_[:17] + struct.pack(">H", port) + bytes_[19:]).decode()


def hello(secret, word, generation, sender, receiver, lane=0):
    """What a member of the generation says first."""
    said = b"TMG1" + struct.pack("<QIII", generation, sender, receiver, lane) + bytes(16)
    signed = b"tactus mesh hello\0" + struct.pack("<Q", word) + said
    return said + hmac.new(secret, signed, hashlib.sha256).digest()


class Tap(threading.Thread):
    """Passes on what comes to a port, and keeps it: somebody on the way."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.seen, self.sockets = port, bytearray(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.start()

    def run(self):
        while True:
            try:
                came = self.listener.accept()[0]
            except OSError:
                return
            on = socket.create_connection(("127.0.0.1", self.port))
            self.sockets += [came, on]
            for one, other in ((came, on), (on, came)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        try:
            while data := one.recv(1 << 16):
                self.seen += data
                other.sendall(data)
        except OSError:
            pass
        for each in (one, other):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()
        for each in self.sockets:
            each.close()


class MeshWorkersTest(ScriptedGroups):
    encrypted = False

    def setUp(self):
        super().setUp()
        self.told = {}  # secrets that are not those of the generation, by generation and rank
        self.strangers = []

    def tearDown(self):
        for each in self.strangers:
            each.close()
        super().tearDown()

    def mesh(self, generation, rank):
        secret = self.told.get((generation, rank), secret_of(generation))
        return {"secret": base64.b64encode(secret).decode(), "encrypted": self.encrypted}

    def endpoints_of(self, group, generation):
        """All of them, while the group waits for its peers."""
        endpoints = []
        for worker in group:
            said = worker.await_kind("endpoint")
            while int(said["generation"]) < generation:
                said = worker.await_kind("endpoint")
            endpoints.append(said["endpoint"])
        return endpoints

    def tell_peers(self, group, generation, endpoints):
        for worker in group:
            worker.say({"peers": {"generation": str(generation), "endpoints": endpoints}})

    def say(self, endpoint, said):
        connection = socket.create_connection(("127.0.0.1", place_of(endpoint)[0]))
        connection.sendall(said)
        self.strangers.append(connection)
        return connection

    def log(self, worker):
        return (self.folder.path / f"{worker.name}.log").read_text()

    def strangers_come(self, endpoints, generation):
        """A dozen to each: they say nothing, nonsense, or what a member of a former generation, or one without the secret, says."""
        for rank, endpoint in enumerate(endpoints):
            word = place_of(endpoint)[1]
            sender = rank + 1
            for said in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x01", bytes(5000),
                         hello(b"a guess", word, generation, sender, rank),
                         hello(secret_of(generation - 1), word, generation - 1, sender, rank),
                         hello(secret_of(generation - 1), word, generation, sender, rank)) * 2:
                self.say(endpoint, said)

    def test_strangers_come_to_both_groups_and_into_none(self):
        group = self.start(3)
        self.tell_group(group, 1)
        endpoints = self.endpoints_of(group, 1)
        self.strangers_come(endpoints, 1)
        self.tell_peers(group, 1, endpoints)
        group[0].await_round(20)
        # Nobody listens while they train.
        for endpoint in endpoints:
            with self.assertRaises(OSError):
                self.say(endpoint, b"")
        group.pop(1).kill()
        rounds = self.await_loss(group, 1)

        self.tell_group(group, 2, rounds)
        endpoints = self.endpoints_of(group, 2)
        self.strangers_come(endpoints, 2)
        self.tell_peers(group, 2, endpoints)

        self.check_end(group)
        lines = [line for line in self.log(group[0]).splitlines() if "to this worker" in line]
        self.assertEqual(len(lines), 2, lines)
        for line in lines:
            self.assertRegex(line, r"^\d+ connections to this worker were refused, the first from 127\.0\.0\.1: ")

    def test_who_is_told_another_secret_comes_into_no_group(self):
        group = self.start(3)
        self.told[(1, 2)] = secret_of(0)
        self.form(group, 1)
        for worker in group:
            lost = worker.await_kind("group_lost")
            self.assertRegex(lost["reason"], "rank [012]: ")

        self.form(group, 2)

        self.check_end(group)

    def test_whoever_answers_in_a_members_place_is_not_believed(self):
        group = self.start(2)
        self.tell_group(group, 1)
        endpoints = self.endpoints_of(group, 1)
        impostor = socket.create_server(("127.0.0.1", 0))
        self.strangers.append(impostor)
        self.tell_peers(group, 1, [with_port(endpoints[0], impostor.getsockname()[1]), endpoints[1]])
        connection = impostor.accept()[0]
        first = connection.recv(4096)
        connection.sendall(first)  # reflected
        self.strangers.append(connection)

        lost = group[1].await_kind("group_lost")

        self.assertIn("rank 0: ", lost["reason"])
        self.assertIsNotNone(group[0].await_kind("group_lost"))
        self.form(group, 2)
        self.check_end(group)

    def test_parameters_pass_by_in_clear_unless_they_are_encrypted(self):
        first = self.start(1)
        self.form(first, 1)
        self.check_end(first)
        weights = first[0].output / "model.safetensors"
        content = weights.read_bytes()
        begin = 8 + struct.unpack("<Q", content[:8])[0]
        parts = [content[at:at + 32] for at in range(begin, len(content) - 32, 64)]
        parts = [part for part in parts if len(set(part)) > 16]
        self.assertGreater(len(parts), 20)
        self.spec["model"]["weights"] = str(weights)
        group = self.start(1)
        del self.spec["model"]["weights"]  # who holds others is sent them
        group += self.start(1)
        self.tell_group(group, 1)
        endpoints = self.endpoints_of(group, 1)
        tap = Tap(place_of(endpoints[0])[0])
        self.strangers.append(tap)
        self.tell_peers(group, 1, [with_port(endpoints[0], tap.listener.getsockname()[1]), endpoints[1]])

        self.check_end(group)

        seen = bytes(tap.seen)
        self.assertGreater(len(seen), 100_000)
        found = sum(part in seen for part in parts)
        if self.encrypted:
            self.assertEqual(found, 0)
        else:
            self.assertGreater(found, len(parts) // 2, "the tap does not see what is in clear")


class EncryptedMeshWorkersTest(MeshWorkersTest):
    encrypted = True


if __name__ == "__main__":
    unittest.main(verbosity=2)
