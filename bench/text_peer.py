#!/usr/bin/python3 -B
"""PyTorch's own data-parallel training of a language model on bytes, as the peer of bench/time-to-loss --real on text: one
process a host, on Gloo, AdamW; DistributedDataParallel at every step, or with --local-steps N parameters that are averaged
after N steps of each host's own. Rank 0 keeps copies of the parameters in memory and tells their test loss when the clock has
stopped, a line each: seconds, samples, loss.
"""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

from snapshots import TEST_WINDOWS, loss_on, windows


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, kind, default in (("rank", int, None), ("world", int, None), ("master", str, None), ("model", str, None),
                                ("train", str, None), ("test", str, None), ("batch", int, 32), ("lr", float, 1e-3),
                                ("local-steps", int, 1), ("seconds", float, 120.0), ("snapshot-every", float, 8.0)):
        parser.add_argument(f"--{name}", type=kind, default=default, required=default is None)
    return parser.parse_args()


def main():
    asked = options()
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR=asked.master, MASTER_PORT="29500", GLOO_SOCKET_IFNAME="eth0")
    dist.init_process_group("gloo", rank=asked.rank, world_size=asked.world)
    inputs, targets = windows(asked.train)
    model = torch.jit.load(asked.model)
    parameters = list(model.parameters())
    net = torch.nn.parallel.DistributedDataParallel(model) if asked.local_steps == 1 else model
    optimizer = torch.optim.AdamW(parameters, lr=asked.lr)
    chance = torch.Generator().manual_seed(1234 + asked.rank)
    copies, samples, step, stop = [], 0, 0, torch.zeros(1)
    dist.barrier()
    start = last = time.time()
    while not stop.item():
        index = torch.randint(len(inputs), (asked.batch,), generator=chance)
        optimizer.zero_grad()
        F.cross_entropy(net(inputs[index]).flatten(0, 1), targets[index].flatten()).backward()
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
    for seconds, seen, flat in copies:
        torch.nn.utils.vector_to_parameters(flat, parameters)
        print(f"{seconds:.1f} {seen} {loss_on(model, *windows(asked.test, most=TEST_WINDOWS)):.4f}", flush=True)


if __name__ == "__main__":
    main()
