"""The library's run, with Python's errors in place of return codes."""

from __future__ import annotations

import ctypes
import json
import os
import zlib

import torch

from . import _abi
from .errors import DivergedError, Error, UsageError

WAIT_MS = 100  # between two looks for signals


class _Memory:
    """The library's run, which goes with the last view of what it showed."""

    def __init__(self, library, run):
        self._library, self.run, self._pid = library, run, os.getpid()

    def __del__(self):
        if os.getpid() == self._pid:  # in a forked child its threads are missing
            self._library.tactus_close(self.run)


class Link:
    """One run of the library. What waits for others returns to Python ten times a second, so that signals are seen."""

    def __init__(self, program: dict, socket: str | None = None):
        self._library = _abi.load()
        text = json.dumps(program).encode()
        self._run = self._library.tactus_join(text, socket.encode()) if socket else self._library.tactus_open(text)
        if not self._run:
            raise UsageError(self._library.tactus_open_error().decode())
        self._memory = _Memory(self._library, self._run)
        self._request = _abi.Request()
        self._asked = ctypes.byref(self._request)
        self._answer = _abi.Answer()
        self._answered = ctypes.byref(self._answer)

    def tensor_at(self, address: int | None, length: int) -> torch.Tensor:
        """What the run showed of its device's memory, as a tensor: it is there as long as the tensor or a view of it is."""
        return self.host_tensor_at(address, length)

    def host_tensor_at(self, address: int | None, length: int) -> torch.Tensor:
        if not length or not address:
            return torch.empty(0)
        floats = (ctypes.c_float * length).from_address(address)
        floats.memory = self._memory
        return torch.frombuffer(floats, dtype=torch.float32)

    def layout(self, count: int) -> list[int]:
        offsets = (ctypes.c_uint64 * count)()
        self._check(self._library.tactus_layout(self._open(), offsets, count))
        return list(offsets)

    def take(self) -> _abi.Request:
        """What is asked next. Valid until the reply."""
        run = self._open()
        while not (asked := self._library.tactus_await(run, WAIT_MS, self._asked)):
            pass
        self._check(asked)
        return self._request

    def reply(self, loss_sum: float = 0.0, error: str | None = None):
        self._answer.loss_sum, self._answer.error = loss_sum, error.encode() if error else None
        self._check(self._library.tactus_reply(self._open(), self._answered))

    def offer(self, values: list[float], what: str, last: bool):
        """To those who offer as many values of the same; `last`: behind what is none."""
        told = (ctypes.c_double * len(values))(*values)
        answer = _abi.Answer(values=told, value_count=len(values), key=last << 32 | zlib.crc32(what.encode()))
        self._check(self._library.tactus_reply(self._open(), ctypes.byref(answer)))

    def segment_ready(self, segment: int):
        """The gradient of one parameter is complete, while a batch is computed."""
        self._check(self._library.tactus_segment_ready(self._open(), segment))

    def standing(self) -> _abi.Standing:
        standing = _abi.Standing()
        self._check(self._library.tactus_get_standing(self._open(), ctypes.byref(standing)))
        return standing

    def plan(self) -> dict:
        return json.loads(self._library.tactus_plan(self._open()))

    def stop(self, reason: str):
        self._library.tactus_stop(self._open(), reason.encode())

    def end(self, why: str):
        run, self._run = self._run, None
        if run:
            self._library.tactus_end(run, why.encode())

    def forget(self):
        """In a forked child: the threads are the parent's."""
        self._run = None

    def _open(self):
        if not self._run:
            raise UsageError("this run is over in this process: it was closed, or this is a process that was forked from it.")
        return self._run

    def _check(self, result: int):
        if result < 0:
            raise (UsageError if result == _abi.MISUSED else Error)(self._library.tactus_error(self._run).decode())


def failure(text: str) -> Error:
    """Why training failed, from the library's words."""
    if text.startswith("training diverged"):
        return DivergedError(text)
    return Error(text)
