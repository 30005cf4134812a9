"""Lightning: `Trainer(strategy=TactusStrategy(), ...)` trains with Tactus, alone and, by `tactus run`, in a group."""

from __future__ import annotations

import math
import os
import sys

from lightning.pytorch.loops.fetchers import _DataFetcher
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.utilities import rank_zero_only

from . import run as _run
from .errors import UsageError


class _Batches(_DataFetcher):
    """One at a time. Which one is an epoch's last is known when it was stepped."""

    def __next__(self):
        batch = super().__next__()
        self.done = False
        return batch


class TactusStrategy(SingleDeviceStrategy):
    """Takes over dataset, batch_size, collate_fn and num_workers of the training dataloader; max_epochs, max_steps and
    gradient_clip_val of the Trainer. A schedule in steps counts batches of batch_size.

    micro_batch     as of run.loader(); takes the place of accumulate_grad_batches
    overlap         as of run.attach()
    options         of tactus_train.init()
    """

    def __init__(self, *, micro_batch: int | None = None, overlap: bool = False, **options):
        super().__init__("cpu")
        self._micro_batch, self._overlap, self._options = micro_batch, overlap, options
        self._take_rank(int("TACTUS_JOB_NAME" in os.environ))  # of a group it is known when training begins

    def process_dataloader(self, dataloader):
        if not self.lightning_module.trainer.training:
            return dataloader
        self.run = _run.init(**self._options)
        return self.run.loader(dataloader.dataset, dataloader.batch_size, collate_fn=dataloader.collate_fn,
                               micro_batch=self._micro_batch, num_workers=dataloader.num_workers)

    def on_train_start(self):
        trainer = self.lightning_module.trainer
        if len(self.optimizers) != 1 or not self.lightning_module.automatic_optimization:
            raise UsageError("TactusStrategy trains by one optimizer and automatic optimization.")
        if trainer.accumulate_grad_batches != 1:
            raise UsageError("accumulate_grad_batches: leave it out, and say TactusStrategy(micro_batch=...).")
        if trainer.gradient_clip_val and trainer.gradient_clip_algorithm not in (None, "norm"):
            raise UsageError("gradient_clip_algorithm: allowed is \"norm\", of the mean over all members.")
        in_steps = [config for config in self.lr_scheduler_configs if config.interval == "step"]
        epochs, steps = (None if limit in (None, -1) else limit for limit in (trainer.max_epochs, trainer.max_steps))
        scheduler = in_steps[0].scheduler if in_steps else None
        self.run.attach(self.lightning_module, self.optimizers[0], scheduler=scheduler, epochs=epochs, steps=steps,
                        clip_norm=trainer.gradient_clip_val or None, overlap=self._overlap)
        for config in in_steps:
            config.frequency = sys.maxsize  # run.step() steps it
        fit, progress = trainer.fit_loop, trainer.fit_loop.epoch_progress.current
        progress.processed = progress.completed = self.run.epoch  # of a group that trains already
        fit.epoch_loop.max_steps = -1
        if trainer.limit_train_batches == 1.0 and trainer.val_check_interval == 1.0:
            fit.max_batches = trainer.val_check_batch = math.inf
        fit._data_fetcher = _Batches()
        fit._data_fetcher.setup(fit._combined_loader)
        iter(fit._data_fetcher)
        self._take_rank(self.run.rank)

    def backward(self, closure_loss, optimizer, *args, **kwargs):
        closure_loss = self.precision_plugin.pre_backward(closure_loss, self.lightning_module)
        self.run.backward(closure_loss, **kwargs)
        return self.precision_plugin.post_backward(closure_loss, self.lightning_module)

    def optimizer_step(self, optimizer, closure, model=None, **kwargs):
        loss = closure()
        step = self.run.step() if loss is not None else self.run.skip()
        trainer = self.lightning_module.trainer
        trainer.fit_loop.epoch_loop.batch_progress.is_last_batch |= step.epoch_ended
        trainer.should_stop |= self.run.over
        self._take_rank(self.run.rank)
        return loss

    def on_train_end(self):
        self.run.finish("the trainer has stopped")

    def teardown(self):
        if hasattr(self, "run"):
            self.run.close()
        super().teardown()

    @property
    def is_global_zero(self):
        return self.global_rank == 0

    def _take_rank(self, rank):
        self.global_rank = rank_zero_only.rank = rank
