"""Hugging Face's Trainer, version 5: `TactusTrainer` in its place trains with Tactus, alone and in a group."""

from __future__ import annotations

import os
import sys

import transformers

from . import run as _run
from .errors import UsageError


class _SteppedByRun:
    """A scheduler, whose steps are left to run.step()."""

    def __init__(self, scheduler):
        self._scheduler, self.step = scheduler, lambda *_: None

    def __getattr__(self, name):
        return getattr(self._scheduler, name)


class TactusTrainer(transformers.Trainer):
    """Of TrainingArguments, per_device_train_batch_size is a member's, max_grad_norm bounds the mean over all members.

    micro_batch     as of run.loader(); takes the place of gradient_accumulation_steps
    overlap         as of run.attach()
    tactus          options of tactus_train.init()
    """

    def __init__(self, *args, micro_batch: int | None = None, overlap: bool = False, tactus: dict | None = None, **kwargs):
        self.run = self._gradient_norm = None  # the latter of the step before
        self._micro_batch, self._overlap, self._options = micro_batch, overlap, tactus or {}
        self._first = "TACTUS_JOB_NAME" not in os.environ  # in a group it is known when training begins
        super().__init__(*args, **kwargs)
        if self.args.gradient_accumulation_steps != 1:
            raise UsageError("gradient_accumulation_steps: say TactusTrainer(micro_batch=...) in its place.")

    def train(self, *args, **kwargs):
        try:
            result = super().train(*args, **kwargs)
            self.run.finish("the trainer has stopped")
            return result
        finally:
            if self.run is not None:
                self.run.close()

    def get_train_dataloader(self):
        loader = super().get_train_dataloader()
        self.run = _run.init(**self._options)
        return self.run.loader(loader.dataset, self._train_batch_size, collate_fn=loader.collate_fn,
                               micro_batch=self._micro_batch, num_workers=self.args.dataloader_num_workers)

    def create_scheduler(self, num_training_steps, optimizer=None):
        scheduler = super().create_scheduler(num_training_steps, optimizer)
        steps = num_training_steps if self.args.max_steps > 0 or self.args.num_train_epochs % 1 else None
        epochs = int(self.args.num_train_epochs) if steps is None else None
        if self.args.fp16 and self.accelerator.scaler is None:
            raise UsageError("fp16=True: losses are scaled on GPUs alone; leave it out, or take bf16=True.")
        self.run.attach(self.model, self.optimizer.optimizer, scheduler=scheduler, scaler=self.accelerator.scaler, epochs=epochs,
                        steps=steps, clip_norm=self.args.max_grad_norm or None, overlap=self._overlap)
        self._take_rank()
        def step(*_):
            came_to = self.run.step()
            self._gradient_norm = came_to.gradient_norm
            self.control.should_epoch_stop |= came_to.epoch_ended
            self.control.should_training_stop |= self.run.over
            self._take_rank()
        step._wrapped_by_lr_sched = self.optimizer._opt_called = True  # schedulers warn without
        self.optimizer.step, self.accelerator.backward = step, self.run.backward
        self.lr_scheduler = _SteppedByRun(scheduler)
        return self.lr_scheduler

    def _run_epoch(self, **kwargs):
        """Until the run's epoch ends, however many batches this member has of it."""
        steps, self.state.max_steps = self.state.max_steps, sys.maxsize
        super()._run_epoch(**{**kwargs, "num_update_steps_per_epoch": sys.maxsize})
        self.state.max_steps = steps

    def get_batch_samples(self, *args):
        samples, items = super().get_batch_samples(*args)
        self.control.should_epoch_stop |= not samples
        return samples, items

    def _get_grad_norm(self, model, grad_norm=None):
        return self._gradient_norm
    _clip_grad_norm = _get_grad_norm  # run.step() clips

    def _take_rank(self):
        self._first = self.state.is_world_process_zero = self.state.is_local_process_zero = self.run.rank == 0

    def is_world_process_zero(self):
        return self._first

    def _save_checkpoint(self, *args, **kwargs):
        if self._first:
            super()._save_checkpoint(*args, **kwargs)

    def save_model(self, *args, **kwargs):
        if self._first:
            super().save_model(*args, **kwargs)
