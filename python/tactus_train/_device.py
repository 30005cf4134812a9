"""A program's device: memory that torch's allocator lends to the library, and the order of their streams."""

from __future__ import annotations

import ctypes

import torch

from . import _abi
from ._link import Link
from .errors import ModelError, UnavailableError


def of_parameters(parameters) -> torch.device:
    """That of all of them (name, parameter)."""
    name, first = parameters[0]
    for other, parameter in parameters:
        if parameter.device != first.device:
            raise ModelError(f"parameter {other} is on {parameter.device}, and {name} on {first.device}; allowed: one device in a process. "
                             "Move the model there, or train one process a device.", other)
    if first.device.type not in ("cpu", "cuda"):
        raise ModelError(f"parameter {name} is on {first.device}; allowed: cpu and cuda.", name)
    return first.device


def open_link(device: torch.device, program: dict, socket: str | None) -> Link:
    if device.type == "cpu":
        return Link(program, socket)
    if not _abi.load().tactus_knows_cuda():
        raise UnavailableError(f"the model is on {device}, and this library of Tactus was built without CUDA. Build it where nvcc is "
                               "(docs/gpu.md), or move the model to cpu.")
    return DeviceLink(Cuda(device), program, socket)


def here() -> torch.device:
    """Where a program that runs alone is best."""
    usable = torch.cuda.is_available() and _abi.load().tactus_knows_cuda()
    return torch.device("cuda" if usable else "cpu")


class _Array:
    """Floats of a device, as torch takes them over without a copy; they live as long as what is taken from them."""

    def __init__(self, address: int, length: int, keep):
        self.__cuda_array_interface__ = {"shape": (length,), "typestr": "<f4", "data": (address, False), "version": 2}
        self._keep = keep


class Cuda:
    """What is asked of torch about one device, which is the process's present one from now on."""

    def __init__(self, device: torch.device):
        self.device = device
        torch.cuda.set_device(device)
        torch.cuda.init()

    @property
    def name(self) -> str:
        return f"cuda:{self.device.index}"

    def stream(self) -> int:
        return torch.cuda.current_stream(self.device).cuda_stream

    def zeros(self, length: int) -> torch.Tensor | None:
        """None: there is no room."""
        try:
            return torch.zeros(length, dtype=torch.float32, device=self.device)
        except torch.cuda.OutOfMemoryError:
            return None

    def let_go(self, memory: torch.Tensor) -> None:
        """What is queued on the present stream may still use it, whichever stream it was made on."""
        memory.record_stream(torch.cuda.current_stream(self.device))

    def wrap(self, address: int, length: int, keep) -> torch.Tensor:
        return torch.as_tensor(_Array(address, length, keep), device=self.device)

    def shrink(self) -> None:
        torch.cuda.empty_cache()


class DeviceLink(Link):
    """A run on a device that has streams. Vectors are torch's memory, which goes with the last view of it."""

    def __init__(self, cuda: Cuda, program: dict, socket: str | None = None):
        super().__init__({**program, "device": cuda.name, "lends_memory": True}, socket)
        self._cuda = cuda
        self._stream = 0  # that the library knows; as it begins
        self._lent: dict[int, torch.Tensor] = {}

    def take(self) -> _abi.Request:
        while True:
            self._tell_stream()
            request = super().take()
            for address in request.returned[:request.returned_count]:
                if (memory := self._lent.pop(address, None)) is not None:  # a request that was interrupted comes again
                    self._cuda.let_go(memory)
            if request.kind != _abi.MEMORY:
                return request
            answer = _abi.Answer(memory=self._lend(request.memory_bytes))
            self._check(self._library.tactus_reply(self._open(), ctypes.byref(answer)))

    def segment_ready(self, segment: int):
        self._tell_stream()
        super().segment_ready(segment)

    def end(self, why: str):
        if not self._run:
            return
        self._tell_stream()
        super().end(why)
        for memory in self._lent.values():  # what is queued here from now on, such as copies, still reads it
            self._cuda.let_go(memory)

    def tensor_at(self, address: int | None, length: int) -> torch.Tensor:
        if not length or not address:
            return torch.empty(0)
        for begin, memory in self._lent.items():
            if begin <= address < begin + memory.numel() * 4:
                offset = (address - begin) // 4
                return memory[offset:offset + length]
        return self._cuda.wrap(address, length, self._memory)

    def _lend(self, size: int) -> int | None:
        if size == 0:
            self._cuda.shrink()
            return None
        memory = self._cuda.zeros((size + 3) // 4)
        if memory is None:
            return None
        self._lent[memory.data_ptr()] = memory
        return memory.data_ptr()

    def _tell_stream(self):
        stream = self._cuda.stream()
        if stream != self._stream:
            self._check(self._library.tactus_use_stream(self._open(), stream))
            self._stream = stream
