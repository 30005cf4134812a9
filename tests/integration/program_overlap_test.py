"""Programs whose gradients leave during the backward pass: the same result, and whoever goes in its middle goes as from anywhere."""
import re
import sys
import time
import unittest

import torch

from program_test import SCRIPT, ProgramTest

# Some megabytes, so that the last layer's weights leave before the first one's are known.
WIDE = ["width=60000", "samples=64", "batch=4", "epochs=2"]

# What happens in the middle of the backward pass, at that point of the second round, on rank 1.
IN_THE_MIDDLE = '''
def middle_of(x):
    def in_the_middle(_):
        if run.round == 3 and run.rank == 1 and run.size == int(said["workers"]):
            assert run._overlap._told
            {what}
    if model.training and torch.is_grad_enabled():
        x.register_hook(in_the_middle)
    return x

class Middle(nn.Module):
    def forward(self, x):
        return middle_of(x)
model[1] = nn.Sequential(model[1], Middle())
'''


class OverlapTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.write(SCRIPT)

    def write(self, script):
        script = script.replace("clip_norm=1.0,", "clip_norm=1.0, overlap=said.get('overlap') == 'True',")
        script = script.replace('batch_size=int(said.get("batch", 8)))',
                                'batch_size=int(said.get("batch", 8)), micro_batch=int(said.get("micro", said.get("batch", 8))))')
        script = script.replace("        run.step()\n", '''        told = told + [len(run._overlap._told)] if run._overlap else []
        run.step()
''').replace("for epoch in run.epochs()", "told = []\nfor epoch in run.epochs()")
        self.script.write_text(script + '\nprint(f"told by {run.rank}: {sorted(set(told))} of {len(told)}")\n')

    def in_the_middle(self, what):
        self.write(SCRIPT.replace("loader = run.loader", IN_THE_MIDDLE.format(what=what) + "loader = run.loader"))

    def compute(self, workers, *words, flags=("--set", "adapt.policy=none")):
        """What it printed, and the parameters it ends with."""
        path = self.folder.path / "end.pt"
        code, out, err = self.run_words("--workers", workers, *flags, "--", sys.executable, "train.py", f"save={path}", *words)
        self.assertEqual(code, 0, out + err)
        return out, torch.load(path)

    def test_the_result_is_what_it_is_without_to_the_last_bit(self):
        for words in (["optimizer=sgd"], ["optimizer=adamw"], ["optimizer=sgd", "micro=2"]):
            with self.subTest(words):
                out, without = self.compute(2, *WIDE, *words)
                self.assertEqual(re.findall(r"told by \d: (.*)", out), ["[] of 0"] * 2)
                out, with_it = self.compute(2, *WIDE, *words, "overlap=True")
                passes = 2 * 64 // (2 * (2 if "micro=2" in words else 4))
                told = "[0, 2]" if "micro=2" in words else "[2]"  # of a step's passes the last one tells
                self.assertEqual(re.findall(r"told by \d: (.*)", out), [f"{told} of {passes}"] * 2)
                for key in without:
                    self.assertTrue(torch.equal(without[key], with_it[key]), key)

    def test_a_loop_that_takes_gradients_away_between_batches_overlaps_too(self):
        self.write(SCRIPT.replace("        run.step()\n", "        run.step()\n        model.zero_grad(set_to_none=True)\n"))
        out, _ = self.compute(2, *WIDE, "overlap=True")
        self.assertEqual(re.findall(r"told by \d: (.*)", out), ["[2] of 16"] * 2)

    def test_other_plans_and_a_single_member_tell_nothing(self):
        for workers, flags in ((2, ["adapt.policy=none", "adapt.synchronization.policy=periodic", "adapt.synchronization.period=4"]),
                               (2, ["adapt.policy=none", "adapt.synchronization.policy=delayed"]), (1, ["adapt.policy=none"])):
            with self.subTest(flags):
                out, _ = self.compute(workers, *WIDE, "overlap=True", flags=[word for flag in flags for word in ("--set", flag)])
                self.assertEqual(set(re.findall(r"told by \d: (\[.*\]) of", out)), {"[0]"})

    def test_who_is_killed_in_the_middle_costs_the_others_no_sample(self):
        self.in_the_middle("os.kill(os.getpid(), 9)")
        code, out, err = self.run_words("--workers", 3, "--set", "workers.min=2", "--set", "adapt.policy=none", "--", sys.executable,
                                        "train.py", *WIDE, "samples=96", "overlap=True", "workers=3")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(set(re.findall(r"2 epochs completed, (\d+) samples", out)), {"192"}, out + err)

    def test_an_exception_or_a_signal_in_the_middle_ends_the_job_with_its_words(self):
        for what, words in (("raise RuntimeError('no memory is left')", "RuntimeError: no memory is left"),
                            ("os.kill(os.getpid(), 2)", "KeyboardInterrupt")):
            with self.subTest(what):
                self.in_the_middle(what)
                begun = time.monotonic()
                code, out, err = self.run_words("--workers", 2, "--set", "retries=0", "--set", "adapt.policy=none", "--", sys.executable,
                                                "train.py", *WIDE, "overlap=True", "workers=2")
                self.assertEqual(code, 8, out + err)
                self.assertIn(words, out + err)
                self.assertLess(time.monotonic() - begun, 60)

    def test_what_would_come_too_late_is_refused(self):
        for call, words in (("run.backward(nn.functional.cross_entropy(model(x), y))", r"run.backward\(loss\) was called again for this batch"),
                            ("run.skip()", r"run.skip\(\) was called behind run.backward\(loss\)")):
            with self.subTest(call):
                self.write(SCRIPT.replace("        run.step()\n", f"        {call}\n        run.step()\n"))
                code, out, err = self.run_words("--workers", 2, "--set", "retries=0", "--set", "adapt.policy=none", "--", sys.executable,
                                                "train.py", *WIDE, "overlap=True")
                self.assertEqual(code, 8, out + err)
                self.assertRegex(out + err, words)


if __name__ == "__main__":
    unittest.main()
