"""Which gradients are told to be complete during a backward pass, and when: each once, as it stays, and no other."""
import gc
import pathlib
import sys
import unittest
import weakref

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from tactus_train import UsageError, _flat  # noqa: E402
from tactus_train._overlap import Overlap  # noqa: E402


class Tied(nn.Module):
    """One weight is used twice, one not at all."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6, bias=False)
        self.again = nn.Linear(6, 6, bias=False)
        self.again.weight = self.first.weight
        self.between = nn.Linear(6, 6)
        self.unused = nn.Linear(6, 6)
        self.last = nn.Linear(6, 2)

    def forward(self, x):
        return self.last(torch.tanh(self.again(torch.tanh(self.between(torch.tanh(self.first(x)))))))


class OverlapTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.bind(Tied())
        self.x = torch.randn(5, 6)

    def bind(self, model):
        self.model = model
        self.flat = _flat.Flat(_flat.trainable(list(model.named_parameters())))
        offsets, length = [], 0
        for parameter in self.flat.parameters:
            offsets.append(length)
            length += parameter.numel()
        self.flat.bind(offsets, torch.zeros(length), torch.zeros(length))
        self.told = {}
        self.overlap = Overlap(self.flat, self.tell)

    def tell(self, i):
        self.assertNotIn(self.flat.names[i], self.told)
        self.told[self.flat.names[i]] = self.flat.parameters[i].grad.clone()

    @property
    def all(self):
        return len(self.flat.parameters)

    def loss(self):
        return self.model(self.x).pow(2).mean()

    def go_through(self, loss=None):
        with self.overlap:
            (self.loss() if loss is None else loss).backward()
        self.flat.gather_strays()
        self.overlap.check_told(self.flat.versions())

    def gradients(self):
        return {name: parameter.grad.clone() for name, parameter in zip(self.flat.names, self.flat.parameters)}

    def assert_told_as_they_stay(self):
        for name, gradient in self.told.items():
            self.assertTrue(torch.equal(gradient, self.gradients()[name]), name)

    def test_each_is_told_once_as_it_stays_and_unused_ones_are_not(self):
        self.overlap.begin_batch(self.all)
        self.go_through()
        self.assertEqual(set(self.told), {"last.weight", "last.bias", "between.weight", "between.bias", "first.weight"})
        self.assertEqual(list(self.told)[-1], "first.weight", "both its uses are in it")
        self.assert_told_as_they_stay()

    def test_gradients_are_those_of_a_pass_without(self):
        self.go_through()
        without = self.gradients()
        self.assertEqual(self.told, {})
        self.flat.gradients.zero_()
        self.overlap.begin_batch(self.all)
        self.go_through()
        self.assertEqual(len(self.told), 5)
        for name, gradient in self.gradients().items():
            self.assertTrue(torch.equal(gradient, without[name]), name)

    def test_no_other_is_told_than_may_be(self):
        self.overlap.begin_batch(2)
        self.go_through()
        self.assertEqual(set(self.told), {"last.weight", "last.bias"})

    def test_of_a_sum_the_last_pass_alone_tells(self):
        self.overlap.begin_batch(self.all)
        self.overlap.begin_batch(0)
        self.go_through()
        self.assertEqual(self.told, {})
        self.overlap.begin_batch(self.all)
        self.go_through()
        self.assertEqual(len(self.told), 5)
        self.assert_told_as_they_stay()

    def test_a_pass_of_ones_own_tells_nothing(self):
        self.overlap.begin_batch(self.all)
        self.loss().backward()
        self.assertEqual(self.told, {})

    def test_nothing_is_hooked_before_there_is_somebody(self):
        self.overlap.begin_batch(0)
        self.assertEqual(self.overlap._hooks, [])

    def test_a_gradient_elsewhere_is_not_told(self):
        self.overlap.begin_batch(self.all)
        self.model.between.weight.grad = None
        self.go_through()
        self.assertNotIn("between.weight", self.told)
        self.assertEqual(len(self.told), 4)
        self.assertTrue(self.model.between.weight.grad.abs().sum() > 0)

    def test_a_second_pass_of_a_batch_is_refused_and_the_next_batchs_is_not(self):
        self.overlap.begin_batch(self.all)
        self.go_through()
        before = self.gradients()
        with self.assertRaisesRegex(UsageError, "run.backward.loss. was called again"):
            self.go_through()
        self.assert_told_as_they_stay()
        self.assertTrue(torch.equal(self.gradients()["last.weight"], before["last.weight"]))
        self.told.clear()
        self.overlap.begin_batch(self.all)
        self.go_through()
        self.assertEqual(len(self.told), 5)

    def broken_loss(self):
        """Its backward pass breaks in the middle."""
        middle = torch.tanh(self.model.first(self.x))

        def breaks(_):
            raise RuntimeError("in the middle")
        middle.register_hook(breaks)
        return self.model.last(torch.tanh(self.model.between(middle))).pow(2).mean()

    def test_a_pass_that_breaks_in_the_middle_is_not_tried_again(self):
        self.overlap.begin_batch(self.all)
        with self.assertRaisesRegex(RuntimeError, "in the middle"):
            self.go_through(self.broken_loss())
        self.assertIn("last.weight", self.told)
        self.assertNotIn("first.weight", self.told)
        with self.assertRaises(UsageError):
            self.go_through()
        with self.assertRaisesRegex(UsageError, "skip"):
            self.overlap.require_nothing_told("run.skip() was called", "")

    def test_one_that_broke_before_anything_was_told_is(self):
        self.overlap.begin_batch(0)
        with self.assertRaises(RuntimeError):
            self.go_through(self.broken_loss())
        self.go_through()
        self.overlap.require_nothing_told("run.skip() was called", "")

    def test_what_is_changed_behind_its_back_is_an_error(self):
        self.overlap.begin_batch(self.all)
        node = self.model.last.bias.expand_as(self.model.last.bias).grad_fn.next_functions[0][0]

        def double(*_):
            self.model.last.bias.grad.mul_(2)
        node.register_hook(double)
        with self.assertRaisesRegex(UsageError, "last.bias was changed"):
            self.go_through()

    def test_passes_within_a_pass_that_use_a_weight_twice_are_an_error(self):
        self.overlap.begin_batch(self.all)
        x = self.x.clone().requires_grad_()
        twice = checkpoint(self.model.between, checkpoint(self.model.between, x, use_reentrant=True), use_reentrant=True)
        with self.assertRaisesRegex(UsageError, "between.(weight|bias) was changed"):
            self.go_through(twice.sum())

    def test_hooks_go_when_it_is_released_and_keep_nothing_alive(self):
        self.overlap.begin_batch(self.all)
        self.overlap.release()
        self.go_through()
        self.assertEqual(self.told, {})
        self.overlap.begin_batch(self.all)
        self.overlap.release()
        alive = weakref.ref(self.model.last.weight)
        self.model = self.flat = self.overlap = None
        gc.collect()
        self.assertIsNone(alive())


if __name__ == "__main__":
    unittest.main(verbosity=2)
