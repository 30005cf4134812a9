"""Tapes of real coordinators: replayed without a difference, also after kill -9; bad tapes get one clear line."""
import json
import os
import subprocess
import unittest

from cluster import BIN, Cluster, Folder, processes_of, tiny_spec


def replay(path, *flags):
    """Runs `tactus replay`; returns (exit code, the JSON object or None, stderr)."""
    done = subprocess.run([str(BIN / "tactus"), "replay", str(path), "-o", "json", *flags], capture_output=True,
                          text=True, timeout=120)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


class TapeTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()

    def tearDown(self):
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def test_both_tapes_of_a_coordinator_that_was_killed_once_replay(self):
        cluster = Cluster(self.folder.path)
        self.addCleanup(cluster.stop)
        cluster.start_coordinator()
        cluster.start_agent("a", 2)
        job = cluster.submit(tiny_spec(self.corpus, time="8s"))
        cluster.wait(job, ["RUNNING"])
        cluster.kill("coordinator")
        cluster.start_coordinator(cluster.address)
        done = cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        cluster.stop()

        tapes = sorted((self.folder.path / "coordinator/tapes").glob("*.tape"))
        self.assertEqual(len(tapes), 2)
        killed, ended = tapes
        code, _, said = replay(killed)
        self.assertEqual(code, 2, said)
        self.assertIn("cut short", said)
        self.assertIn("--allow-cut", said)
        code, first, said = replay(killed, "--allow-cut")
        self.assertEqual(code, 0, said)
        self.assertEqual((first["end"], first["jobs"]), ("cut", 1))
        code, second, said = replay(ended)
        self.assertEqual(code, 0, said)
        self.assertEqual((second["end"], second["jobs"], second["difference"]), ("clean", 1, None))
        self.assertGreater(second["rounds"], 50)

    def run_job(self, *flags):
        path = self.folder.path / "job.yaml"
        path.write_text(json.dumps(tiny_spec(self.corpus, rounds=40)))
        return subprocess.run([str(BIN / "tactus"), "run", str(path), *map(str, flags)], capture_output=True, text=True,
                              env={**os.environ, "XDG_STATE_HOME": str(self.folder.path / "state")}, timeout=120)

    def test_run_brings_its_tape_out_of_its_folder(self):
        tape = self.folder.path / "out" / "demo.tape"
        done = self.run_job("--tape", tape, "--output", self.folder.path / "result")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(list((self.folder.path / "state/tactus/runs").glob("*")), [])

        code, found, said = replay(tape)

        self.assertEqual(code, 0, said)
        self.assertEqual((found["rounds"], found["jobs"], found["end"]), (40, 1, "clean"))
        done = self.run_job("--tape", "/proc/nowhere/demo.tape")
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertIn("--tape: /proc/nowhere", done.stderr)

    def test_bad_tapes_give_one_clear_line_each(self):
        tape = self.folder.path / "good.tape"
        self.assertEqual(self.run_job("--tape", tape).returncode, 0)
        good = tape.read_bytes()
        bad = self.folder.path / "bad.tape"
        cases = [
            (b"", 2, "cut short at byte 0"),
            (b"name: demo\n", 2, "another kind of file"),
            (good[:12] + b"\x09" + good[13:], 2, "format version 9, allowed is 5"),
            (good[:-5], 2, "cut short"),
            (good[:1000] + bytes([good[1000] ^ 1]) + good[1001:], 2, "damaged"),
        ]
        for content, expected, found in cases:
            with self.subTest(found=found):
                bad.write_bytes(content)
                code, _, said = replay(bad)
                self.assertEqual(code, expected, said)
                self.assertTrue(said.startswith(f"tactus: {bad}: "), said)
                self.assertEqual(said.count("\n"), 1, said)
                self.assertIn(found, said)
        self.assertEqual(replay(self.folder.path / "absent")[0], 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
