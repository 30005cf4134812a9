"""`tactus run`: from a job file to a result and nothing left running."""
import json
import os
import pathlib
import signal
import statistics
import socket
import subprocess
import unittest

from cluster import BIN, Folder, processes_of, tiny_spec, wait_until


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.folder.path / "state")}

    def tearDown(self):
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def start(self, spec, *flags):
        path = self.folder.path / "job.yaml"
        path.write_text(spec if isinstance(spec, str) else json.dumps(spec))
        return subprocess.Popen([str(BIN / "tactus"), "run", str(path), *map(str, flags)], env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)

    def run_job(self, spec, *flags):
        process = self.start(spec, *flags)
        out, err = process.communicate(timeout=200)
        return process.returncode, out, err

    def test_the_same_seed_gives_the_same_bytes(self):
        spec = tiny_spec(self.corpus, rounds=60)
        for name in ("one", "two"):
            code, out, err = self.run_job(spec, "--output", self.folder.path / name)
            self.assertEqual(code, 0, out + err)
        one = (self.folder.path / "one/model.safetensors").read_bytes()
        self.assertEqual(one, (self.folder.path / "two/model.safetensors").read_bytes())
        spec["seed"] = 2
        self.assertEqual(self.run_job(spec, "--output", self.folder.path / "three")[0], 0)
        self.assertNotEqual(one, (self.folder.path / "three/model.safetensors").read_bytes())

    def test_a_former_result_is_not_mixed_with_a_new_one(self):
        spec, output = tiny_spec(self.corpus, rounds=5), self.folder.path / "result"
        self.assertEqual(self.run_job(spec, "--output", output)[0], 0)
        before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}

        code, out, err = self.run_job(spec, "--output", output)

        self.assertEqual(code, 4, out + err)
        self.assertIn(f"--output: {output} has the result of a former run (model.pt, ", err)
        self.assertEqual({path: path.read_bytes() for path in output.rglob("*") if path.is_file()}, before)

        spec["seed"] = 2
        self.assertEqual(self.run_job(spec, "--output", output, "--overwrite")[0], 0)
        self.assertNotEqual((output / "model.safetensors").read_bytes(), before[output / "model.safetensors"])
        self.assertEqual(len(list(output.glob("tensorboard/*"))), 1)

    def test_clean_leaves_a_run_that_goes_on(self):
        process = self.start(tiny_spec(self.corpus, time="10m"))
        while "running" not in process.stdout.readline():
            self.assertIsNone(process.poll())

        done = subprocess.run([str(BIN / "tactus"), "clean", "--yes"], env=self.environment, capture_output=True, text=True)

        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertIn("1 run in use, which stays", done.stderr)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertRegex(out, r"\S+/model\.pt")

    def test_shares_follow_emulated_speeds(self):
        # Enough samples for the slowest worker that a pass's fixed time, which speeds do not divide, is small.
        spec = tiny_spec(self.corpus, rounds=80)
        spec["model"]["options"] = {"width": 64, "heads": 4, "layers": 2, "context": 64}
        spec["adapt"]["batch"] = {"policy": "proportional", "per_worker": 48}
        spec["workers"] = {"min": 4, "max": 4}

        code, out, err = self.run_job(spec, "--speeds", "1,1,0.5,0.25", "-o", "json")

        self.assertEqual(code, 0, out + err)
        self.assertIn("emulated", err)
        events = [json.loads(line) for line in out.splitlines()]
        progress = [e["progress"] for e in events if "progress" in e and int(e["progress"]["rounds"]) >= 20]
        # In the median over the job: what else the machine does moves shares to and fro, as it should.
        for rank, speed in enumerate((1, 1, 0.5, 0.25)):
            shares = [p["workers"][rank]["batch_size"] / sum(w["batch_size"] for w in p["workers"]) for p in progress]
            # Equal shares would be off by 31 % at least.
            self.assertAlmostEqual(statistics.median(shares), speed / 2.75, delta=0.2 * speed / 2.75 + 1 / 192)

    def test_ctrl_c_ends_everything(self):
        process = self.start(tiny_spec(self.corpus, time="10m"))
        while "running" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        # This command, coordinator, agent and two workers.
        self.assertEqual(len(processes_of(self.folder.path)), 5)

        process.send_signal(signal.SIGINT)

        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertIn("keeping its result", err)
        self.assertRegex(out, r"\S+/model\.pt")
        wait_until(lambda: not processes_of(self.folder.path), 20, "all processes are gone")

    def test_a_second_ctrl_c_discards(self):
        process = self.start(tiny_spec(self.corpus, time="10m"))
        while "running" not in process.stdout.readline():
            self.assertIsNone(process.poll())

        process.send_signal(signal.SIGINT)
        while "keeping its result" not in process.stderr.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)

        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        wait_until(lambda: not processes_of(self.folder.path), 20, "all processes are gone")

    def test_bad_job_files_give_one_clear_line_each(self):
        def spec(**change):
            return {**tiny_spec(self.corpus, rounds=5), **change}

        cases = [
            (spec(optimiser={"sgd": {}}), "optimiser", "optimizer"),
            (spec(stop={"rounds": "many"}), "stop.rounds", "many"),
            (spec(stop={"rounds": -3}), "stop.rounds", "-3"),
            (spec(stop={}), "stop", ""),
            (spec(name="Bad Name"), "name", "Bad Name"),
            (spec(optimizer={"sgd": {"learning_rate": -1}}), "optimizer.sgd.learning_rate", "-1"),
            (spec(optimizer={"sgd": {"momentum": 1.5}}), "optimizer.sgd.momentum", "1.5"),
            (spec(optimizer={"sgd": {}, "adam": {}}), "optimizer", "sgd"),
            (spec(model={"builtin": "byte-lm"}), "model.builtin", "bytes-lm"),
            (spec(model={"builtin": "bytes-lm", "options": {"width": 30, "heads": 4}}), "model.options.width", "30"),
            (spec(model={"builtin": "cifar-cnn"}), "data.text", "cifar-cnn"),
            (spec(workers={"min": 3, "max": 2}), "workers", "3"),
            (spec(adapt={"policy": "none", "batch": {"policy": "abs"}}), "adapt.batch.policy", "abs"),
            (spec(adapt={"synchronization": {"policy": "adacom"}}), "adapt.synchronization.policy", "adacomm"),
            (spec(adapt={"synchronization": {"policy": "adacomm"}}, optimizer={"adam": {}}),
             "adapt.synchronization.policy", "does not go with optimizer adam"),
            (spec(adapt={"synchronization": {"policy": "periodic"}}), "adapt.synchronization.period", "missing"),
            (spec(adapt={"synchronization": {"policy": "delayed", "period": 4}}), "adapt.synchronization.period",
             "does not apply to policy delayed"),
            ("name: [unclosed", "job.yaml", ""),
            ("", "job.yaml", ""),
        ]
        for content, field, found in cases:
            with self.subTest(field=field, found=found):
                code, out, err = self.run_job(content)
                self.assertEqual(code, 2, out + err)
                lines = [line for line in err.splitlines() if field in line]
                self.assertTrue(lines, err)
                self.assertIn(found, " ".join(lines))

    def test_a_folder_that_cannot_be_written_is_said(self):
        self.environment["XDG_STATE_HOME"] = "/proc/nowhere"
        code, out, err = self.run_job(tiny_spec(self.corpus, rounds=5))
        self.assertEqual(code, 10, out + err)
        self.assertIn("/proc/nowhere", err)

    def test_failures_of_the_job_are_exit_code_8(self):
        code, out, err = self.run_job(tiny_spec("/nonexistent/corpus.txt", rounds=5))
        self.assertEqual(code, 8, out + err)
        self.assertIn("data.text", err)

    def test_a_job_that_fails_leaves_its_snapshots_with_the_user(self):
        spec = {**tiny_spec(self.corpus, time="10m"), "retries": 0, "snapshots": {"every": "1s"}}
        process = self.start(spec)
        runs = self.folder.path / "state/tactus/runs"
        taken = "*/agent/jobs/*/result/snapshots/*.safetensors"
        wait_until(lambda: len(list(runs.glob(taken))) >= 3, 60, "three snapshots are there")

        for pid in processes_of(self.folder.path):
            if (pathlib.Path("/proc") / str(pid) / "comm").read_text().strip() == "tactus-worker":
                os.kill(pid, signal.SIGKILL)

        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 8, out + err)
        self.assertRegex(err, r"snapshots: \S+/result/snapshots")
        kept = list(runs.rglob("*.safetensors"))
        self.assertTrue(kept, out + err)
        self.assertEqual({path.parent for path in kept}, {pathlib.Path(err.split("snapshots: ")[1].split()[0])})

    def test_daemons_say_what_is_wrong_with_their_surroundings(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            cases = [
                ([BIN / "tactus-coordinator", "--listen", f"127.0.0.1:{port}", "--state-dir", self.folder.path / "c"],
                 69, str(port)),
                ([BIN / "tactus-coordinator", "--listen", "127.0.0.1:0", "--state-dir", "/proc/nowhere"],
                 73, "/proc/nowhere"),
                ([BIN / "tactus-agent", "--coordinator", "127.0.0.1:1", "--devices", "cuda:0", "--state-dir",
                  self.folder.path / "a"], 78, "cuda:0"),
                ([BIN / "tactus-agent", "--coordinator", "127.0.0.1:1", "--devices", "tpu", "--state-dir",
                  self.folder.path / "a"], 78, "tpu"),
                ([BIN / "tactus-agent", "--coordinator", "127.0.0.1:1", "--no-such-flag"], 64, "no-such-flag"),
            ]
            for command, code, found in cases:
                with self.subTest(found=found):
                    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, timeout=30)
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertIn(found, done.stderr)
                    said = [line for line in done.stderr.splitlines() if " info " not in line]
                    self.assertIn(found, said[0])
                    self.assertEqual(said[1:], [], done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
