"""What is trained: models, their sizes and data, as jobs for the worker and as tasks for its peers."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Network:
    """A built-in model of Tactus and the batch that one device takes a step."""
    name: str
    builtin: str
    options: dict
    batch: int
    kind: str  # of data: "cifar" or "text"

    @property
    def context(self):
        return self.options.get("context")


# On a GPU. bytes-lm at its own sizes is many small tensors, where what a step costs beside the mathematics shows; the
# wide one has work for the device.
FULL = [
    Network("resnet18", "resnet18", {}, 128, "cifar"),
    Network("bytes-lm", "bytes-lm", {"context": 64}, 64, "text"),
    Network("bytes-lm-512", "bytes-lm", {"width": 512, "heads": 8, "layers": 8, "context": 256}, 32, "text"),
]
# On a CPU, to see that all of it works.
TINY = [
    Network("resnet18", "resnet18", {"width": 4}, 4, "cifar"),
    Network("bytes-lm", "bytes-lm", {"width": 16, "heads": 2, "layers": 1, "context": 16}, 8, "text"),
]

OPTIMIZERS = {
    "sgd": {"sgd": {"learningRate": 0.01, "momentum": 0.9, "weightDecay": 0, "nesterov": False}},
    "adamw": {"adamw": {"learningRate": 1e-4, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weightDecay": 0.01}},
}


def data_of(network, paths):
    """JobSpec.data. Only one validation sample: nobody looks at it."""
    return {network.kind: str(paths[network.kind]), "validationFraction": 0.1, "validationSamplesMax": "1",
            "context": network.context or 64}


def adapt(batch):
    """JobSpec.adapt. Workers have no defaults: a coordinator tells them all of this."""
    return {"batch": {"perWorker": batch, "microBatch": batch},
            "learningRate": {"baseBatch": batch, "schedule": {"warmupSteps": 0}}}


def builtin_spec(name, network, paths, optimizer, batch, **more):
    """A job that trains the built-in model itself."""
    model = {"builtin": network.builtin, "options": network.options, "loss": "cross_entropy",
             "precision": "PRECISION_FLOAT32"}
    return {"name": name, "seed": "1", "model": model, "data": data_of(network, paths), "optimizer": optimizer,
            "adapt": adapt(batch), **more}


def export_spec(network, paths):
    """A job that does one step of the built-in model, whose result is the TorchScript file that all then train."""
    return builtin_spec("export", network, paths, OPTIMIZERS["sgd"], 2, stop={"rounds": "1"})


def spec(network, model, paths, optimizer, precision):
    """The job that is measured. It goes on until it is stopped."""
    described = {"torchscript": str(model), "loss": "cross_entropy", "precision": f"PRECISION_{precision.upper()}"}
    return {"name": "gpu-train", "seed": "1", "model": described, "data": data_of(network, paths),
            "optimizer": OPTIMIZERS[optimizer], "adapt": adapt(network.batch)}


def task(network, model, paths, optimizer, precision, variant, ddp, window):
    """The same for a peer."""
    return {"model": str(model), "kind": network.kind, "data": str(paths[network.kind]), "context": network.context,
            "batch": network.batch, "optimizer": optimizer, "precision": precision, "variant": variant, "ddp": ddp,
            "warm_up": window.warm_up_steps, "seconds": window.seconds}
