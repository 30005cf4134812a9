"""A backup that a coordinator makes by itself, and a restore of it after the state folder was lost, with real daemons."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import unittest
import urllib.request

from cluster import BIN, Cluster, Folder, processes_of, tiny_spec, wait_until


def hashes_of(folder):
    files = [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class BackupTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.path = self.folder.path
        self.backups = self.path / "backups"
        self.backups.mkdir()
        self.cluster = Cluster(self.path)

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def end(self, name):
        process = self.cluster.processes.pop(name)
        process.terminate()
        self.assertEqual(process.wait(30), 0)

    def restore(self, backup, *options):
        done = subprocess.run([BIN / "tactus-coordinator", "--restore-from", backup, "--state-dir",
                               self.path / "restored", *options], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def metric(self, name):
        with urllib.request.urlopen(f"http://{self.cluster.metrics}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(name + " ")), None)

    def whole_backups(self):
        return sorted(path for path in self.backups.iterdir() if path.name.endswith("Z"))

    def test_a_lost_state_folder_is_restored_with_its_jobs_and_results(self):
        self.cluster.start_coordinator()
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(tiny_spec(self.folder.corpus(), rounds=50))
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        self.cluster.tactus("download", job, "--to", self.path / "before")
        self.assertIsNone(self.metric("tactus_backup_interval_seconds"))

        # The agent stays, and is to obey the restored one.
        address = self.cluster.address
        self.end("coordinator")
        self.cluster.start_coordinator(address, ["--backup-every", "5m", "--backup-dir", self.backups])
        wait_until(self.whole_backups, 90, "a backup is made soon after the start")
        wait_until(lambda: self.metric("tactus_backup_last_success_timestamp_seconds"), 30, "it is shown")
        self.assertEqual(self.metric("tactus_backup_failures_total"), 0)
        self.cluster.kill("coordinator")
        shutil.rmtree(self.path / "coordinator")

        [backup] = self.whole_backups()
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=backup, check=True)
        code, said = self.restore(backup)
        self.assertEqual(code, 0, said)
        self.assertIn("--restored", said)
        self.assertEqual(self.restore(backup)[0], 73, "the folder that was restored is not touched again")

        self.cluster.start_coordinator(address, ["--restored"], state="restored")
        self.assertEqual(self.cluster.job(job)["result"], done["result"])
        self.cluster.tactus("download", job, "--to", self.path / "after")
        # Signed anew, as the record is not part of a backup.
        vouched = [hashes_of(self.path / when) for when in ("before", "after")]
        self.assertTrue(all(files.pop("provenance.intoto.jsonl") for files in vouched))
        self.assertEqual(*vouched)
        self.cluster.tactus("admin", "integrity-check")
        again = self.cluster.submit({**tiny_spec(self.path / "corpus.txt", rounds=5), "name": "again"})
        self.assertEqual(self.cluster.wait(again, ["SUCCEEDED", "FAILED"])["state"], "JOB_STATE_SUCCEEDED")

        # What is damaged is named, and is not restored by itself.
        self.end("coordinator")
        os.rename(self.path / "restored", self.path / "aside")
        blob = max((backup / "blobs").glob("*/*"), key=lambda path: path.stat().st_size)
        blob.write_bytes(b"damaged")
        code, said = self.restore(backup)
        self.assertEqual(code, 1, said)
        self.assertIn(blob.name, said)
        self.assertFalse((self.path / "restored").exists())
        code, said = self.restore(backup, "--restore-damaged")
        self.assertEqual(code, 0, said)
        self.assertIn(blob.name, said)

    def test_a_backup_folder_that_is_not_there_is_a_warning_and_not_made(self):
        absent = self.path / "mnt" / "backups"
        self.cluster.start_coordinator(options=["--backup-every", "5m", "--backup-dir", absent])

        wait_until(lambda: self.metric("tactus_backup_failures_total"), 90, "a backup failed")

        self.assertEqual(self.metric("tactus_backup_last_success_timestamp_seconds"), 0)
        log = (self.path / "coordinator.log").read_text()
        self.assertIn(f"{absent}: is no folder; is its disk mounted?", log)
        self.assertEqual(log.count("backup failed"), 1)
        self.assertFalse(absent.exists())

    def test_wrong_options_are_refused(self):
        for options, said in (
                (["--backup-every", "5m"], "backup-dir: is empty"),
                (["--backup-dir", self.backups], "backup-every: is off"),
                (["--backup-every", "1s", "--backup-dir", self.backups], "backup-every: found 1s"),
                (["--backup-every", "often", "--backup-dir", self.backups], "backup-every: found \"often\""),
                (["--backup-every", "5m", "--backup-dir", self.path / "state" / "backups"], "backup-dir: found")):
            done = subprocess.run([BIN / "tactus-coordinator", "--listen", "127.0.0.1:0", "--state-dir",
                                   self.path / "state", *options], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertFalse((self.path / "state").exists())


if __name__ == "__main__":
    unittest.main()
