#!/usr/bin/env -S /usr/bin/python3 -B
"""Writes the seeds of tests/fuzz/corpus from real messages: job files of examples/, and what agents say, before each stage
of the job that a target knows (tests/fuzz/small_cluster.h).

usage: tests/fuzz/make_seeds.py        in the repository's root
"""
import hashlib
import hmac
import pathlib
import struct
import subprocess
import tempfile

CORPUS = pathlib.Path("tests/fuzz/corpus")
STAGES = 5
REPORT = """report {
  round: 1 plan_version: 1 rank: %d samples: 32 loss_sum: 64 compute_seconds: 0.1 blocked_seconds: 0.02 round_seconds: 0.2
  bytes_sent: 4096 gradient_norm2_local: 0.03 gradient_norm2_global: 0.02 samples_global: 64 loss_mean_global: 2 epoch: 0
  epoch_consumed: 128 generation: 1 steps: 1 transfer_seconds: 0.01 contributors: 2 samples_gradient_norm2: 1.9
  orthogonality: 0.5 learning_rate: 0.1 gain: 1 progress: 2 }"""
HELLO = """node: "a" incarnation: %d running_workers: [%s] agent_version: "0.1.0" metrics_address: "127.0.0.1:9000"
  devices { name: "cpu:0" kind: DEVICE_KIND_CPU model: "EPYC" } devices { name: "cpu:1" kind: DEVICE_KIND_CPU emulated_speed: 0.5 }
  labels { key: "rack" value: "7" } taints: "spot" taints: "team=vision" """
SAID = "worker_id: %d message { %s }"
FROM_WORKER = {
    "ready": SAID % (1, "ready { parameters: 10 train_samples: 1000 validation_samples: 100 samples_per_second: 50 }"),
    "endpoint": SAID % (1, 'endpoint { generation: 1 endpoint: "10.0.0.1:40000" }'),
    "report": SAID % (1, REPORT % 0),
    "report_of_2": SAID % (2, REPORT % 1),
    "evaluated": SAID % (1, "evaluated { loss: 1.5 accuracy: 0.5 samples: 100 }"),
    "validated": SAID % (1, """validated { generation: 1 rounds: 1 trained_samples: 64 train_seconds: 2 loss: 1.5 accuracy: -1
        samples: 100 seconds: 0.1 best_loss: 1.5 best_accuracy: -1 best_samples: 100 best_rounds: 1 }"""),
    "finished": SAID % (1, """finished { reason: "1 round" rounds: 1 samples: 32 samples_global: 64 train_loss: 2
        train_seconds: 2 files: "model.pt" files: "model.safetensors" parameters_hash: 77 }"""),
    "suspended": SAID % (1, """finished { reason: "paused" rounds: 1 samples: 32 samples_global: 64 suspended: true
        files: "checkpoint.safetensors" parameters_hash: 77 }"""),
    "failed": SAID % (2, 'failed { field: "model.torchscript" message: "not found" }'),
    "lost": SAID % (2, 'failed { message: "a member is gone" lost_generation: 1 }'),
}
EXITED = {
    "exit": "worker_id: 1 exit_code: 1 log_tail: \"Traceback: ...\"",
    "signal": "worker_id: 2 exit_code: -1 signal: 9",
    "never_started": "worker_id: 2 exit_code: 127 log_tail: \"no such file\"",
}
HELLOS = {"again": HELLO % (1, "1, 2"), "new_process": HELLO % (2, ""), "strays": HELLO % (2, "1, 7")}
FROM_AGENT = {
    "heartbeat": "heartbeat {}",
    "acknowledgement": "acknowledged: 3",
    "report": "sequence: 7 acknowledged: 2 from_worker { %s }" % FROM_WORKER["report"],
    "faults": 'sequence: 7 acknowledged: 2 device_faults { faults { device: "cpu:1" reason: "the driver lost it" } }',
    "leaving": 'sequence: 7 acknowledged: 2 leaving { reason: "SIGTERM" within { seconds: 60 } }',
    "gap": "sequence: 900 worker_exited { worker_id: 1 }",
    "hello_again": "hello { node: \"a\" incarnation: 1 }",
}
LOGS = {
    "lines": 'worker_id: 1 job_id: "alpha-1" text: "epoch 1\\nepoch 2\\n"',
    "offset": 'worker_id: 2 job_id: "alpha-1" offset: 70000 text: "later\\n"',
    "elsewhere": 'worker_id: 1 job_id: "../alpha-1" text: "#0 5\\n"',
}
UPLOADS = {
    "whole": 'job_id: "alpha-1" path: "model.pt" size_bytes: 5 data: "hello" '
             'sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"',
    "no_hash": 'job_id: "alpha-1" path: "snapshots/12.safetensors" size_bytes: 5 data: "hello"',
    "part": 'job_id: "alpha-1" path: "model.pt" size_bytes: 500 data: "hello" offset: 0 '
            'sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"',
    "traversal": 'job_id: "alpha-1" path: "../../etc/passwd" size_bytes: 1 data: "x"',
}

TOKENS = {
    "token": f" tactus1-{'0123456789abcdef' * 4}-{'0f' * 16}\n",
    "node": "spiffe://tactus/node/gpu-7",
    "user": "spiffe://lab.example/user/alice@example.org",
    "coordinator": "spiffe://tactus/coordinator",
    "revoked": "# left on 2 December\nuser/alice\nnode/gpu-7\nserial 4f6a\ncoordinator\n",
}
POLICIES = {
    "lists": '{"viewers": ["*"], "submitters": ["alice", "bob"], "admins": ["carol"], "nodes": ["a", "gpu-8"]}',
    "escaped": '{"admins": ["\\u0061lice"], "nodes": []}',
    "wrong": '{"nodes": ["A"], "viewers": 7}',
}
# Extensions of certificates: each a seed, behind the byte that says so.
NAMES = {"node": "URI:spiffe://tactus/node/a", "coordinator": "URI:spiffe://tactus/coordinator,DNS:*.lab,IP:10.0.0.1,IP:::1",
         "two": "URI:spiffe://tactus/node/a,URI:spiffe://tactus/user/a"}


def encode(message, text):
    return subprocess.run(["protoc", "--proto_path=proto", f"--encode=tactus.agent.v1.{message}",
                           "proto/tactus/agent/v1/session.proto"], input=text.encode(), capture_output=True, check=True).stdout


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def staged(target, message, seeds):
    for name, text in seeds.items():
        data = encode(message, text)
        for stage in range(STAGES):
            write(target, f"{name}_{stage}", bytes([stage]) + data)


def greetings():
    """What members say first, and answer, signed by a secret that the target does not have."""
    said = {"hello": b"TMG1" + struct.pack("<QIII", 3, 2, 1, 0) + bytes(range(16)),
            "of_another_generation": b"TMG1" + struct.pack("<QIII", 2, 2, 1, 0) + bytes(range(16)),
            "for_another": b"TMG1" + struct.pack("<QIII", 3, 2, 0, 9) + bytes(range(16)),
            "answer": bytes(range(16))}
    for name, text in said.items():
        signed = text + hmac.new(b"a guess", text, hashlib.sha256).digest()
        for how in range(16):
            write("greeting", f"{name}_{how}", bytes([how]) + signed + bytes(32))
    write("greeting", "tls", bytes([2]) + bytes.fromhex("16030100050100000101"))


def openssl(*words):
    return subprocess.run(["openssl", *words], capture_output=True, check=True).stdout


def certificates():
    """Keys are chance: those that are there stay."""
    if (CORPUS / "certificate").exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in (("p256", ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]), ("ed25519", ["ed25519"]),
                           ("weak", ["rsa", "-pkeyopt", "rsa_keygen_bits:1024"])):
            key = f"{folder}/{name}"
            openssl("genpkey", "-algorithm", *kind, "-out", key)
            write("certificate", f"request_{name}", b"\1" + openssl("req", "-new", "-key", key, "-subj", "/CN=x", "-outform", "DER"))
        for name, names in NAMES.items():
            write("certificate", name, b"\0" + openssl(
                "req", "-x509", "-new", "-key", f"{folder}/p256", "-subj", "/CN=x", "-days", "7", "-outform", "DER",
                "-addext", f"subjectAltName={names}"))


def main():
    for name, text in TOKENS.items():
        write("token", name, text.encode())
    for name, text in POLICIES.items():
        write("policy", name, text.encode())
    certificates()
    staged("hello", "Hello", HELLOS)
    staged("from_agent", "FromAgent", FROM_AGENT)
    staged("from_worker", "FromWorker", FROM_WORKER)
    staged("worker_exited", "WorkerExited", EXITED)
    staged("log_lines", "LogLines", LOGS)
    greetings()
    for name, text in UPLOADS.items():
        write("upload_header", name, encode("UploadArtifactRequest", text))
    for path in sorted(pathlib.Path("examples").glob("*.yaml")):
        write("job_file", path.stem, path.read_bytes())


main()
