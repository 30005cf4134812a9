"""The same training in plain PyTorch, and in DistributedDataParallel: one process a device, which is told on standard
input what to measure, a JSON line each, and answers on standard output.

usage: peer.py DEVICE RANK WORLD STORE      DEVICE: cpu or cuda; STORE: a file that all processes of a group share
"""
import contextlib
import gc
import json
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from gpu_train.data import load_cifar, load_text  # noqa: E402  (path set above)

STAGED = 4  # batches on their way to the device


class Feed:
    """Random batches from host memory, through pinned buffers that take turns, so that copies overlap with the
    computation."""

    def __init__(self, inputs, targets, batch, device, seed):
        self.inputs, self.targets, self.batch, self.device = inputs, targets, batch, device
        self.generator = torch.Generator().manual_seed(seed)
        self.order = torch.empty(0, dtype=torch.long)
        self.turn = 0
        self.staged = []
        if device.type == "cuda":
            for _ in range(STAGED):
                buffers = [torch.empty((batch,) + t.shape[1:], dtype=t.dtype).pin_memory() for t in (inputs, targets)]
                self.staged.append((buffers, torch.cuda.Event()))

    def next(self):
        if len(self.order) < self.batch:
            count = max(len(self.inputs), self.batch)
            self.order = torch.randperm(count, generator=self.generator) % len(self.inputs)
        index, self.order = self.order[:self.batch], self.order[self.batch:]
        if not self.staged:
            return self.inputs[index], self.targets[index]
        (inputs, targets), copied = self.staged[self.turn]
        self.turn = (self.turn + 1) % STAGED
        copied.synchronize()
        torch.index_select(self.inputs, 0, index, out=inputs)
        torch.index_select(self.targets, 0, index, out=targets)
        pair = inputs.to(self.device, non_blocking=True), targets.to(self.device, non_blocking=True)
        copied.record()
        return pair


def optimizer_of(name, variant, parameters):
    """PyTorch's own, or a reason why this version of it does not have it."""
    options = {variant: True}
    try:
        if name == "sgd":
            return torch.optim.SGD(parameters, lr=0.01, momentum=0.9, **options), ""
        return torch.optim.AdamW(parameters, lr=1e-4, **options), ""
    except (TypeError, RuntimeError) as error:
        return None, str(error).splitlines()[0]


class Peer:
    """What stays between measurements: the process group and the data that was read."""

    def __init__(self, device, rank, world, store):
        self.device = torch.device("cuda", 0) if device == "cuda" else torch.device("cpu")
        self.rank, self.world = rank, world
        self.data = {}
        if self.device.type == "cpu":
            torch.set_num_threads(1)  # as the worker has
        backend = "nccl" if self.device.type == "cuda" else "gloo"
        torch.distributed.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=world)

    def tensors(self, task):
        key = (task["data"], task.get("context"))
        if key not in self.data:
            self.data[key] = load_text(*key) if task["kind"] == "text" else load_cifar(task["data"])
        return self.data[key]

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def steps_in(self, seconds, of_one):
        """How many steps take so long: the same number on all members of a group."""
        count = torch.tensor([max(1.0, seconds / of_one)], device=self.device)
        torch.distributed.all_reduce(count, op=torch.distributed.ReduceOp.MAX)
        return int(count.item())

    def measure(self, task):
        model = torch.jit.load(task["model"], map_location=self.device)
        model.train()
        optimizer, reason = optimizer_of(task["optimizer"], task["variant"], [p for p in model.parameters()])
        if optimizer is None:
            return {"refused": reason}
        net = torch.nn.parallel.DistributedDataParallel(model) if task["ddp"] else model
        feed = Feed(*self.tensors(task), task["batch"], self.device, 100 + self.rank)
        cast = (torch.autocast(self.device.type, dtype=torch.bfloat16) if task["precision"] == "bfloat16"
                else contextlib.nullcontext())
        losses = torch.zeros((), device=self.device)

        def run(steps):
            self.wait()
            begun = time.perf_counter()
            for _ in range(steps):
                inputs, targets = feed.next()
                optimizer.zero_grad(set_to_none=True)
                with cast:
                    logits = net(inputs)
                    loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
                loss.backward()
                optimizer.step()
                losses.add_(loss.detach())  # nobody waits for a loss
            self.wait()
            return time.perf_counter() - begun

        run(task["warm_up"])
        tried = max(2, task["warm_up"] // 2)
        steps = self.steps_in(task["seconds"], run(tried) / tried)
        taken = run(steps)
        loss = losses.item() / (task["warm_up"] + tried + steps)
        return {"samples_per_second": steps * task["batch"] * (self.world if task["ddp"] else 1) / taken, "loss": loss}

    def versions(self):
        ask = {"torch": lambda: torch.__version__, "python": lambda: sys.version.split()[0],
               "tf32_matmul": lambda: torch.backends.cuda.matmul.allow_tf32,
               "tf32_cudnn": lambda: torch.backends.cudnn.allow_tf32}
        if self.device.type == "cuda":
            ask.update({"device": torch.cuda.get_device_name, "cuda": lambda: torch.version.cuda,
                        "cudnn": torch.backends.cudnn.version,
                        "nccl": lambda: ".".join(str(part) for part in torch.cuda.nccl.version())})
        found = {}
        for what, answer in ask.items():
            try:
                found[what] = answer()
            except Exception as error:  # a question that this version of PyTorch has no answer to
                found[what] = type(error).__name__
        return found


def main():
    device, rank, world, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    answers = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is no answer
    if device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"no_device": "torch.cuda.is_available() is false"}), file=answers, flush=True)
        return
    peer = Peer(device, rank, world, store)
    print(json.dumps(peer.versions()), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer = peer.measure(json.loads(line))
        except Exception as error:  # whatever it is, it belongs into the table
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()  # the worker's turn
        print(json.dumps(answer), file=answers, flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
