"""Models, checkpoints and results in a bucket: of one coordinator, and of two that share nothing but it and a database."""
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

from cluster import BIN, SOURCE, Cluster, Folder, processes_of, tiny_spec, wait_until
from sharing import Postgres, SharedCluster
from sharing import missing as database_missing

sys.path.insert(0, str(SOURCE / "tests/support"))
import s3_server  # noqa: E402  pylint: disable=wrong-import-position

SECRET = s3_server.KEYS[1]


def content_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*"))
            if path.is_file() and path.name != "provenance.intoto.jsonl"}


class BucketsTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.path = self.folder.path
        self.server = s3_server.Server()
        self.bucket = self.server.bucket
        self.addCleanup(self.server.stop)
        os.environ.update(AWS_ACCESS_KEY_ID=s3_server.KEYS[0], AWS_SECRET_ACCESS_KEY=SECRET)
        self.addCleanup(lambda: [os.environ.pop(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")])
        self.endpoint = ["--blobs-endpoint", self.server.endpoint]
        self.blobs = ["--blobs", "s3://test/fleet", *self.endpoint]
        self.cluster = Cluster(self.path)
        self.database = None

    def tearDown(self):
        self.cluster.stop()
        if self.database:
            self.database.remove()
        left = processes_of(self.path)
        logs = "".join(path.read_text(errors="replace") for path in self.path.glob("*.log"))
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")
        self.assertNotIn(SECRET, logs)

    def objects(self):
        with self.bucket.lock:
            return {key for key in self.bucket.objects if key.startswith("fleet/blobs/")}

    def whole_here(self, name):
        """Files that lie whole in a coordinator's folder."""
        return [path for path in (self.path / name / "blobs").glob("??/*") if path.is_file()]

    def download(self, job, name):
        self.cluster.tactus("download", job, "--to", self.path / name)
        return content_of(self.path / name)

    def rounds(self, job):
        code, out, _ = self.cluster.tactus("get", "job", job, "-o", "json", check=False)
        return int(json.loads(out).get("progress", {}).get("rounds", 0)) if code == 0 else -1

    def go_wrong(self, **fault):
        """Once, as s3_server.py has it; nothing: all is well again."""
        with self.bucket.lock:
            self.bucket.faults = [fault] if fault else []

    def coordinator(self, *words, environment=None, state="refused"):
        done = subprocess.run([str(word) for word in (BIN / "tactus-coordinator", "--listen", "127.0.0.1:0", "--metrics-listen",
                                                      "off", "--state-dir", self.path / state, *words)],
                              capture_output=True, text=True, timeout=60, check=False, env=environment or dict(os.environ))
        return done.returncode, done.stderr

    @unittest.skipIf(database_missing(), database_missing())
    def test_another_coordinator_goes_on_with_the_same_bucket(self):
        self.database = Postgres().start()
        self.cluster = cluster = SharedCluster(self.path, self.database, "2s", files=self.blobs)
        cluster.start_both()
        cluster.start_agent("a", 2)
        corpus = self.folder.corpus()
        over = cluster.submit(tiny_spec(corpus, rounds=100))
        done = cluster.wait(over, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        before = self.download(over, "before")
        for artifact in done["result"]["artifacts"]:
            self.assertIn(f"fleet/blobs/{artifact['sha256'][:2]}/{artifact['sha256']}", self.objects())
        self.assertEqual(self.whole_here("one"), [])
        waits = cluster.submit(tiny_spec(corpus, time="10m"))
        cluster.wait(waits, ["RUNNING"])
        wait_until(lambda: self.rounds(waits) > 20, 60, "rounds are reported")
        cluster.tactus("pause", waits)
        kept = int(cluster.wait(waits, ["PAUSED"])["checkpoint_rounds"])
        trains = cluster.submit(tiny_spec(corpus, time="10m"))
        cluster.wait(trains, ["RUNNING"])
        workers = wait_until(lambda: sorted(cluster.workers("a")), 20, "it trains")

        former = cluster.leader()
        moment = time.monotonic()
        cluster.kill(former)
        wait_until(lambda: cluster.leader() not in (None, former), 30, "the other leads")
        wait_until(lambda: self.rounds(trains) > 0, 60, "rounds are reported to it")
        print(f"rounds after {time.monotonic() - moment:.1f} s", flush=True)

        self.assertEqual(sorted(cluster.workers("a")), workers)
        self.assertEqual(self.download(over, "after"), before)
        cluster.tactus("cancel", trains)
        cluster.wait(trains, ["CANCELLED"])
        self.assertIn("summary.json", self.download(trains, "cancelled"))
        # On a node that has nothing of it: data and checkpoint come from the bucket.
        cluster.tactus("cordon", "a")
        cluster.start_agent("b", 2)
        with self.bucket.lock:
            self.bucket.requests.clear()
        cluster.tactus("resume", waits)
        cluster.wait(waits, ["RUNNING"])
        wait_until(lambda: self.rounds(waits) > kept + 20, 60, "it goes on")
        told = json.loads(cluster.tactus("get", "rounds", waits, "-o", "json")[1])
        numbers = [int(one.get("round", 0)) for one in told.get("rounds", told)]
        self.assertEqual(len(numbers), len(set(numbers)), "rounds of before were trained again")
        with self.bucket.lock:
            self.assertTrue(any(request.startswith("GET /test/fleet/blobs/") for request in self.bucket.requests))
        cluster.tactus("cancel", waits)
        self.assertGreater(int(cluster.wait(waits, ["CANCELLED"])["result"]["rounds"]), kept + 20)
        cluster.tactus("admin", "integrity-check")
        keys = {(self.path / name / "mesh-key").read_bytes() for name in ("one", "two")}
        self.assertEqual(len(keys), 1, "groups would be told two secrets")
        # And back again, by a coordinator that begins with an empty folder.
        subprocess.run(["rm", "-r", self.path / former], check=True)
        cluster.start_sharing(former)
        cluster.kill(cluster.leader())
        wait_until(lambda: cluster.leader() == former, 30, "the former leads again")
        wait_until(lambda: cluster.tactus("get", "jobs", check=False)[0] == 0, 30, "the API answers")
        self.assertEqual(self.download(over, "again"), before)

    def test_a_bucket_that_is_away_is_waited_for(self):
        self.cluster.start_coordinator(options=self.blobs)
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.folder.corpus(), rounds=100))
        self.cluster.wait(job, ["RUNNING", "SUCCEEDED"])
        self.go_wrong(method="PUT", kind="status", status=403, code="AccessDenied", times=6)

        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])

        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.go_wrong()
        self.assertIn("model.safetensors", self.download(job, "result"))
        # What a newer one took the place of before it was in the bucket lies here until it is swept, and nobody names it.
        named = {f"fleet/blobs/{artifact['sha256'][:2]}/{artifact['sha256']}" for artifact in done["result"]["artifacts"]}
        self.assertEqual(named - self.objects(), set())
        self.go_wrong(method="GET", key="/blobs/", kind="cut", times=2)
        self.assertIn("model.safetensors", self.download(job, "cut"))
        log = (self.path / "coordinator.log").read_text()
        self.assertIn("blobs are in a bucket", log)

    def test_a_folder_moves_to_a_bucket_and_a_backup_has_all_of_it(self):
        backups = self.path / "backups"
        backups.mkdir()
        self.cluster.start_coordinator()
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.folder.corpus(), rounds=50))
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        before = self.download(job, "before")
        files = len(self.whole_here("coordinator"))
        self.assertGreater(files, 3)
        address = self.cluster.address
        self.cluster.kill("coordinator")

        self.cluster.start_coordinator(address, [*self.blobs, "--backup-every", "6h", "--backup-dir", backups])

        wait_until(lambda: not self.whole_here("coordinator"), 30, "all is in the bucket")
        self.assertEqual(len(self.objects()), files)
        self.assertEqual(self.download(job, "after"), before)
        self.cluster.tactus("admin", "integrity-check")
        backup = wait_until(lambda: next((path for path in backups.iterdir() if path.name.endswith("Z")), None), 60, "a backup")
        check = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=backup, capture_output=True, text=True, check=False)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        self.assertFalse((backup / "MISSING").exists())
        # Of what lay in the folder, what no record names any more is in no backup.
        held = sum(len(path.name) == 64 for path in backup.rglob("*"))
        self.assertGreater(held, 3)
        # A bucket that is lost, and what its files were: the backup, and another bucket.
        self.cluster.kill("coordinator")
        with self.bucket.lock:
            self.bucket.objects.clear()
        code, said = self.coordinator("--restore-from", backup, state="restored")
        self.assertEqual(code, 0, said)
        self.cluster.start_coordinator(address, [*self.blobs, "--restored"], state="restored")
        wait_until(lambda: len(self.objects()) == held, 30, "all is in the bucket again")
        self.assertEqual(self.download(job, "restored-result"), before)
        # What somebody removed there is said.
        with self.bucket.lock:
            gone = sorted(key for key in self.bucket.objects if key.startswith("fleet/blobs/"))[0]
            del self.bucket.objects[gone]
        code, out, err = self.cluster.tactus("admin", "integrity-check", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn(gone.rsplit("/", 1)[1], out + err)

    @unittest.skipIf(database_missing(), database_missing())
    def test_a_record_whose_files_are_in_a_bucket_moves_into_a_database(self):
        self.database = Postgres().start()
        self.cluster.start_coordinator(options=self.blobs)
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.folder.corpus(), rounds=50))
        self.assertEqual(self.cluster.wait(job, ["SUCCEEDED", "FAILED"])["state"], "JOB_STATE_SUCCEEDED")
        before = self.download(job, "before")
        address = self.cluster.address
        self.cluster.kill("coordinator")
        store = ["--store", self.database.address]

        done = subprocess.run([str(word) for word in (BIN / "tactus-coordinator", *store, *self.blobs, "--state-dir",
                                                      self.path / "coordinator", "--import-from", self.path / "coordinator")],
                              capture_output=True, text=True, timeout=120, check=False)

        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("are not in", done.stdout)
        self.cluster.start_coordinator(address, [*store, *self.blobs])
        wait_until(lambda: self.cluster.tactus("get", "jobs", check=False)[0] == 0, 20, "it leads")
        self.assertEqual(self.download(job, "after"), before)

    def test_what_is_wrong_is_one_line_and_no_secret(self):
        keys = self.path / "keys"
        keys.write_text(f"[default]\naws_access_key_id = {s3_server.KEYS[0]}\naws_secret_access_key = {SECRET}\n")
        keys.chmod(0o644)
        nobody = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        wrong = dict(os.environ, AWS_SECRET_ACCESS_KEY="another-secret")
        stranger = dict(os.environ, AWS_ACCESS_KEY_ID="STRANGER")
        cases = [
            (["--blobs", "/srv/files"], None, 78, 'blobs: found "/srv/files", allowed is s3://BUCKET'),
            (["--blobs-endpoint", "https://minio"], None, 78, "blobs-endpoint: found without --blobs"),
            (["--blobs", "s3://test", "--blobs-endpoint", "minio:9000"], None, 78, 'blobs-endpoint: found "minio:9000", allowed is https://'),
            (["--blobs", "s3://absent", *self.endpoint], None, 73, "404 NoSuchBucket: make the bucket, or correct --blobs"),
            ([*self.blobs, "--blobs-region", "eu-west-1"], None, 73, "the bucket is of another region; correct --blobs-region"),
            (self.blobs, wrong, 73, "403 SignatureDoesNotMatch: the secret key is wrong"),
            # Whoever is going to stand by says so at once.
            ([*self.blobs, "--store", "postgresql:///none?host=/nowhere"], wrong, 73, "403 SignatureDoesNotMatch"),
            (self.blobs, stranger, 73, "403 InvalidAccessKeyId: there is no such key id"),
            (self.blobs, nobody, 73, "environment: has no keys of the bucket; wanted are an id and a secret"),
            ([*self.blobs, "--blobs-credentials", keys], nobody, 73, f"{keys}: everybody on this machine may read it"),
            ([*self.blobs, "--blobs-credentials", self.path / "none"], nobody, 73, f"{self.path}/none"),
            (["--blobs", "s3://test", "--blobs-endpoint", "http://127.0.0.1:1"], None, 69, "tried 3 times"),
        ]
        for words, environment, code, says in cases:
            with self.subTest(says=says):
                found, said = self.coordinator(*words, environment=environment)
                line = said.strip().splitlines()[-1]
                self.assertEqual(found, code, said)
                self.assertIn(says, line)
                self.assertLess(len(line), 500)
                self.assertNotIn(SECRET, said)
                self.assertEqual(sum("tactus-coordinator: " in text for text in said.splitlines()), 1, said)
        self.bucket.clock = -1500
        found, said = self.coordinator(*self.blobs)
        self.assertEqual(found, 73, said)
        self.assertRegex(said, r"RequestTimeTooSkewed: this machine's clock is 1[45]\d\d s ahead of the server's")

    def test_doctor_looks_at_the_bucket(self):
        doctor = ["doctor", "--local", *self.blobs]
        self.cluster.address = "127.0.0.1:1"
        out = self.cluster.tactus(*doctor, check=False)[1]
        self.assertRegex(out, rf"(?m)^ok .*blobs +s3://test/fleet at {self.server.endpoint} took, gave back and removed an object")
        self.assertEqual(self.bucket.objects, {})
        self.bucket.clock = 400
        self.assertRegex(self.cluster.tactus(*doctor, check=False)[1], r"(?m)^look .*clock is (399|40\d) s behind")
        self.bucket.clock = 0
        self.go_wrong(method="DELETE", kind="status", status=403, code="AccessDenied", times=10)
        code, out, _ = self.cluster.tactus(*doctor, "--bundle", self.path / "bundle", check=False)
        self.assertEqual(code, 1)
        self.assertRegex(out, r"(?m)^bad .*403 AccessDenied: these keys may not do that; wanted are GetObject")
        bundle = "".join(path.read_text(errors="replace") for path in (self.path / "bundle").rglob("*") if path.is_file())
        self.assertIn("AccessDenied", bundle)
        self.assertNotIn(SECRET, bundle)

    def test_keys_may_change_while_it_runs(self):
        keys = self.path / "keys"
        keys.write_text(f"aws_access_key_id = {s3_server.KEYS[0]}\naws_secret_access_key = {SECRET}\n")
        keys.chmod(0o600)
        self.cluster.start_coordinator(options=[*self.blobs, "--blobs-credentials", keys])
        self.cluster.start_agent("a", 2)
        self.bucket.keys = ("AKNEXT", "next-secret")
        path = self.path / "job.yaml"
        path.write_text(json.dumps(tiny_spec(self.folder.corpus(), rounds=50)))
        code, _, err = self.cluster.tactus("submit", path, check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("InvalidAccessKeyId", err)
        keys.write_text("aws_access_key_id = AKNEXT\naws_secret_access_key = next-secret\n")
        job = self.cluster.submit(tiny_spec(self.folder.corpus(), rounds=50))
        self.assertEqual(self.cluster.wait(job, ["SUCCEEDED", "FAILED"])["state"], "JOB_STATE_SUCCEEDED")


if __name__ == "__main__":
    if s3_server.missing():
        print(f"skipped: {s3_server.missing()}")
        sys.exit(77)
    unittest.main(verbosity=2)
