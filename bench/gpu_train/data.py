"""Data for the training benchmark: sets in their real formats, made up where none are given, and read as the worker
reads them."""
import pathlib
import random

RECORD = 1 + 3 * 32 * 32  # bytes of a CIFAR-10 record: label, red, green, blue
WORDS = ["round", "plan", "lane", "batch", "worker", "speed", "gradient", "segment", "node", "step"]


def make_cifar(folder, records, seed=1):
    """Records with random pixels and labels, as two training files and a test file."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("data_batch_1", records - records // 2), ("data_batch_2", records // 2), ("test_batch", 16)):
        with open(folder / f"{name}.bin", "wb") as file:
            for _ in range(count):
                file.write(bytes([rng.randrange(10)]) + rng.getrandbits(8 * (RECORD - 1)).to_bytes(RECORD - 1, "little"))
    return folder


def make_text(path, size, seed=1):
    """Some `size` bytes of random words."""
    rng = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        written = 0
        while written < size:
            line = " ".join(rng.choices(WORDS, k=12)) + "\n"
            written += file.write(line)
    return path


def load_cifar(folder):
    """The training images, standardised as the worker does, and their labels: tensors in host memory."""
    import torch
    raw = b"".join(path.read_bytes() for path in sorted(pathlib.Path(folder).glob("data_batch_*.bin")))
    rows = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(-1, RECORD)
    images = rows[:, 1:].reshape(-1, 3, 32, 32).float().div_(255.0)
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(1, 3, 1, 1)
    deviation = torch.tensor([0.2470, 0.2435, 0.2616]).view(1, 3, 1, 1)
    return images.sub_(mean).div_(deviation), rows[:, 0].long()


def load_text(path, context):
    """Windows of `context` bytes of the file and the same one byte on, less the last tenth: tensors in host memory."""
    import torch
    raw = pathlib.Path(path).read_bytes()
    raw = raw[:len(raw) - len(raw) // 10]
    count = (len(raw) - 1) // context
    stream = torch.frombuffer(bytearray(raw), dtype=torch.uint8).long()
    return stream[:count * context].view(count, context), stream[1:count * context + 1].view(count, context)
