"""A trainer of others' with Tactus trains as a loop with Tactus: bit for bit."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import tactus_train  # noqa: E402
from scaling_test import Scaler  # noqa: E402

try:
    import lightning
    from tactus_train.lightning import TactusStrategy
except ImportError:
    lightning = None
try:
    import transformers
    from tactus_train.huggingface import TactusTrainer
except ImportError:
    transformers = None

SAMPLES, BATCH = 103, 8
TACTUS = pathlib.Path(os.environ.get("TACTUS_BIN", "none"), "tactus")

# As a worker of a group, by what OVERLAP says; it tells how many gradients left during each backward pass. Some megabytes, so
# that some do.
WIDE = 60_000
WORKER = """
import sys
import torch
import adapters_test
from adapters_test import *
told = []
class Run(tactus_train.run.Run):
    def step(self):
        told.append(len(self._overlap._told) if self._overlap else None)
        return super().step()
tactus_train.run.Run = Run
adapters_test.WIDTH = WIDE
name, overlap, path = sys.argv[1], sys.argv[2] == "True", sys.argv[3]
torch.set_num_threads(1)
run, model = {"lightning": by_lightning, "transformers": by_transformers}[name](overlap)
print(f"told by {run.rank}: {sorted(set(told), key=str)} of {len(told)}")
if run.rank == 0:
    torch.save(model.state_dict(), path)
"""


def data_of(samples=SAMPLES):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(samples, 12, generator=generator)
    return torch.utils.data.TensorDataset(x, (x @ torch.randn(12, 5, generator=generator)).argmax(1))


WIDTH = 16


def layers():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(12, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 5))


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def schedule_of(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))


def by_a_loop(micro_batch=None, clip_norm=None, **end):
    run = tactus_train.init()
    model = layers()
    optimizer = optimizer_of(model)
    loader = run.loader(data_of(), BATCH, micro_batch=micro_batch)
    run.attach(model, optimizer, scheduler=schedule_of(optimizer), clip_norm=clip_norm, **end)
    for _ in run.epochs():
        for x, y in loader:
            run.backward(nn.functional.cross_entropy(model(x), y))
            run.step()
    run.close()
    return model


class AdapterTest(unittest.TestCase):
    name = ""

    def setUp(self):
        torch.set_num_threads(1)

    def in_a_group(self, overlap, folder):
        """What two workers print, and the parameters that they end with."""
        path, here = pathlib.Path(folder) / f"{overlap}.pt", pathlib.Path(__file__).resolve()
        path.with_name("train.py").write_text(WORKER)
        places = [here.parent, here.parents[2] / "python", *filter(None, [os.environ.get("PYTHONPATH")])]
        done = subprocess.run([TACTUS, "run", "--workers", "2", "--set", "adapt.policy=none", "--", sys.executable, "train.py",
                               self.name, str(overlap), path], capture_output=True, text=True, timeout=300, cwd=folder,
                              env={**os.environ, "XDG_STATE_HOME": folder, "OMP_NUM_THREADS": "1",
                                   "PYTHONPATH": os.pathsep.join(map(str, places))})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return re.findall(r"told by \d: (.*)", done.stdout), torch.load(path)

    def overlaps(self):
        with tempfile.TemporaryDirectory() as folder:
            told, without = self.in_a_group(False, folder)
            self.assertEqual(told, ["[None] of 14"] * 2)
            told, with_it = self.in_a_group(True, folder)
            self.assertEqual(told, ["[2] of 14"] * 2)  # of the four those that are not in the last bucket
        for key in without:
            self.assertTrue(torch.equal(without[key], with_it[key]), key)

    def assert_same(self, one, other):
        for a, b in zip(one.parameters(), other.parameters()):
            self.assertTrue(torch.equal(a, b))


if lightning is not None:
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = layers()
            self.validations = 0

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.validations += 1

        def configure_optimizers(self):
            optimizer = optimizer_of(self.layers)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule_of(optimizer), "interval": "step"}}

    def by_lightning(overlap):
        strategy, module = TactusStrategy(overlap=overlap), Module()
        trainer = lightning.Trainer(strategy=strategy, max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                                    enable_progress_bar=False, enable_model_summary=False)
        trainer.fit(module, torch.utils.data.DataLoader(data_of(), BATCH))
        return strategy.run, module.layers

    class StopAt(lightning.Callback):
        def __init__(self, batches):
            self.batches = batches

        def on_train_batch_end(self, trainer, *_):
            self.batches -= 1
            trainer.should_stop = self.batches == 0


@unittest.skipIf(lightning is None, "lightning is not installed")
class LightningTest(AdapterTest):
    name = "lightning"

    def fit(self, strategy=None, callbacks=(), **options):
        self.strategy = strategy or TactusStrategy()
        module = Module()
        self.trainer = lightning.Trainer(
            strategy=self.strategy, accelerator="cpu", logger=False, enable_checkpointing=False, num_sanity_val_steps=0,
            enable_progress_bar=False, enable_model_summary=False, callbacks=list(callbacks), **options)
        train, validation = (torch.utils.data.DataLoader(data_of(samples), BATCH) for samples in (SAMPLES, BATCH))
        self.trainer.fit(module, train, validation)
        return module

    def test_it_trains_as_a_loop(self):
        module = self.fit(max_epochs=3, gradient_clip_val=0.5)
        self.assertEqual(self.strategy.run.reason, "3 epochs completed")
        self.assert_same(module.layers, by_a_loop(epochs=3, clip_norm=0.5))

    def test_an_epoch_ends_with_its_samples_however_they_are_cut(self):
        module = self.fit(TactusStrategy(micro_batch=3), max_epochs=2)  # 39 pieces, and 13 batches by len()
        self.assertEqual(module.validations, 2)
        self.assert_same(module.layers, by_a_loop(epochs=2, micro_batch=3))

    def test_steps_end_it(self):
        module = self.fit(max_steps=20)
        self.assert_same(module.layers, by_a_loop(steps=20))

    @unittest.skipUnless(TACTUS.exists(), "TACTUS_BIN is no folder with tactus")
    def test_gradients_leave_during_the_backward_pass_where_that_is_wanted(self):
        self.overlaps()

    def test_a_trainer_that_stops_ends_the_run(self):
        self.fit(max_epochs=3, callbacks=[StopAt(5)])
        self.assertTrue(self.strategy.run.over)
        self.assertEqual(self.strategy.run.reason, "the trainer has stopped")

    def test_what_it_cannot_do_says_what_to_do(self):
        for words, options in (("micro_batch", {"accumulate_grad_batches": 2}),
                               ("norm", {"gradient_clip_val": 1, "gradient_clip_algorithm": "value"})):
            with self.subTest(words), self.assertRaisesRegex(tactus_train.UsageError, words):
                self.fit(max_epochs=1, **options)


class Losses(nn.Module):
    """With the loss in what it returns, as the Trainer has it."""

    def __init__(self):
        super().__init__()
        self.layers = layers()

    def forward(self, x, labels):
        logits = self.layers(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Named(torch.utils.data.Dataset):
    def __init__(self):
        self.data = data_of()

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return dict(zip(("x", "labels"), self.data[index]))


def by_transformers(overlap):
    model = Losses()
    optimizer = optimizer_of(model)
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, per_device_train_batch_size=BATCH, use_cpu=True, report_to="none",
                                                   disable_tqdm=True, save_strategy="no", num_train_epochs=2)
        trainer = TactusTrainer(model=model, args=arguments, train_dataset=Named(), overlap=overlap,
                                optimizers=(optimizer, schedule_of(optimizer)))
        trainer.train()
    return trainer.run, model.layers


@unittest.skipIf(transformers is None, "transformers, or accelerate, is not installed")
class HuggingFaceTest(AdapterTest):
    name = "transformers"

    def train(self, micro_batch=None, callbacks=(), scaler=None, **options):
        model = Losses()
        optimizer = optimizer_of(model)
        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(
                folder, per_device_train_batch_size=BATCH, use_cpu=True, report_to="none", disable_tqdm=True,
                logging_steps=1, save_strategy="no", **options)
            self.trainer = TactusTrainer(model=model, args=arguments, train_dataset=Named(), micro_batch=micro_batch,
                                         optimizers=(optimizer, schedule_of(optimizer)), callbacks=list(callbacks))
            self.trainer.accelerator.scaler = scaler  # on a processor accelerate makes none
            self.trainer.train()
        return model

    def test_it_trains_as_a_loop(self):
        model = self.train(num_train_epochs=3, max_grad_norm=0.5)
        self.assertEqual(self.trainer.run.reason, "3 epochs completed")
        self.assert_same(model.layers, by_a_loop(epochs=3, clip_norm=0.5))
        self.assertEqual(self.trainer.state.global_step, 39)
        self.assertGreater(self.trainer.state.log_history[1]["grad_norm"], 0)  # of the step before

    def test_steps_end_it(self):
        model = self.train(max_steps=20, max_grad_norm=0)
        self.assert_same(model.layers, by_a_loop(steps=20))

    def test_an_epoch_ends_with_its_samples_however_they_are_cut(self):
        model = self.train(num_train_epochs=2, micro_batch=3, max_grad_norm=0)
        self.assertEqual(self.trainer.run.reason, "2 epochs completed")
        self.assert_same(model.layers, by_a_loop(epochs=2, micro_batch=3))

    @unittest.skipUnless(TACTUS.exists(), "TACTUS_BIN is no folder with tactus")
    def test_gradients_leave_during_the_backward_pass_where_that_is_wanted(self):
        self.overlaps()

    def test_losses_in_float16_are_scaled_by_its_scaler(self):
        scaler = Scaler(2.0**10, interval=30)
        model = self.train(num_train_epochs=3, max_grad_norm=0.5, fp16=True, scaler=scaler)
        self.assert_same(model.layers, by_a_loop(epochs=3, clip_norm=0.5))
        self.assertEqual(scaler.scales, [2.0**10, 2.0**11], "it grows once in 39 steps")

    def test_a_trainer_that_stops_ends_the_run(self):
        class StopAt(transformers.TrainerCallback):
            def on_step_end(self, _, state, control, **__):
                control.should_training_stop = state.global_step == 5
        self.train(num_train_epochs=3, callbacks=[StopAt()])
        self.assertEqual(self.trainer.run.reason, "the trainer has stopped")

    def test_what_it_cannot_do_says_what_to_do(self):
        with self.assertRaisesRegex(tactus_train.UsageError, "micro_batch"):
            self.train(gradient_accumulation_steps=2)
        with self.assertRaisesRegex(tactus_train.UsageError, "fp16=True: losses are scaled on GPUs alone"):
            self.train(fp16=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
