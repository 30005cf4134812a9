"""Test losses of a job's snapshots, off the clock."""
import json
import pathlib
import struct

import numpy
import torch


def read_safetensors(path):
    """{name: tensor}; float32 only, as the workers write."""
    raw = pathlib.Path(path).read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in about["data_offsets"])
        values = numpy.frombuffer(raw[begin:end], dtype=numpy.float32).copy()
        tensors[name] = torch.from_numpy(values).reshape(about["shape"])
    return tensors


def images(data, names="data_batch_*.bin"):
    """CIFAR-10's images, standardised, and their classes."""
    paths = sorted(pathlib.Path(data).glob(names))
    rows = numpy.concatenate([numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, 3073) for path in paths])
    pixels = torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).astype(numpy.float32) / 255.0)
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
    deviation = torch.tensor([0.2470, 0.2435, 0.2616]).view(1, 3, 1, 1)
    return (pixels - mean) / deviation, torch.from_numpy(rows[:, 0].astype(numpy.int64))


def test_images(data):
    return images(data, "test_batch.bin")


CONTEXT = 64        # bytes of a sample of bytes_lm.pt
TEST_WINDOWS = 500  # that a test loss is of, the same for all systems


def windows(text, most=None):
    """Windows of CONTEXT of a file's bytes and the same one byte on, `most` of them at most."""
    raw = torch.frombuffer(bytearray(pathlib.Path(text).read_bytes()), dtype=torch.uint8).long()
    count = min((len(raw) - 1) // CONTEXT, most or len(raw))
    return raw[:count * CONTEXT].view(count, CONTEXT), raw[1:count * CONTEXT + 1].view(count, CONTEXT)


def loss_on(model, inputs, targets):
    with torch.no_grad():
        logits = torch.cat([model(inputs[i:i + 500]) for i in range(0, len(inputs), 500)])
        return torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten()).item()


def read_copies(path):
    """What ddp_peer.py wrote, [(seconds of training, samples, parameters in a row)], and samples/s."""
    copies = torch.load(path)
    seconds, samples, _ = copies[-1]
    return copies, samples / seconds


def losses_of_copies(model_path, test, copies):
    """[(seconds of training, loss)] of such copies. test: inputs, targets."""
    model = torch.jit.load(str(model_path))
    points = []
    for seconds, _, flat in copies:
        torch.nn.utils.vector_to_parameters(flat, model.parameters())
        points.append((seconds, loss_on(model, *test)))
    return points


def test_losses(model_path, test, folder):
    """[(seconds of training, loss)] of the snapshots SECONDS.safetensors in `folder`, in their order. test: inputs, targets."""
    model = torch.jit.load(str(model_path))
    points = []
    for path in sorted(pathlib.Path(folder).glob("*.safetensors"), key=lambda p: float(p.stem)):
        with torch.no_grad():
            values = read_safetensors(path)
            for name, parameter in model.named_parameters():
                parameter.copy_(values[name])
        points.append((float(path.stem), loss_on(model, *test)))
    return points
