"""Programs of PyTorch as a job's workers: tactus run -- python3 train.py, and jobs of a cluster whose agents allow them."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

import torch

from cluster import BIN, SOURCE, Cluster, Folder, processes_of, wait_until

# Trains a line of code's worth of model; says where it stands; what is wanted otherwise comes as arguments, KEY=VALUE.
SCRIPT = '''
import os, sys, time
import torch, tactus_train
from torch import nn

said = dict(word.split("=", 1) for word in sys.argv[1:])

class Samples(torch.utils.data.Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(count, 12, generator=generator)
        self.y = (self.x @ torch.randn(12, 5, generator=generator)).argmax(1)
    def __len__(self):
        return len(self.x)
    def __getitem__(self, index):
        time.sleep(float(said.get("slow", 0)))
        return self.x[index], self.y[index]

run = tactus_train.init(seed=5)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(12, int(said.get("width", 16))), nn.Tanh(), nn.Linear(int(said.get("width", 16)), 5))
if said.get("optimizer") == "adamw":
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loader = run.loader(Samples(int(said.get("samples", 480))), batch_size=int(said.get("batch", 8)))
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, int(said.get("fall", 400 // loader.batch_size)), 0.5)
stop = {} if said.get("epochs") == "none" else {"epochs": int(said.get("epochs", 2))}
run.attach(model, optimizer, scheduler=scheduler, clip_norm=1.0, **stop)
for epoch in run.epochs():
    for x, y in loader:
        if said.get("fail") == str(run.rank) and run.round >= 5:
            raise RuntimeError("no disk is left")
        loss = nn.functional.cross_entropy(model(x), y)
        run.backward(loss)
        run.step()
right = run.evaluate(lambda x, y: (model(x).argmax(1) == y).float(), loader.dataset, batch_size=100)
print(f"rank {run.rank} of {run.size}: {run.reason}, {run.samples} samples, rate {optimizer.param_groups[0]['lr']}, right {right:.3f}")
if "save" in said:
    run.save(said["save"])
'''

FIXED = {"policy": "none"}


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.script = self.folder.path / "train.py"
        self.script.write_text(SCRIPT)
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.folder.path / "state"), "OMP_NUM_THREADS": "1",
                            "PYTHONPATH": str(SOURCE / "python"), "PYTHONDONTWRITEBYTECODE": "1"}

    def tearDown(self):
        left = processes_of(self.folder.path)
        for process in left:
            os.kill(process, signal.SIGKILL)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def start(self, *words):
        return subprocess.Popen([str(BIN / "tactus"), "run", *map(str, words)], env=self.environment, cwd=self.folder.path,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)

    def run_words(self, *words):
        process = self.start(*words)
        out, err = process.communicate(timeout=200)
        return process.returncode, out, err

    def train(self, workers, *words, flags=("--set", "adapt.policy=none")):
        """The parameters that it ends with."""
        path = self.folder.path / f"{workers}-{len(os.listdir(self.folder.path))}.pt"
        code, out, err = self.run_words("--workers", workers, *flags, "--", sys.executable, "train.py", f"save={path}", *words)
        self.assertEqual(code, 0, out + err)
        return torch.load(path)

    def alone(self, *words):
        path = self.folder.path / "alone.pt"
        environment = {**self.environment}
        subprocess.run([sys.executable, "train.py", f"save={path}", *words], env=environment, cwd=self.folder.path, check=True)
        return torch.load(path)

    def assert_close(self, one, other, most):
        for key in one:
            self.assertLessEqual((one[key] - other[key]).abs().max().item(), most, key)


class LocalProgramTest(ProgramTest):
    def test_two_train_as_one_does_with_twice_the_batch(self):
        for optimizer in ("sgd", "adamw"):
            with self.subTest(optimizer):
                for words in (["samples=480"], ["samples=470", "fall=10000"]):  # an epoch's last step is smaller there
                    alone = self.alone("batch=16", f"optimizer={optimizer}", *words)
                    self.assert_close(self.train(2, "batch=8", f"optimizer={optimizer}", *words), alone, 1e-5)

    def test_members_of_unequal_shares_train_as_one(self):
        alone = self.alone("batch=16")
        flags = ("--speeds", "1,0.25", "--set", "adapt.policy=none", "--set", "adapt.batch.policy=proportional")
        self.assert_close(self.train(2, "batch=8", flags=flags), alone, 1e-5)

    def test_local_steps_and_auto_train(self):
        for flags in (["adapt.policy=none", "adapt.synchronization.policy=periodic", "adapt.synchronization.period=4"], []):
            with self.subTest(flags=flags):
                words = [word for flag in flags for word in ("--set", flag)]
                code, out, err = self.run_words("--workers", 2, *words, "--", sys.executable, "train.py", "epochs=3")
                self.assertEqual(code, 0, out + err)
                self.assertRegex(out, r"worker \d+ \| rank 0 of 2: 3 epochs completed, 1440 samples")

    CENTRED = '''
class Centred(nn.Module):  # running statistics, as BatchNorm's, of batches of one sample as well
    def __init__(self):
        super().__init__()
        self.register_buffer("middle", torch.zeros(int(said.get("width", 16))))
    def forward(self, x):
        if self.training:
            self.middle.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return x - self.middle
'''
    EPOCHS = '''
class Read(Samples):
    def __getitem__(self, index):
        self.read += 1
        return super().__getitem__(index)
test = Read(500)
def evaluated(tag, **more):
    test.read = 0
    right = run.evaluate(lambda x, y: {"loss": nn.functional.cross_entropy(model(x), y, reduction="none"),
                                      "right": model(x).argmax(1) == y},
                         test, batch_size=20)
    print(f"{tag} of {run.rank}: {right!r} read {test.read}", flush=True)
for epoch in run.epochs():
    for x, y in loader:
        if run.round == 3:
            try:
                run.mean(1)
            except tactus_train.UsageError as error:
                print(f"refused of {run.rank}: {error}", flush=True)
        run.backward(nn.functional.cross_entropy(model(x), y))
        run.step()
    evaluated(f"epoch {epoch}")
    if run.rank == 1:
        evaluated("once more")
    mean = run.mean({"rank": run.rank, "seven": 7}, weight=run.rank + 1)
    print(f"mean {epoch} of {run.rank}: {mean!r}", flush=True)
'''

    def epochs_script(self, more=""):
        head = SCRIPT[:SCRIPT.index("for epoch in run.epochs()")]
        self.script.write_text(head.replace("nn.Tanh()", "Centred(), nn.Tanh()").replace("run = tactus_train", self.CENTRED + "run = tactus_train")
                               + self.EPOCHS + more)

    def test_evaluation_is_shared_out_and_the_same_for_all(self):
        self.epochs_script()
        for flags in (["policy=none"], ["policy=none", "synchronization.policy=delayed"],
                      ["policy=none", "synchronization.policy=periodic", "synchronization.period=3"], []):
            with self.subTest(flags=flags):
                words = [word for flag in flags for word in ("--set", f"adapt.{flag}")]
                code, out, err = self.run_words("--workers", 3, *words, "--", sys.executable, "train.py", "epochs=3")
                self.assertEqual(code, 0, out + err)
                for epoch in range(3):
                    found = re.findall(rf"epoch {epoch} of (\d): (.*) read (\d+)", out)
                    self.assertEqual(sorted(rank for rank, _, _ in found), ["0", "1", "2"], out + err)
                    self.assertEqual(len({result for _, result, _ in found}), 1, out)
                    self.assertEqual(sum(int(read) for _, _, read in found), 500, out)
                    self.assertEqual(len(set(re.findall(rf"mean {epoch} of \d: (.*)", out))), 1, out)
                self.assertIn("refused of 0: run.mean() in a group: all members call it between two epochs", out)
                self.assertEqual(re.findall(r"once more of 1: .* read (\d+)", out), ["500"] * 3)
                self.assertIn(f"{{'rank': {(1 * 2 + 2 * 3) / 6}, 'seven': 7.0}}", out)

    def test_an_exception_while_all_evaluate_fails_the_job(self):
        self.epochs_script()
        self.script.write_text(self.script.read_text().replace("test.read = 0", "test.read = 0; assert (run.rank, tag) != (1, 'epoch 1'), 'no test data'"))
        code, out, err = self.run_words("--workers", 3, "--set", "retries=0", "--set", "adapt.policy=none", "--", sys.executable, "train.py",
                                        "epochs=3")
        self.assertEqual(code, 8, out + err)
        self.assertIn("AssertionError: no test data", out + err)

    def test_a_member_that_is_lost_while_all_evaluate_costs_nobody_the_result(self):
        self.epochs_script('''
print(f"done {run.rank} {run.samples}")
''')
        text = self.script.read_text()
        self.script.write_text(text.replace("def evaluated(tag, **more):", '''def evaluated(tag, **more):
    if run.rank == 2 and tag == "epoch 1" and run.size == 3:
        os.kill(os.getpid(), 9)'''))
        code, out, err = self.run_words("--workers", 3, "--set", "workers.min=2", "--set", "adapt.policy=none", "--", sys.executable,
                                        "train.py", "epochs=3")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(set(re.findall(r"done \d (\d+)", out)), {"1440"}, out + err)
        found = re.findall(r"epoch 1 of \d: (.*) read \d+", out)
        self.assertGreaterEqual(len(found), 2, out + err)
        self.assertEqual(len(set(found)), 1, out + err)

    def test_what_is_behind_the_loop_runs_to_its_end(self):
        self.script.write_text(SCRIPT + '''
time.sleep(3)
open(f"late-{run.rank}", "w").close()
''')
        code, out, err = self.run_words("--workers", 2, "--", sys.executable, "train.py")

        self.assertEqual(code, 0, out + err)
        for rank in range(2):
            self.assertTrue((self.folder.path / f"late-{rank}").exists())

    def test_an_exception_in_one_fails_the_job_and_says_which(self):
        code, out, err = self.run_words("--workers", 3, "--set", "retries=0", "--", sys.executable, "train.py", "fail=1", "epochs=500")

        self.assertEqual(code, 8, out + err)
        self.assertIn("RuntimeError: no disk is left", out + err)

    def test_who_waits_for_others_sees_signals(self):
        self.script.write_text(SCRIPT.replace("        run.step()\n", '''        if run.round == 5 and run.rank == 1:
            while not os.path.exists("interrupted"):
                time.sleep(0.05)
        if run.round == 5 and run.rank == 0:
            import signal, threading
            threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            run.step()
        except KeyboardInterrupt:
            open("interrupted", "w").close()
            raise
'''))
        code, out, err = self.run_words("--workers", 2, "--set", "retries=0", "--set", "adapt.policy=none", "--", sys.executable, "train.py")
        self.assertEqual(code, 8, out + err)
        self.assertRegex(out + err, "tactus: worker . on node local.*: KeyboardInterrupt")

    def test_programs_that_differ_are_refused(self):
        self.script.write_text(SCRIPT.replace('said.get("width", 16)', '16 + os.getpid() % 7'))
        code, out, err = self.run_words("--workers", 3, "--", sys.executable, "train.py")
        self.assertNotEqual(code, 0)
        self.assertRegex(out + err, "parameters, worker . on node local has")

    def test_what_trains_in_a_group_is_not_let_go_of(self):
        self.script.write_text(SCRIPT.replace("        run.step()\n", "        run.step()\n        if run.round == 5: run.detach()\n"))
        code, out, err = self.run_words("--workers", 2, "--set", "retries=0", "--", sys.executable, "train.py")
        self.assertEqual(code, 8, out + err)
        self.assertIn("run.detach() in a group that trains: it trains what was attached", out + err)

    def test_data_that_differ_are_refused(self):
        self.script.write_text(SCRIPT.replace('said.get("samples", 480))', 'said.get("samples", 480)) + os.getpid() % 7'))
        code, out, err = self.run_words("--workers", 3, "--", sys.executable, "train.py")
        self.assertNotEqual(code, 0)
        self.assertRegex(out + err, "samples, worker . on node local has")

    def test_a_parameter_that_no_pass_reaches_is_told_once(self):
        self.script.write_text(SCRIPT.replace('if said.get("optimizer")', """model.unused = nn.Linear(2, 2)
model.forward = lambda x: model[2](model[1](model[0](x)))
if said.get("optimizer")"""))
        code, out, err = self.run_words("--workers", 2, "--set", "adapt.policy=none", "--", sys.executable, "train.py")
        self.assertEqual(code, 0, out + err)
        self.assertEqual((out + err).count("no gradient in 2 rounds for unused.weight and 1 more: in a group that counts as a gradient of zero"),
                         1, out + err)

    def test_members_end_together(self):
        code, out, err = self.run_words("--workers", 2, "--", sys.executable, "train.py", "epochs=none")
        self.assertNotEqual(code, 0)
        self.assertIn("members end together: give epochs=", out + err)
        code, out, err = self.run_words("--workers", 2, "--set", "stop.rounds=20", "--", sys.executable, "train.py", "epochs=none")
        self.assertEqual(code, 0, out + err)

    def test_bad_words(self):
        for words, code, text in [
                ([], 2, "job_file is required, or a program behind --"),
                (["--"], 2, "a program and its arguments are expected"),
                (["--", "no-such-program"], 2, "'no-such-program' is no program that can be run"),
                (["--set", "adapt.batch.per_worker=8", "--", "python3", "train.py"], 2, "is the program's to say"),
                (["--set", "optimizer.sgd.learning_rate=1", "--", "python3", "train.py"], 2, "optimizer"),
                (["--set", "workers.device=cuda", "--", "python3", "train.py"], 2, "cuda")]:
            with self.subTest(words):
                found, out, err = self.run_words(*words)
                self.assertEqual(found, code, out + err)
                self.assertIn(text, out + err)


class ClusterProgramTest(ProgramTest):
    def setUp(self):
        super().setUp()
        os.environ.update({name: self.environment[name] for name in ("PYTHONPATH", "OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE")})
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()

    def tearDown(self):
        self.cluster.stop()
        super().tearDown()

    def spec(self, *words, **more):
        return {"name": "program", "program": {"command": [sys.executable, "train.py", *words], "directory": str(self.folder.path)},
                "workers": {"min": 2, "max": 2}, "adapt": FIXED, **more}

    def programs(self):
        """Their process ids."""
        return [pid for pid in processes_of(self.folder.path)
                if b"train.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]

    def logs(self, job):
        return self.cluster.tactus("logs", job)[1]

    def test_a_node_that_does_not_allow_programs_gets_none(self):
        self.cluster.start_agent("a", 2)
        job = self.cluster.submit(self.spec())
        wait_until(lambda: "programs run where tactus-agent has --allow-programs" in self.cluster.job(job)["state_reason"], 20, "it says so")
        self.cluster.start_agent("b", 2, options=["--allow-programs"])
        self.cluster.wait(job, ["SUCCEEDED"])

    def test_its_files_travel(self):
        self.cluster.start_agent("a", 1, options=["--allow-programs"])
        self.cluster.start_agent("b", 1, options=["--allow-programs"])
        (self.folder.path / "parts").mkdir()
        (self.folder.path / "parts/size.py").write_text("WIDTH = 24\n")
        self.script.write_text(SCRIPT.replace("import torch,", "from parts.size import WIDTH\nimport torch,")
                               + "\nassert WIDTH == 24 and '/jobs/' in os.getcwd()\n")
        spec = self.spec()
        spec["program"] = {"command": [sys.executable, "train.py"], "files": ["train.py", "./parts/size.py"]}
        job = self.cluster.submit(spec)
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"])
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done["state_reason"] + self.logs(job))

    def test_a_pause_and_a_checkpoint_are_nothing_to_the_result(self):
        self.cluster.start_agent("a", 2, options=["--allow-programs", "--writable", self.folder.path])
        whole = self.folder.path / "whole.pt"
        self.cluster.wait(self.cluster.submit(self.spec(f"save={whole}", "samples=960", "epochs=3")), ["SUCCEEDED"])
        parts = self.folder.path / "parts.pt"
        job = self.cluster.submit(self.spec(f"save={parts}", "samples=960", "epochs=3", "slow=0.002"))
        wait_until(lambda: int(self.cluster.job(job).get("progress", {}).get("rounds", 0)) > 20, 60, "it trains")
        self.cluster.tactus("pause", job)
        self.cluster.wait(job, ["PAUSED"])
        self.assertFalse(parts.exists(), "what is behind the loop is for the end")
        self.cluster.tactus("resume", job)
        done = self.cluster.wait(job, ["SUCCEEDED"])

        self.assertEqual(int(done["result"]["samples"]), 3 * 960)
        self.assert_close(torch.load(parts), torch.load(whole), 0)

    def test_who_is_killed_costs_the_others_no_process_and_no_sample(self):
        self.cluster.start_agent("a", 3, options=["--allow-programs"])
        spec = self.spec("samples=3000", "epochs=2", "slow=0.001", workers={"min": 1, "max": 3})
        job = self.cluster.submit(spec)
        wait_until(lambda: int(self.cluster.job(job).get("progress", {}).get("rounds", 0)) > 20, 60, "it trains")
        before = self.programs()
        self.assertEqual(len(before), 3)
        os.kill(before[1], signal.SIGKILL)
        done = self.cluster.wait(job, ["SUCCEEDED"])

        self.assertGreaterEqual(int(done["regroups"]), 1)
        self.assertEqual(len(done["attempts"]), 1)
        self.assertEqual(int(done["result"]["samples"]), 2 * 3000)
        said = self.logs(job)
        self.assertIn("2 epochs completed, 6000 samples", said)

    def test_who_changes_its_weights_by_hand_gets_the_others(self):
        self.script.write_text(SCRIPT.replace("        run.step()\n", """        run.step()
        if run.round == 20 and run.rank == 1:
            model[0].weight.data.add_(1)
"""))
        self.cluster.start_agent("a", 3, options=["--allow-programs"])
        job = self.cluster.submit(self.spec(workers={"min": 3, "max": 3}))

        done = self.cluster.wait(job, ["SUCCEEDED"])

        self.assertEqual(int(done["differences"]), 1)
        self.assertRegex(done["difference_reason"], r"the parameters of worker \d+ on node a differed from those of the other 2 workers")


if __name__ == "__main__":
    unittest.main()
