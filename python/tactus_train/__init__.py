"""Tactus for PyTorch: your own training loop, in step with others of any speed.

    run = tactus_train.init()
    loader = run.loader(dataset, batch_size=64)
    run.attach(model, optimizer, epochs=3)
    for epoch in run.epochs():
        for x, y in loader:
            run.backward(loss_of(model(x), y))
            run.step()
"""

from .errors import DivergedError, Error, ModelError, UnavailableError, UsageError
from .loader import Loader
from .run import Plan, Run, Step, init

__all__ = ["DivergedError", "Error", "Loader", "ModelError", "Plan", "Run", "Step", "UnavailableError", "UsageError", "init"]
__version__ = "0.1.0"
