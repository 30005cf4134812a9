"""Batches as the plan wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

from torch.utils.data import default_collate

from ._readers import Readers
from .errors import UsageError

if TYPE_CHECKING:
    from .run import Run


_ORDER = ("samples come in an order of the run's own, shared out by the members' speeds, each once an epoch. Leave it out; a part of "
          "the samples is a dataset of its own, such as a torch.utils.data.Subset")
# Of torch's DataLoader: what to do in its place.
_OF_DATALOADER = {
    "sampler": _ORDER,
    "batch_sampler": _ORDER,
    "drop_last": "an epoch has all samples, and its last batch, which may be smaller, weighs as much as its samples. Leave it out",
    **dict.fromkeys(("generator", "multiprocessing_context", "persistent_workers", "pin_memory", "pin_memory_device", "prefetch_factor",
                     "timeout", "worker_init_fn", "in_order"), "batches are read by the run's own processes. Leave it out"),
}


def refuse_of_dataloader(arguments: Mapping[str, Any]) -> None:
    """Those that say what is so anyway are none's harm."""
    for name, value in arguments.items():
        if name not in _OF_DATALOADER:
            raise UsageError(f"{name}: run.loader() has no such argument.", name)
        if value:
            raise UsageError(f"{name}: {_OF_DATALOADER[name]}.", name)


class Loader:
    """The samples of a dataset in an order of the run's own, each once an epoch, in batches whose sizes the plan says.

    An iteration is what is left of the present epoch. `len()` is how many batches of `batch_size` an epoch has, whatever
    their sizes turn out to be: what a learning rate schedule counts in.
    """

    def __init__(self, run: Run, dataset: Sequence, batch_size: int, collate_fn: Callable[[list], Any] | None,
                 micro_batch: int | None, shuffle: bool = True, num_workers: int = 0):
        if not shuffle:
            raise UsageError("shuffle=False: samples come in an order of the run's own, so that each is used once an epoch by one member. "
                             "Leave it out.", "shuffle")
        if num_workers < 0:
            raise UsageError(f"num_workers: found {num_workers}, allowed are 0, which reads in the training process, and more.", "num_workers")
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise UsageError("dataset: a map-style one is wanted, with a length and an item for each index; this is a "
                             f"{type(dataset).__name__}.", "dataset")
        if len(dataset) == 0:
            raise UsageError("dataset: it is empty.", "dataset")
        if batch_size < 1:
            raise UsageError(f"batch_size: found {batch_size}, allowed are 1 and more.", "batch_size")
        self.dataset = dataset
        self.batch_size = batch_size
        self.micro_batch = micro_batch or batch_size
        self._run = run
        self._collate = collate_fn or default_collate
        self._readers = Readers(dataset, num_workers, run._seed) if num_workers else None

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        run = self._run
        run._require_attached("iterating over the loader")
        run._watched.require_known()
        epoch = run._whole
        while (indices := run._next_batch(epoch)) is not None:
            batch = self._collate(self._samples(indices))
            run._given = True  # whoever could not read it may try again
            yield batch

    def _samples(self, indices: list[int]) -> list:
        if self._readers is None:
            return [self.dataset[i] for i in indices]
        samples = self._readers.take(indices)
        self._readers.ahead(self._run._ahead)
        return samples

    def _close(self) -> None:
        if self._readers is not None:
            self._readers.close()
            self._readers = None

    def peek(self) -> Any:
        """A batch to look at, of the first samples as they stand in the dataset. It counts for nothing."""
        return self._collate([self.dataset[i] for i in range(min(self.batch_size, len(self.dataset)))])
