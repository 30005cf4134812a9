"""Passes in half precision: autocast, and losses that are scaled so that no gradient is too small or too large for float16."""
import copy
import pathlib
import sys
import unittest

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import tactus_train  # noqa: E402
from tactus_train import DivergedError, UsageError, _flat, _scaling  # noqa: E402
from training_test import OPTIMIZERS, Samples, model_of  # noqa: E402

FIRST_SCALE = 2.0**30  # too large: float16 ends at 65504


class Scaler:
    """As torch's GradScaler, which in torch 1.13 is on without a GPU in name alone."""

    def __init__(self, scale=FIRST_SCALE, interval=20, enabled=True):
        self._scale, self._interval, self._enabled = scale, interval, enabled
        self.scales = [scale]

    def is_enabled(self):
        return self._enabled

    def scale(self, loss):
        return loss * self._scale

    def update(self, scale):
        self._scale = scale
        self.scales.append(scale)

    def get_scale(self):
        return self._scale

    def get_growth_factor(self):
        return 2.0

    def get_backoff_factor(self):
        return 0.5

    def get_growth_interval(self):
        return self._interval


class Half(torch.autograd.Function):
    """What float16 does to values, and to gradients on their way back."""

    @staticmethod
    def forward(ctx, x):
        return x.half().float()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.half().float()


def loss_of(model, x, y):
    hidden = Half.apply(model[1](model[0](x)))
    return nn.functional.cross_entropy(Half.apply(model[2](hidden)), y)


def without(optimizer_of, batches, scaler):
    """A loop of torch's, as the page of GradScaler has it; and how many steps it left out."""
    data, model = Samples(), model_of()
    optimizer, good, left_out = optimizer_of(model.parameters()), 0, 0
    for indices in batches:
        x, y = torch.utils.data.default_collate([data[i] for i in indices])
        optimizer.zero_grad()
        scaler.scale(loss_of(model, x, y)).backward()
        finite = all(torch.isfinite(p.grad).all() for p in model.parameters())
        if finite:
            for p in model.parameters():
                p.grad.mul_(1 / scaler.get_scale())
            optimizer.step()
        else:
            left_out += 1
        good = good + 1 if finite else 0
        if not finite:
            scaler.update(scaler.get_scale() * 0.5)
        elif good == scaler.get_growth_interval():
            scaler.update(scaler.get_scale() * 2)
            good = 0
    return model, left_out


class GroupTest(unittest.TestCase):
    def test_the_scale_begins_again_where_a_group_does(self):
        """Else who joins would stay at another scale than the others for good."""
        scaler = Scaler(scale=1024.0, interval=2)
        scaling = _scaling.of_scaler(scaler, _flat.Flat(list(model_of().named_parameters())))
        for applied in (False, False, True):
            scaling.round_closed(applied)
        self.assertEqual(scaling.scale, 256)
        scaling.begin_group()
        self.assertEqual((scaling.scale, scaler.get_scale()), (1024, 1024))
        scaling.round_closed(True)
        self.assertEqual(scaling.scale, 1024, "rounds before the group count for nothing")


class ScalingTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.run_ = tactus_train.init()

    def tearDown(self):
        self.run_.close()

    def train(self, optimizer_of, scaler, loss=loss_of, epochs=5, micro_batch=None):
        """The model, its batches as they were read, and what was told of each step."""
        data, self.model = Samples(), model_of()
        loader = self.run_.loader(data, batch_size=8, micro_batch=micro_batch)
        self.run_.attach(self.model, optimizer_of(self.model.parameters()), epochs=epochs, scaler=scaler)
        batches, told = [], []
        for _ in self.run_.epochs():
            for x, y in loader:
                batches.append(data.read[-len(x):])
                self.run_.backward(loss(self.model, x, y))
                told.append(self.run_.step())
        return self.model, batches, told

    def assert_same(self, one, other):
        for (name, a), b in zip(one.state_dict().items(), other.state_dict().values()):
            self.assertTrue(torch.equal(a, b), name)

    def test_it_trains_as_a_loop_with_a_scaler_bit_for_bit(self):
        for name in ("momentum", "adamw"):
            with self.subTest(name):
                scaler, other = Scaler(), Scaler()
                trained, batches, told = self.train(OPTIMIZERS[name], scaler)
                expected, left_out = without(OPTIMIZERS[name], batches, other)
                self.assert_same(trained, expected)
                self.assertEqual(sum(not step.applied for step in told), left_out)
                self.assertGreater(left_out, 10, "more than end training where nothing is scaled")
                self.assertEqual(scaler.scales, other.scales)
                self.assertIn(2.0, [b / a for a, b in zip(scaler.scales, scaler.scales[1:])], "it grows")
                self.run_.close()
                self.run_ = tactus_train.init()

    def test_small_gradients_are_there_because_of_it(self):
        def small(model, x, y):
            return loss_of(model, x, y) * 2.0**-26
        before = model_of()
        self.train(lambda p: torch.optim.SGD(p, lr=2.0**25), None, small)
        self.assert_same(self.model, before)
        self.run_.close()
        self.run_ = tactus_train.init()
        self.train(lambda p: torch.optim.SGD(p, lr=2.0**25), Scaler(), small)
        with self.assertRaises(AssertionError):
            self.assert_same(self.model, before)

    def test_gradients_and_losses_are_never_seen_scaled(self):
        data, model = Samples(), model_of()
        loader = self.run_.loader(data, batch_size=8, micro_batch=4)
        self.run_.attach(model, OPTIMIZERS["sgd"](model.parameters()), epochs=1, scaler=Scaler(2.0**10))
        twin = copy.deepcopy(model)
        batches = (batch for _ in self.run_.epochs() for batch in loader)
        for _ in range(2):
            x, y = next(batches)
            self.run_.backward(loss_of(model, x, y))
            (loss_of(twin, x, y) / 2).backward()
            for p, q in zip(model.parameters(), twin.parameters()):
                self.assertLess(float((p.grad - q.grad).abs().max()), 1e-3)
            step = self.run_.step()
        self.assertLess(step.loss, 10)

    def test_behind_the_run_nothing_is_divided(self):
        self.train(OPTIMIZERS["sgd"], Scaler(), epochs=1)
        self.run_.close()
        self.model[0].bias.sum().backward()
        self.assertEqual(float(self.model[0].bias.grad[0]), 1)

    def test_one_that_is_off_changes_nothing(self):
        trained, batches, _ = self.train(OPTIMIZERS["sgd"], Scaler(2.0**-20, enabled=False), epochs=1)
        expected, _ = without(OPTIMIZERS["sgd"], batches, Scaler(1.0))
        self.assert_same(trained, expected)

    def test_what_is_none_is_refused(self):
        model = model_of()
        self.run_.loader(Samples(), batch_size=8)
        with self.assertRaisesRegex(UsageError, r"scaler: found a float without is_enabled\(\), wanted is a GradScaler"):
            self.run_.attach(model, OPTIMIZERS["sgd"](model.parameters()), scaler=65536.0)
        self.run_.attach(model, OPTIMIZERS["sgd"](model.parameters()))

    def test_what_no_scale_mends_ends_training(self):
        with self.assertRaisesRegex(DivergedError, "the gradient was not finite in 14 rounds"):
            self.train(OPTIMIZERS["sgd"], Scaler(16.0), lambda model, x, y: loss_of(model, x, y) * float("nan"))

    def test_autocast_in_bfloat16_needs_none(self):
        def loss(model, x, y):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return nn.functional.cross_entropy(model(x), y)
        trained, batches, _ = self.train(OPTIMIZERS["adamw"], None, loss)
        data, model = Samples(), model_of()
        optimizer = OPTIMIZERS["adamw"](model.parameters())
        for indices in batches:
            optimizer.zero_grad()
            loss(model, *torch.utils.data.default_collate([data[i] for i in indices])).backward()
            optimizer.step()
        self.assert_same(trained, model)
        self.assertEqual({p.dtype for p in trained.parameters()}, {torch.float32})


if __name__ == "__main__":
    unittest.main(verbosity=2)
