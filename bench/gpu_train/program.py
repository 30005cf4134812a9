"""A program with Tactus on a device, held against a loop of torch's: what bench/gpu-programs starts.

    program.py alone DEVICE KIND      trains by itself, then the same batches without Tactus; prints one line of JSON
    program.py member FILE            trains as a member of a group of two; rank 0 saves the model, all print a hash of it
    program.py whole DEVICE FILE      holds that against one that takes the batches of both
"""
import contextlib
import hashlib
import json
import pathlib
import sys

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import tactus_train  # noqa: E402  (path set above)

SAMPLES, BATCH, EPOCHS, WIDTH = 512, 32, 3, 256
KINDS = ("float32", "bfloat16", "float16", "compiled", "side-stream")


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(SAMPLES, 64, generator=generator)
        self.y = (self.x @ torch.randn(64, 10, generator=generator)).argmax(1)
        self.read = []

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        self.read.append(index)
        return self.x[index], self.y[index]


def model_on(device):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 10)).to(device)


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def scaler_on(device, kind):
    """Of a scale that overflows a few times before it fits."""
    return torch.amp.GradScaler(device.type, init_scale=2.0**24) if kind == "float16" else None


def loss_of(model, x, y, device, kind):
    half = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(kind)
    with torch.autocast(device.type, dtype=half) if half else contextlib.nullcontext():
        return nn.functional.cross_entropy(model(x.to(device)), y.to(device))


def other_stream(device, kind):
    return torch.cuda.stream(torch.cuda.Stream(device)) if kind == "side-stream" and device.type == "cuda" else contextlib.nullcontext()


def with_tactus(device, kind, batch=BATCH):
    data, model = Rows(), model_on(device)
    with tactus_train.init() as run, other_stream(device, kind):
        loader = run.loader(data, batch_size=batch)
        run.attach(model, optimizer_of(model), epochs=EPOCHS, scaler=scaler_on(device, kind))
        called = torch.compile(model) if kind == "compiled" else model
        batches = []
        for _ in run.epochs():
            for x, y in loader:
                batches.append(data.read[-len(x):])
                run.backward(loss_of(called, x, y, device, kind))
                run.step()
    return model, batches


def without(device, kind, batches):
    data, model = Rows(), model_on(device)
    optimizer, scaler = optimizer_of(model), scaler_on(device, kind)
    called = torch.compile(model) if kind == "compiled" else model
    for indices in batches:
        x, y = torch.utils.data.default_collate([data[i] for i in indices])
        optimizer.zero_grad()
        loss = loss_of(called, x, y, device, kind)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return model


def difference(one, other):
    """The largest, beside the largest value."""
    pairs = zip(one.state_dict().values(), other.state_dict().values())
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def alone(device, kind):
    torch.use_deterministic_algorithms(True)
    device = torch.device(device)
    trained, batches = with_tactus(device, kind)
    moved = difference(trained, model_on(device))
    print(json.dumps({"difference": difference(trained, without(device, kind, batches)), "moved": moved}))


def member(path):
    with tactus_train.init() as run:
        model = model_on(run.device)
        loader = run.loader(Rows(), batch_size=BATCH)
        run.attach(model, optimizer_of(model), epochs=EPOCHS, overlap=True)
        for _ in run.epochs():
            for x, y in loader:
                run.backward(loss_of(model, x, y, run.device, "float32"))
                run.step()
        run.save(path)
        size = run.size
    values = b"".join(value.cpu().numpy().tobytes() for value in model.state_dict().values())
    print(f"member of {size} on {next(model.parameters()).device}: {hashlib.sha256(values).hexdigest()}")


def whole(device, path):
    model, _ = with_tactus(torch.device(device), "float32", 2 * BATCH)
    other = model_on("cpu")
    other.load_state_dict(torch.load(path))
    print(json.dumps({"difference": difference(other, model.cpu())}))


if __name__ == "__main__":
    {"alone": alone, "member": member, "whole": whole}[sys.argv[1]](*sys.argv[2:])
