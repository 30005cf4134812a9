"""Processes that read samples while the training process computes."""

from __future__ import annotations

import os
import pickle
import random
import signal
import traceback
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import Any, Sequence

import torch

from .errors import Error

_LOOK_SECONDS = 1.0  # between two looks whether the training process is there


def _read(dataset: Sequence, connection, others: list, number: int, seed: int, parent: int) -> None:
    """A process's life: lists of indices in, samples or words about an error out. It ends with the training process, and by that
    alone: who is asked to end as one of many may be wanted until a checkpoint is written."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for other in others:
        other.close()
    torch.set_num_threads(1)
    torch.manual_seed(seed + number)
    random.seed(seed + number)
    try:
        import numpy
        numpy.random.seed((seed + number) % 2**32)
    except ImportError:
        pass
    while os.getppid() == parent:
        try:
            if not connection.poll(_LOOK_SECONDS):
                continue
            indices = connection.recv()
            try:
                answer = [dataset[i] for i in indices]
            except Exception:  # noqa: BLE001: it is the training process's to see
                answer = Error("a process that reads samples failed:\n" + traceback.format_exc())
            connection.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
        except (EOFError, OSError, KeyboardInterrupt):
            return


class Readers:
    """What they read ahead is a guess: a batch takes of it what it wants, and has the rest read, so that batch sizes may change at
    any time. Forked at construction, so before this process has threads of the library's."""

    def __init__(self, dataset: Sequence, count: int, seed: int):
        context = get_context("fork")
        self._readers = []
        self._connections = []
        for number in range(count):
            here, there = context.Pipe()
            others = [*self._connections, here]
            process = context.Process(target=_read, args=(dataset, there, others, number, seed, os.getpid()), daemon=True)
            process.start()
            there.close()
            self._readers.append(process)
            self._connections.append(here)
        self._asked: list[list[list[int]]] = [[] for _ in range(count)]  # of each, what it was asked for and has not answered
        self._under_way: set[int] = set()  # all of these
        self._read: dict[int, Any] = {}

    def ahead(self, indices: Sequence[int]) -> None:
        """These are probably wanted next; what was read for a former guess and is not among them goes."""
        wanted = set(indices)
        self._read = {index: sample for index, sample in self._read.items() if index in wanted}
        self._ask([index for index in indices if index not in self._read and index not in self._under_way])

    def take(self, indices: Sequence[int]) -> list:
        """Their samples, in this order."""
        self._ask([index for index in indices if index not in self._read and index not in self._under_way])
        missing = {index for index in indices if index not in self._read}
        while missing:
            for connection in wait(self._connections, 0.1):
                missing -= set(self._receive(self._connections.index(connection)))
        return [self._read.pop(index) for index in indices]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._readers:
            process.kill()
            process.join()
        self._readers, self._connections = [], []

    def _ask(self, indices: list[int]) -> None:
        """In pieces, so that all of them read."""
        count = len(self._connections)
        for number in range(count):
            piece = indices[len(indices) * number // count:len(indices) * (number + 1) // count]
            if piece:
                self._connections[number].send(piece)
                self._asked[number].append(piece)
                self._under_way.update(piece)

    def _receive(self, number: int) -> list[int]:
        try:
            answer = pickle.loads(self._connections[number].recv_bytes())
        except (EOFError, OSError):
            process = self._readers[number]
            process.join(1)
            raise Error(f"a process that reads samples has ended (exit code {process.exitcode}); was memory short?") from None
        indices = self._asked[number].pop(0)
        self._under_way.difference_update(indices)
        if isinstance(answer, Error):
            raise answer
        self._read.update(zip(indices, answer))
        return indices
