"""The pictures of digits.py by Lightning: a module and a Trainer, and in this one a strategy (pip install lightning).

usage: with_lightning.py [--epochs N]
"""
import argparse

import lightning
import torch
from digits import bars
from tactus_train.lightning import TactusStrategy
from torch import nn
from torch.nn import functional as F


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                    nn.Linear(8 * 36, 8))

    def training_step(self, batch, _):
        x, y = batch
        return F.cross_entropy(self.layers(x), y)

    def validation_step(self, batch, _):
        x, y = batch
        self.log("right", (self.layers(x).argmax(1) == y).float().mean())

    def on_validation_epoch_end(self):
        if self.trainer.is_global_zero and not self.trainer.sanity_checking:
            print(f"epoch {self.current_epoch}: {float(self.trainer.callback_metrics['right']):.1%} right")

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.trainer.estimated_stepping_batches)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    epochs = parser.parse_args().epochs
    torch.manual_seed(1)
    strategy = TactusStrategy(name="digits")
    trainer = lightning.Trainer(strategy=strategy, max_epochs=epochs, accelerator="cpu", logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    loader = torch.utils.data.DataLoader(bars(8000, seed=1), batch_size=64, shuffle=True)
    trainer.fit(Digits(), loader, torch.utils.data.DataLoader(bars(1000, seed=2), batch_size=500))
    if trainer.is_global_zero:
        print(strategy.run.reason)


if __name__ == "__main__":
    main()
