#!/usr/bin/python3 -B
"""PyTorch's own data-parallel training, as the peer of bench/time-to-loss --real: one process a host, on Gloo;
DistributedDataParallel at every step, with --hook by one of its own communication hooks, or with --local-steps N parameters
that are averaged after N steps of each host's own. A language model on bytes by AdamW, or with --images CIFAR-10 by SGD with
momentum 0.9. Rank 0 keeps copies of the parameters in memory and writes them to --copies when the clock has stopped, as torch
does: a list of (seconds, samples, parameters in a row).
"""
import argparse
import os
import pathlib
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

from snapshots import images, windows

POWER_RANK = 2
ONE_BUCKET_MB = 256
POWER_FROM = 10  # steps; before it vectors travel whole


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind, default in (("rank", int, None), ("world", int, None), ("master", str, None), ("model", str, None),
                                ("train", pathlib.Path, None), ("copies", pathlib.Path, None), ("batch", int, 32),
                                ("lr", float, 1e-3), ("local-steps", int, 1), ("seconds", float, 120.0),
                                ("snapshot-every", float, 8.0), ("iface", str, "eth0"), ("port", str, "29500")):
        parser.add_argument(f"--{name}", type=kind, default=default, required=default is None)
    parser.add_argument("--images", action="store_true")
    parser.add_argument("--hook", choices=["none", "fp16", "powersgd"], default="none")
    return parser.parse_args()


def wrapped(model, asked):
    """The model, whose gradients DistributedDataParallel averages where each step is to be common."""
    if asked.local_steps > 1:
        return model
    if asked.hook == "powersgd":
        # Over Gloo the hook's reductions of several buckets overtake one another, and a process aborts: one bucket for all.
        dist._DEFAULT_FIRST_BUCKET_BYTES = ONE_BUCKET_MB << 20
    net = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=ONE_BUCKET_MB if asked.hook == "powersgd" else 25)
    if asked.hook == "fp16":
        net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif asked.hook == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=POWER_RANK, start_powerSGD_iter=POWER_FROM)
        net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return net


def main():
    asked = options()
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR=asked.master, MASTER_PORT=asked.port, GLOO_SOCKET_IFNAME=asked.iface)
    dist.init_process_group("gloo", rank=asked.rank, world_size=asked.world)
    inputs, targets = images(asked.train) if asked.images else windows(asked.train)
    model = torch.jit.load(asked.model)
    parameters = list(model.parameters())
    net = wrapped(model, asked)
    optimizer = torch.optim.SGD(parameters, asked.lr, momentum=0.9) if asked.images else torch.optim.AdamW(parameters, asked.lr)
    chance = torch.Generator().manual_seed(1234 + asked.rank)
    copies, samples, step, stop = [], 0, 0, torch.zeros(1)
    dist.barrier()
    start = last = time.time()
    while not stop.item():
        index = torch.randint(len(inputs), (asked.batch,), generator=chance)
        optimizer.zero_grad()
        outputs = net(inputs[index])
        if asked.images:
            F.cross_entropy(outputs, targets[index]).backward()
        else:
            F.cross_entropy(outputs.flatten(0, 1), targets[index].flatten()).backward()
        optimizer.step()
        step += 1
        samples += asked.batch * asked.world
        if step % asked.local_steps:
            continue
        if asked.local_steps > 1:
            flat = torch.nn.utils.parameters_to_vector(parameters).detach()
            dist.all_reduce(flat)
            torch.nn.utils.vector_to_parameters(flat / asked.world, parameters)
        now = time.time()
        if asked.rank == 0 and now - last >= asked.snapshot_every:
            copies.append((now - start, samples, torch.nn.utils.parameters_to_vector(parameters).detach().clone()))
            last = now
        if asked.local_steps > 1 or step % 10 == 0:  # not with every step of DistributedDataParallel
            stop[0] = float(now - start > asked.seconds)
            dist.all_reduce(stop)
    if asked.rank == 0:
        torch.save(copies, asked.copies)


if __name__ == "__main__":
    # As the C++ worker runs it: TorchScript's optimizing executor makes these passes longer.
    with torch.jit.optimized_execution(False):
        main()
