"""A run: one process that trains, alone or as a member of a group."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import math
import os
import pathlib
import sys
import traceback
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import torch

from . import _abi, _checks, _device, _facts, _flat, _scaling
from ._link import Link, failure
from ._overlap import Overlap
from ._together import Edge, Evaluation, items, result, shared_out, sum_of
from ._told import Plan, Step
from .errors import ModelError, UsageError
from .loader import Loader, refuse_of_dataloader

# Of `adapt`, as sdk/program.h has it.
_ADAPT = {"batch", "synchronization", "aggregation", "learning_rate", "encoding", "batch_min", "batch_max", "period"}

# Where an agent that started this process tells it of its group.
_SOCKET = "TACTUS_CONTROL_SOCKET"
_DEVICE = "TACTUS_DEVICE"  # that it gives

_NONFINITE_ROUNDS = 10  # in a row end training

_NOTHING = contextlib.nullcontext()

_current: "Run | None" = None
_process = object()  # this one: in a child that is forked it is another, which costs no question to the system
_was_member = False  # of a job's group


def _take_socket() -> str | None:
    """That of the agent, once; what this process starts is no member."""
    global _was_member
    socket = os.environ.pop(_SOCKET, None)
    if socket is None and _was_member:
        raise UsageError("init() for a second run in a job's process: its group trains one model. Train the second in another job.")
    _was_member = socket is not None
    return socket


def init(*, adapt: Mapping[str, Any] | None = None, name: str = "program", seed: int = 1) -> "Run":
    """The run of this process. Once a process. Alone, or, started by `tactus run -- python train.py` or as a cluster's job, as a
    member of a group.

    adapt   a policy an axis, of a process that runs alone: {"batch": "auto", "learning_rate": "adascale"}. The default is a
            fixed plan, which trains as the loop would without Tactus. How a group adapts is its job's to say.
    seed    of the samples' order.
    """
    global _current
    if _current is not None and _current._process is _process:
        raise UsageError("init() was called in this process before. Call it once, and pass the run on; run.close() ends it.")
    _checks.require_place()
    _current = Run(adapt=adapt, name=name, seed=seed)
    return _current


class Run:
    """See init(). Not thread-safe: one thread calls. As a context manager it is closed at its end."""

    def __init__(self, *, adapt: Mapping[str, Any] | None, name: str, seed: int):
        self.over = False  # training has ended
        self.reason = ""  # why
        self.history: list[dict[str, float]] = []  # of log()
        self._adapt = dict(adapt or {})
        if unknown := sorted(set(self._adapt) - _ADAPT):
            raise UsageError(f"adapt: found {unknown[0]!r}, allowed: {', '.join(sorted(_ADAPT))}.", "adapt")
        self._socket = _take_socket()
        self.alone = self._socket is None
        self.device = _device.here() if self.alone else torch.device(os.environ.get(_DEVICE, "cpu"))  # for model.to(run.device)
        self._name, self._seed = name, seed
        self._process = _process
        self._loader: Loader | None = None
        self._link: Link | None = None
        self._batch: dict | None = None  # the one that is asked for
        self._edge: Edge | None = None  # where the group stands still now
        self._ahead: list[int] = []  # samples that are probably asked for next
        self._offered = 0  # values, at the edge
        self._losses = 0.0
        self._overlap: Overlap | None = None
        self._scaling: _scaling.LossScale | None = None
        self._backward_done = False
        self._given = False  # the loop has it
        self._scheduler_steps = 0
        self._scheduler_counted: int | None = None
        self._in_epoch: int | None = None  # that the loop is in
        self._standing = _abi.Standing()
        self._restore: list[Callable[[], None]] = []

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    # ---- What a script says before it trains

    def loader(self, dataset: Sequence, batch_size: int, *, collate_fn: Callable[[list], Any] | None = None,
               micro_batch: int | None = None, shuffle: bool = True, num_workers: int = 0, **of_dataloader: Any) -> Loader:
        """Batches of the dataset, `batch_size` samples a member on average, in passes of `micro_batch` at most (the whole of a fixed
        batch, half of one that is to be adapted). `num_workers` processes read the next batch's samples meanwhile; 0: this one does.
        Other arguments of torch's DataLoader are refused, with what to do."""
        self._require_own_process()
        if self._loader is not None:
            raise UsageError("run.loader() was called before: a run trains on one dataset. For another, such as for validation, use "
                             "run.evaluate() or a DataLoader of torch's.")
        if micro_batch is None and self._adapt and self.alone:
            micro_batch = max(1, batch_size // 2)  # how noisy gradients are is seen by two passes of a step that differ
        refuse_of_dataloader(of_dataloader)
        self._loader = Loader(self, dataset, batch_size, collate_fn, micro_batch, shuffle, num_workers)
        return self._loader

    def attach(self, model: torch.nn.Module | Iterable[tuple[str, torch.nn.Parameter]], optimizer: torch.optim.Optimizer, *,
               scheduler: Any = None, scaler: Any = None, clip_norm: float | None = None, epochs: int | None = None,
               steps: float | None = None, seconds: float | None = None, train_loss: float | None = None, overlap: bool = False) -> None:
        """The model and its optimizer are trained from now on.

        Parameters become views of one flat buffer, and so do their gradients. `optimizer` steps in run.step() alone, by the mean
        over all members, whose norm is cut to `clip_norm`. `scaler`, a GradScaler, is for passes in float16: run.backward() scales the
        loss, run.step() leaves out what became infinite, and updates it. `scheduler` is stepped once for `batch_size` samples, whatever the
        batches' sizes. `overlap`: in a group gradients leave for the other members while the rest of the backward pass is computed;
        a batch then has one run.backward(), behind which gradients are not looked at and the batch is not skipped. The others are
        when training ends by itself; a loop may also just stop.
        """
        self._require_own_process()
        if self._loader is None:
            raise UsageError("run.attach() before run.loader(): what trains is known by its data, too. Call run.loader() first.")
        if self._link is not None:
            raise UsageError("run.attach() was called before. run.detach() lets go of what is attached.")
        named = list(model.named_parameters()) if isinstance(model, torch.nn.Module) else list(model)
        if isinstance(model, torch.nn.Module) and (found := _flat.sync_batch_norms(model)):
            raise ModelError(f"the model has SyncBatchNorm ({found[0]}), which talks to the others by itself. Use BatchNorm: running "
                             "statistics are averaged where they are used.", found[0])
        parameters = _flat.trainable(named)
        device = _device.of_parameters(parameters)
        _checks.require_optimizer(optimizer, parameters)
        if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            raise UsageError("scheduler: ReduceLROnPlateau goes by a loss. Leave it out here, and call scheduler.step(loss) after "
                             "run.evaluate().", "scheduler")
        self._model = model if isinstance(model, torch.nn.Module) else None
        self._optimizer, self._scheduler = optimizer, scheduler
        keys = _flat.probe_state_keys(optimizer)
        self._flat = _flat.Flat(parameters)
        self._watched = _checks.Watched(self._model, named, parameters)
        self._states = _flat.OptimizerStates(optimizer, self._flat, keys)
        # What is not finite now is a constant, such as a mask of -inf.
        buffers = dict(self._model.named_buffers()) if self._model is not None else {}
        self._buffers = [name for name, buffer in buffers.items() if buffer.dtype == torch.float32 and torch.isfinite(buffer).all()]
        stop = {"epochs": epochs, "steps": steps, "seconds": seconds, "train_loss": train_loss}
        program = {
            "name": self._name, "seed": self._seed, "batch": self._loader.batch_size, "micro_batch": self._loader.micro_batch,
            "train_samples": len(self._loader.dataset), "segments": self._flat.segments(),
            "buffers": sum(buffers[name].numel() for name in self._buffers),
            "optimizer": _facts.of_optimizer(optimizer, len(keys)), "adapt": self._adapt,
            "stop": {key: value for key, value in stop.items() if value is not None}, "reads_ahead": self._loader._readers is not None,
        }
        if clip_norm is not None:
            program["clip_norm"] = clip_norm
        self._scaling = _scaling.of_scaler(scaler, self._flat)
        if self._scaling is not None:
            program["nonfinite_rounds_max"] = _NONFINITE_ROUNDS + self._scaling.rounds_to_find_it
        self._link = _device.open_link(device, program, self._socket)
        self.device = device
        self._offsets = self._link.layout(len(parameters))
        self._overlap = Overlap(self._flat, self._link.segment_ready) if overlap and not self.alone else None
        self._patch()
        self._serve()

    def detach(self) -> None:
        """Lets go of model and optimizer, which keep what training made of them, in memory of their own. In a group when training is
        over."""
        if not self.alone and not self.over and self._link is not None:
            raise UsageError("run.detach() in a group that trains: it trains what was attached. Change that before run.attach(); "
                             "run.finish(\"...\") ends training.")
        self._let_go()

    # ---- The loop

    def epochs(self) -> Iterator[int]:
        """The numbers of the epochs, from the present one to the last; of one that was left before its end, once more."""
        self._require_attached("run.epochs()")
        while not self.over:
            self._in_epoch = self._whole
            yield self._in_epoch

    def backward(self, loss: torch.Tensor, **kwargs) -> None:
        """In place of loss.backward(): `loss` is the mean over the batch's samples."""
        batch = self._batch_of_loop("run.backward(loss)")
        if loss.dim() != 0:
            raise UsageError(f"backward(): the loss has the shape {list(loss.shape)}, wanted is one number, the mean over the batch.")
        if not loss.requires_grad:
            raise UsageError("backward(): no parameter is behind this loss. Does it come from torch.no_grad() or .detach()?")
        count = len(batch["indices"])
        weight = count / batch["unit"]
        if not batch["first_of_sum"] and self._gradient_versions != self._flat.versions():
            raise UsageError("gradients were changed between two batches of a step. Does the loop call model.zero_grad()? Remove it.")
        self._watched.require_frozen()
        if self._overlap is not None:
            self._flat.gather_strays()  # a model.zero_grad() took the views away, and what is elsewhere does not leave early
        try:
            with self._overlap or _NOTHING, self._scaling or _NOTHING:
                times = weight if self._scaling is None else weight * self._scaling.scale
                (loss if times == 1 else loss * times).backward(**kwargs)
        except RuntimeError as error:
            _checks.explain_memory(error, count)
            raise
        self._flat.gather_strays()
        versions = self._flat.versions()
        self._watched.see(versions)
        if self._overlap is not None:
            self._overlap.check_told(versions)
        self._losses += loss.item() * count
        self._flat.check_home()
        self._backward_done = True
        self._gradient_versions = versions

    def step(self) -> Step:
        """In place of optimizer.step(), zero_grad() and scheduler.step(): once for each batch."""
        self._batch_of_loop("run.step()")
        if not self._backward_done:
            raise UsageError("step() without a gradient: run.backward(loss) was not called for this batch. To leave it out, call "
                             "run.skip().")
        self._check_gradients()
        step = self._finish_batch()
        if step.round_closed and self._standing.rank == 0:
            self._watched.round_closed(self._flat.names, self._standing.size > 1)
        return step

    def skip(self) -> Step:
        """This batch brings nothing: its samples count as used, and its gradient as zero."""
        batch = self._batch_of_loop("run.skip()")
        if self._backward_done and not batch["first_of_sum"]:
            raise UsageError("run.skip() after run.backward(loss): its gradient is in the step's already. Skip before it, or call run.step().")
        if self._overlap is not None:
            self._overlap.require_nothing_told("run.skip() was called behind run.backward(loss)", "Call it before.")
        if self._backward_done:
            self._flat.gradients.zero_()
            self._flat.begin_sum()
            self._losses = 0.0
        self._gradient_versions = self._flat.versions()
        return self._finish_batch()

    # ---- Beside the loop

    def evaluate(self, fn: Callable[..., Any], dataset: Sequence, *, batch_size: int,
                 collate_fn: Callable[[list], Any] | None = None) -> float | dict[str, float]:
        """The mean over a dataset of what `fn(*batch)` says of each sample: a tensor [samples], one number (a mean), or a dict of
        these. In evaluation mode and without gradients. Between two epochs those members of a group that call it evaluate a share
        each, by their batch sizes, of the same model (running statistics, such as those of BatchNorm, are averaged there), and all
        have the same result. Elsewhere, or where the others have ended, each evaluates all of it."""
        if len(dataset) == 0:
            raise UsageError("evaluate(): the dataset is empty.", "dataset")
        modules = list(self._model.modules()) if self._link is not None and self._model is not None else []
        evaluation = Evaluation(fn, dataset, batch_size, collate_fn or torch.utils.data.default_collate, modules)
        sums = shared_out(self, evaluation) or evaluation.sums(range(evaluation.batches))
        return result({key: value / len(dataset) for key, value in sums.items()})

    def mean(self, value: float | Mapping[str, float], weight: float = 1) -> float | dict[str, float]:
        """Over those members that call it, of a number or a dict of them, by their weights, such as samples; between two epochs,
        where a group stands still. Alone it is the value."""
        values = dict(items(value))
        self._require_attached("run.mean()")
        if self.alone or self.size == 1:
            return result({key: float(one) for key, one in values.items()})
        sums: dict[str, float] | None = None
        while sums is None and self._edge is not None:
            sums = sum_of(self, "mean", {**{key: float(one) * weight for key, one in values.items()}, " weight": float(weight)}, last=True)
        if sums is None:
            raise UsageError("run.mean() in a group: all members call it between two epochs, behind the inner loop, where they stand still"
                             + ("; the others have ended." if self.over else "."))
        if not sums[" weight"] > 0:
            raise UsageError("run.mean(): the members' weights add up to nothing.", "weight")
        return result({key: sums[key] / sums[" weight"] for key in values})

    def log(self, **values: float) -> None:
        """Numbers to be kept, in `history`, with the round and the epoch."""
        epoch = self._whole if self._in_epoch is None else self._in_epoch
        self.history.append({"round": self.round, "epoch": epoch, **values})

    def save(self, path: str | os.PathLike) -> None:
        """The model's state_dict, beside and then renamed; by rank 0."""
        self._require_attached("run.save()")
        if self.rank != 0:
            return
        if self._model is None:
            raise UsageError("run.save() saves a module, and parameters alone were attached. Save them as you like.")
        path = pathlib.Path(path)
        beside = path.with_name(path.name + ".partial")
        torch.save({key: value.detach().clone().cpu() for key, value in self._model.state_dict().items()}, beside)
        os.replace(beside, path)

    @contextlib.contextmanager
    def one_at_a_time(self):
        """On each node one member after the other, such as to download data; alone at once."""
        if self.alone:
            yield
            return
        job = os.environ.get("TACTUS_JOB_NAME", "")
        with open(pathlib.Path(self._socket).with_name(f"{job}.lock"), "w") as lock:  # in a folder of the agent's user alone
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # whoever was forked meanwhile has the file open, too

    def stop(self, why: str) -> None:
        """Training ends at the next edge of a round, of all members."""
        self._require_attached("run.stop()")
        self._link.stop(why)

    def finish(self, why: str) -> None:
        """For a loop that is left before training has ended. The others of a group are asked to end, too, and what this member is
        asked for until they have is skipped."""
        self._require_attached("run.finish()")
        if self.alone and not self.over:
            self.over, self.reason = True, why
        if not self.over:
            self.stop(why)
        while not self.over:
            for _ in self._loader:
                self.skip()

    def close(self) -> None:
        """Ends the run; what was attached keeps what training made of it."""
        global _current
        self._let_go()
        if self._loader is not None and self._process is _process:
            self._loader._close()
        if _current is self:
            _current = None

    # ---- Where it stands

    @property
    def rank(self) -> int:
        """In the group, from 0, which may change when it loses members or others join. Rank 0 is the one to print and to write files."""
        self._require_group("run.rank")
        return self._standing.rank

    @property
    def size(self) -> int:
        """Members of the group."""
        self._require_group("run.size")
        return max(1, self._standing.size)

    @property
    def round(self) -> int:
        """Rounds that were applied."""
        return self._standing.rounds

    @property
    def epoch(self) -> int:
        """Of the next sample."""
        if self._edge is not None:
            return self._edge.epochs
        return self._batch["epoch"] if self._batch else self._standing.epoch

    @property
    def samples(self) -> int:
        """Trained on, by all members."""
        return self._standing.samples

    @property
    def plan(self) -> Plan:
        self._require_attached("run.plan")
        return Plan(**self._link.plan())

    # ---- Inside

    def _require_own_process(self):
        if self._process is not _process:
            raise UsageError("this run is another process's: this one was forked from it. Call in the process that trains.")

    def _require_group(self, call: str):
        if not self.alone and self._standing.size == 0:
            raise UsageError(f"{call} before run.attach(model, optimizer): the group is formed there. For what one member of a node is to do "
                             "first, such as downloading data, there is run.one_at_a_time().")

    def _require_attached(self, call: str):
        self._require_own_process()
        if self._link is None:
            raise UsageError(f"{call} before run.attach(model, optimizer).")

    def _patch(self):
        """Calls that a loop made before have no effect, or say what to call."""
        def refuse(*_, **__):
            where = traceback.extract_stack(limit=2)[0]
            raise UsageError("optimizer.step() is called by run.step(), with the mean over all members. Remove this call "
                             f"({pathlib.Path(where.filename).name}:{where.lineno}).")

        def refuse_group(*_, **__):
            raise UsageError("optimizer.add_param_group() after run.attach(): what trains is known by then. Call run.detach(), add the group, "
                             "and attach again.")

        refuse.of_tactus = True
        refuse._with_counter = refuse._wrapped_by_lr_sched = True  # schedulers warn of a step() that they did not wrap
        self._optimizer_step = self._optimizer.step
        replaced = [(self._optimizer, "step", refuse), (self._optimizer, "zero_grad", lambda *_, **__: None),
                    (self._optimizer, "add_param_group", refuse_group)]
        for owner, name, new in replaced:
            former = owner.__dict__.get(name)
            owner.__dict__[name] = new

            def back(owner=owner, name=name, former=former):
                owner.__dict__.pop(name, None)
                if former is not None:
                    owner.__dict__[name] = former
            self._restore.append(back)

    def _batch_of_loop(self, call: str) -> dict:
        self._require_attached(call)
        if self.over:
            raise UsageError(f"{call} after training has ended ({self.reason}).")
        if not self._given:
            raise UsageError(f"{call} without a batch: one is had by iterating over the loader, and stepped once.")
        return self._batch

    def _check_gradients(self):
        if self._flat.versions() != self._gradient_versions:
            raise UsageError("gradients were changed between backward() and step(). To clip, pass clip_norm= to run.attach(): it then "
                             "bounds the mean over all members.")

    def _next_batch(self, epoch: int) -> list[int] | None:
        """Of the epoch; None: it, or training, is over."""
        self._require_attached("iterating over the loader")
        if self._given:
            raise UsageError("the loop asked for another batch, but step() was not called for the last one (round "
                             f"{self.round}, {len(self._batch['indices'])} samples). Call run.step() once for every batch, after "
                             "run.backward(loss); run.skip() to leave one out.")
        while not self.over and self._whole <= epoch:
            if self._edge is not None:
                self._edge = None
                self._link.reply()
            elif self._batch is not None and self._batch["indices"]:
                return self._batch["indices"]
            elif self._batch is not None:
                self._answer_batch()  # of a first round in which this member has no samples
                continue
            self._serve()  # or a signal had come between
        return None

    @property
    def _whole(self) -> int:
        """The epoch that the loop is in. In a group it ends where all members stand still, which may be in the next one's samples
        where rounds cross epochs."""
        if self._batch is None or self._edge is not None:
            return self.epoch
        return self._batch["epoch"] if self.alone else self._batch["whole"]

    def _finish_batch(self) -> Step:
        """And the rounds behind it in which this member has no samples."""
        epoch = self._whole
        closed = self._answer_batch()
        standing = self._standing
        while not self.over and self._batch is not None and not self._batch["indices"]:
            self._answer_batch()
        return Step(applied=closed and bool(standing.applied), round_closed=closed, epoch_ended=self.over or self._whole != epoch,
                    loss=standing.loss if closed else None, gradient_norm=standing.gradient_norm if closed else None,
                    gain=standing.gain if closed else 1.0)

    def _answer_batch(self) -> bool:
        """Whether its round is closed."""
        rounds = self.round
        losses, self._losses = self._losses, 0.0
        self._given = self._backward_done = False
        self._batch = None
        self._link.reply(loss_sum=losses)
        self._serve()
        closed = self.round > rounds
        if closed:
            self._step_scheduler()
            if self._scaling is not None:
                self._scaling.round_closed(bool(self._standing.applied))
        return closed

    def _step_scheduler(self):
        if self._scheduler is None:
            return
        due = self._base_steps()
        counted = getattr(self._scheduler, "_step_count", None)
        if self._scheduler_counted is not None and counted != self._scheduler_counted:
            raise UsageError("scheduler.step() is called by run.step(), once for batch_size samples. Remove the other call.")
        while self._scheduler_steps < due:
            self._scheduler.step()
            self._scheduler_steps += 1
        self._scheduler_counted = getattr(self._scheduler, "_step_count", None)

    def _base_steps(self) -> int:
        """How many batches of `batch_size` samples training has come along: len(loader) an epoch, and what a learning rate rule
        counts on top of samples."""
        standing, batch = self._standing, self._loader.batch_size
        whole = standing.consumed >= len(self._loader.dataset)
        steps = standing.epoch * len(self._loader) + (len(self._loader) if whole else standing.consumed // batch)
        return steps + math.floor(max(0.0, standing.progress - standing.samples / batch) + 1e-6)

    def _serve(self):
        """Does what is asked, up to the next batch or the end."""
        while True:
            request = self._link.take()
            if request.kind == _abi.COMPUTE:
                self._standing = self._link.standing()
                self._batch = {"indices": request.indices[:request.index_count], "unit": request.unit, "epoch": request.epoch,
                               "whole": request.epochs, "first_of_sum": bool(request.first_of_sum)}
                self._ahead = request.ahead[:request.ahead_count]
                if request.rounds > self._standing.rounds:
                    self._go_on_from(request)
                if request.first_of_sum:
                    self._flat.begin_sum()
                if self._overlap is not None:
                    self._overlap.begin_batch(request.early_segments)
                return
            if request.kind == _abi.EDGE:
                return self._stand(request)
            if request.kind == _abi.END:
                self._edge = None
                self._standing = self._link.standing()
                self.over = True
                self.reason = request.text.decode()
                if request.failed:
                    raise failure(self.reason)
                if request.suspended and not self.alone:
                    # What is behind the loop is for when training has ended.
                    print(f"tactus: {self.reason}: training is suspended, and goes on from here in another process", file=sys.stderr)
                    raise SystemExit(0)
                return
            try:
                self._do(request)
            except BaseException as error:
                self.over, self.reason = True, f"{type(error).__name__}: {error}"
                self._link.reply(error=self.reason)
                raise
            self._link.reply()

    def _stand(self, request):
        self._standing = self._link.standing()
        self.over = bool(request.over)
        if self.over:
            self.reason = request.text.decode()
        elif request.rounds > self._standing.rounds:
            self._go_on_from(request)
        told, members = request.gathered, request.members
        count = self._offered
        rows = [told[count * i:count * (i + 1)] for i in range(members)] if told else None
        self._edge = Edge(self._standing.epoch if self.over else request.epochs, rows, request.place)

    def _go_on_from(self, request):
        """Training came further without this process: it began in another, or this one was behind its group."""
        standing = self._standing
        standing.rounds, standing.epoch, standing.consumed = request.rounds, request.epochs, request.consumed
        standing.samples = request.epochs * len(self._loader.dataset) + request.consumed
        standing.progress = request.base_steps
        self._step_scheduler()

    def _do(self, request):
        if request.kind == _abi.BIND:
            if self._scaling is not None:
                self._scaling.begin_group()
            link, length = self._link, request.length
            self._flat.bind(self._offsets, link.tensor_at(request.parameters, length), link.tensor_at(request.gradients, length))
            self._states.bind([link.tensor_at(request.states[i], length) for i in range(request.state_count)])
        elif request.kind == _abi.STEP:
            self._step_by(request)
        elif request.kind == _abi.TAKE_STATE:
            self._states.taken(request.steps)
        elif request.kind in (_abi.READ_BUFFERS, _abi.WRITE_BUFFERS):
            self._move_buffers(request, request.kind == _abi.WRITE_BUFFERS)

    def _step_by(self, request):
        elsewhere = request.gradients != self._flat.gradients.data_ptr()
        if elsewhere:
            self._flat.point_at(self._flat.views(self._link.tensor_at(request.gradients, request.length)))
        # What this member's passes did not touch others' may have.
        hidden = not elsewhere and self._standing.size <= 1 and self._flat.hide_untouched()
        groups, gain = self._optimizer.param_groups, request.gain
        rates = [group["lr"] for group in groups] if gain != 1 else []
        scaled = [rate * gain for rate in rates]
        try:
            for group, rate in zip(groups, scaled):
                group["lr"] = rate
            self._optimizer_step()
        finally:
            # An optimizer may have changed its rates itself.
            for group, rate, times in zip(groups, rates, scaled):
                group["lr"] = rate if group["lr"] == times else group["lr"] / gain
            if elsewhere or hidden:
                self._flat.point_back()
        self._states.take_home()

    def _move_buffers(self, request, write: bool):
        memory = self._link.host_tensor_at(request.buffers, request.buffer_count)
        buffers, at = dict(self._model.named_buffers()), 0
        with torch.no_grad():
            for buffer in map(buffers.__getitem__, self._buffers):
                part = memory[at:at + buffer.numel()].view(buffer.shape)
                buffer.copy_(part) if write else part.copy_(buffer)
                at += buffer.numel()

    def _let_go(self):
        if self._link is None:
            return
        for back in self._restore:
            back()
        self._restore.clear()
        link, self._link = self._link, None
        own = self._process is _process
        if own:
            link.end(_why_it_ends())
        for hooks in (self._overlap, self._scaling):
            if hooks is not None:
                hooks.release()
        self._overlap = self._scaling = None
        self._batch = self._edge = None
        self._given = False
        del link  # and with it whatever of a device's memory nobody looks at
        if own or self.device.type == "cpu":  # a forked child has no device
            self._flat.release()
            self._states.release()


def _why_it_ends() -> str:
    """For the others of a group. An exception that nobody caught is what Python remembers of it when it ends."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    return f"{type(error).__name__}: {error}" if error is not None else "the program has ended its run before training was over"


@atexit.register
def _close_at_exit():
    if _current is not None and _current._process is _process:
        _current.close()


def _forget_in_child():
    global _process
    _process = object()
    if _current is not None and _current._link is not None:
        _current._link.forget()


os.register_at_fork(after_in_child=_forget_in_child)
