"""Reads a saved model as a user would and compares it with a plain PyTorch twin of its architecture.

usage: check_saved_model.py bytes-lm|cifar-cnn|resnet18 FOLDER

FOLDER holds model.pt, model.safetensors and the raw bytes `inputs` and `targets`. Prints the sum over the
samples of the cross-entropy, a sample's being the mean over its positions. Exits 77 where torch is missing.
"""
import json
import struct
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(77)


def read_safetensors(path):
    """The tensors of a file by name, with every rule of the format checked."""
    raw = open(path, "rb").read()
    (length,) = struct.unpack("<Q", raw[:8])
    assert length % 8 == 0
    header = json.loads(raw[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    data, end, tensors = raw[8 + length :], 0, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        assert begin == end and entry["dtype"] == "F32", name
        values = struct.unpack(f"<{(stop - begin) // 4}f", data[begin:stop])
        tensors[name] = torch.tensor(values).reshape(entry["shape"])
        end = stop
    assert end == len(data)
    return tensors


def linear(w, name, x):
    return F.linear(x, w[name + ".weight"], w[name + ".bias"])


def bytes_lm(w, tokens):
    heads = 2

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"])

    n, t = tokens.shape
    x = w["token.weight"][tokens] + w["position.weight"][:t]
    for i in range(2):
        b = f"blocks.{i}."
        q, k, v = [part.reshape(n, t, heads, -1).transpose(1, 2)
                   for part in linear(w, b + "qkv", norm(b + "norm1", x)).chunk(3, -1)]
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), float("-inf"))
        x = x + linear(w, b + "out", (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, -1))
        x = x + linear(w, b + "down", F.gelu(linear(w, b + "up", norm(b + "norm2", x))))
    return linear(w, "head", norm("norm", x))


def cifar_cnn(w, x):
    for name in ("conv1", "conv2", "conv3"):
        x = F.max_pool2d(F.relu(F.conv2d(x, w[name + ".weight"], w[name + ".bias"], padding=1)), 2)
    return linear(w, "output", F.relu(linear(w, "hidden", x.flatten(1))))


def resnet18(w, x):
    def norm(name, x):
        return F.batch_norm(x, w[name + ".running_mean"], w[name + ".running_var"], w[name + ".weight"],
                            w[name + ".bias"])

    x = F.relu(norm("bn1", F.conv2d(x, w["conv1.weight"], padding=1)))
    for stage in range(1, 5):
        for block in range(2):
            b, stride = f"layer{stage}.{block}.", 2 if stage > 1 and block == 0 else 1
            y = F.relu(norm(b + "bn1", F.conv2d(x, w[b + "conv1.weight"], stride=stride, padding=1)))
            y = norm(b + "bn2", F.conv2d(y, w[b + "conv2.weight"], padding=1))
            if stride == 2:
                x = norm(b + "downsample.1", F.conv2d(x, w[b + "downsample.0.weight"], stride=2))
            x = F.relu(x + y)
    return linear(w, "fc", x.mean((2, 3)))


def main():
    name, folder = sys.argv[1:]
    model = torch.jit.load(folder + "/model.pt")
    assert not model.training
    weights = read_safetensors(folder + "/model.safetensors")
    state = model.state_dict()
    assert set(weights) == set(state)
    assert all(torch.equal(weights[key], state[key]) for key in state)

    text = name == "bytes-lm"
    inputs = torch.frombuffer(bytearray(open(folder + "/inputs", "rb").read()),
                              dtype=torch.int64 if text else torch.float32)
    inputs = inputs.reshape(-1, 16) if text else inputs.reshape(-1, 3, 32, 32)
    targets = torch.frombuffer(bytearray(open(folder + "/targets", "rb").read()), dtype=torch.int64)
    with torch.no_grad():
        outputs = model(inputs)
        twin = {"bytes-lm": bytes_lm, "cifar-cnn": cifar_cnn, "resnet18": resnet18}[name](weights, inputs)
    assert torch.allclose(outputs, twin, rtol=1e-4, atol=1e-5), (outputs - twin).abs().max()
    print(float(F.cross_entropy(outputs.reshape(len(targets), -1), targets)) * len(inputs))


if __name__ == "__main__":
    main()
