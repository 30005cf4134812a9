"""Models that are computed together train as each does by itself."""
import copy
import pathlib
import sys
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tactus_train  # noqa: E402
from tactus_train import ModelError, UsageError  # noqa: E402
from tactus_train.fused import Fused  # noqa: E402
from training_test import Samples, model_of  # noqa: E402

RATES = (0.1, 0.03, 0.01)
# Sums of a wider operation are added up in another order; over some steps of such sizes that is far below this.
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


class Reader(nn.Module):
    """A small transformer whose last layer is its table of words, with a mask as a buffer."""

    def __init__(self, words=11, width=8, context=6, dropout=0.0):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.norm, self.into, self.out_of = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1))

    def forward(self, x, scale=1.0):
        values = self.words(x) + self.places(torch.arange(x.shape[1]))
        q, k, v = self.into(self.norm(values)).chunk(3, -1)
        attention = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.mask).softmax(-1)
        return self.head(values + self.dropout(self.out_of(attention @ v))) * scale


def seeded(make, seed):
    torch.manual_seed(seed)
    return make()


def pictures_model():
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))


def batches(kind, count=6):
    generator = torch.Generator().manual_seed(5)
    for _ in range(count):
        if kind == "text":
            x = torch.randint(0, 11, (4, 7), generator=generator)
            yield x[:, :-1], x[:, 1:]
        elif kind == "pictures":
            yield torch.randn(6, 3, 8, 8, generator=generator), torch.randint(0, 5, (6,), generator=generator)
        else:
            yield torch.randn(8, 12, generator=generator), torch.randint(0, 5, (8,), generator=generator)


def loss_of(outputs, targets):
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())


KINDS = {"rows": model_of, "pictures": lambda seed: seeded(pictures_model, seed), "text": lambda seed: seeded(Reader, seed)}


class FusedTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def assert_alike(self, models, others):
        for model, other in zip(models, others):
            for (name, mine), its in zip(model.state_dict().items(), other.state_dict().values()):
                torch.testing.assert_close(mine, its, **CLOSE, msg=lambda words, name=name: f"{name}: {words}")

    def assert_trains_as_by_itself(self, kind, optimizer_of):
        models = [KINDS[kind](seed) for seed in range(len(RATES))]
        solo = copy.deepcopy(models)
        fused = Fused(models)
        optimizers = [optimizer_of(model, lr) for model, lr in zip(models, RATES)]
        of_solo = [optimizer_of(model, lr) for model, lr in zip(solo, RATES)]
        for x, y in batches(kind):
            losses = fused.losses(loss_of, fused(x), y)
            losses.sum().backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            for number, (model, optimizer) in enumerate(zip(solo, of_solo)):
                loss = loss_of(model(x), y)
                torch.testing.assert_close(losses[number], loss, **CLOSE)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        self.assert_alike(models, solo)
        fused.eval()
        x, _ = next(batches(kind))
        with torch.no_grad():
            found = fused(x)
            for number, model in enumerate(solo):
                torch.testing.assert_close(found[number], model.eval()(x), **CLOSE)

    def test_rows_with_a_rate_each(self):
        self.assert_trains_as_by_itself("rows", lambda model, lr: torch.optim.Adam(model.parameters(), lr=lr))

    def test_pictures_and_running_statistics(self):
        self.assert_trains_as_by_itself("pictures", lambda model, lr: torch.optim.SGD(model.parameters(), lr=lr))

    def test_text_with_tied_weights(self):
        # Not by Adam: keys' biases have a gradient of zero, and it would make steps of what rounding leaves of that.
        self.assert_trains_as_by_itself("text", lambda model, lr: torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9))

    def test_no_operation_is_run_model_by_model(self):
        """vmap warns of those that it has no rule for."""
        for kind, make in KINDS.items():
            fused = Fused([make(seed) for seed in range(2)])
            x, y = next(batches(kind))
            with warnings.catch_warnings(), self.subTest(kind):
                warnings.simplefilter("error")
                fused.losses(loss_of, fused(x), y).sum().backward()

    def test_inputs_of_their_own(self):
        models = [model_of(seed) for seed in range(2)]
        (x, y), (other_x, other_y) = batches("rows", 2)
        fused = Fused(models, own_inputs=True)
        losses = fused.losses(loss_of, fused(torch.stack([x, other_x])), torch.stack([y, other_y]))
        torch.testing.assert_close(losses[0], loss_of(models[0](x), y), **CLOSE)
        torch.testing.assert_close(losses[1], loss_of(models[1](other_x), other_y), **CLOSE)

    def test_keyword_arguments_are_for_all(self):
        models = [seeded(Reader, seed) for seed in range(2)]
        x, _ = next(batches("text"))
        torch.testing.assert_close(Fused(models)(x, scale=3.0), 3 * torch.stack([model(x) for model in models]), **CLOSE)

    def test_one_that_is_not_finite_leaves_the_others_as_they_are(self):
        for kind, make in KINDS.items():
            models = [make(seed) for seed in range(3)]
            well = copy.deepcopy(models)
            with torch.no_grad():
                next(models[1].parameters()).fill_(float("nan"))
            x, y = next(batches(kind))
            for these in (models, well):
                fused = Fused(these)
                losses = fused.losses(loss_of, fused(x), y)
                losses.sum().backward()
            self.assertFalse(next(models[1].parameters()).grad.isfinite().all())
            for number in (0, 2):
                for mine, its in zip(models[number].parameters(), well[number].parameters()):
                    torch.testing.assert_close(mine.grad, its.grad, **CLOSE)
                self.assert_alike([models[number]], [well[number]])

    def test_those_that_go_on_go_on_without_who_left(self):
        models = [model_of(seed) for seed in range(3)]
        left = copy.deepcopy(models[1].state_dict())
        x, y = next(batches("rows"))
        fused = Fused([models[0], models[2]])
        fused.losses(loss_of, fused(x), y).sum().backward()
        self.assertIsNone(next(models[1].parameters()).grad)
        self.assertTrue(all(torch.equal(mine, left[name]) for name, mine in models[1].state_dict().items()))
        torch.testing.assert_close(fused(x)[1], models[2](x), **CLOSE)

    def test_models_keep_their_own_tensors(self):
        models = [seeded(pictures_model, seed) for seed in range(2)]
        before = [[id(value) for value in (*model.parameters(), *model.buffers())] for model in models]
        fused = Fused(models)
        x, _ = next(batches("pictures"))
        fused(x)
        with self.assertRaises(RuntimeError):
            fused(x[:, :1])  # one channel
        self.assertEqual(before, [[id(value) for value in (*model.parameters(), *model.buffers())] for model in models])
        self.assertEqual([int(model[1].num_batches_tracked) for model in models], [1, 1])

    def test_evaluation_changes_nothing(self):
        models = [seeded(pictures_model, seed) for seed in range(2)]
        before = copy.deepcopy(models)
        fused = Fused(models).eval()
        x, _ = next(batches("pictures"))
        with torch.inference_mode():
            fused(x)
        self.assertTrue(all(torch.equal(mine, its) for model, other in zip(models, before)
                            for mine, its in zip(model.state_dict().values(), other.state_dict().values())))

    def test_each_draws_its_own_random_numbers(self):
        model = seeded(lambda: Reader(dropout=0.5), 1)
        x, _ = next(batches("text"))
        fused = Fused([model, copy.deepcopy(model)])
        first, second = fused(x)
        self.assertFalse(torch.allclose(first, second))

    def test_in_a_run(self):
        """The optimizer has a group of parameters for each model."""
        def train(run):
            models = [model_of(seed) for seed in range(3)]
            groups = [{"params": model.parameters(), "lr": lr} for model, lr in zip(models, RATES)]
            fused, optimizer = Fused(models), torch.optim.SGD(groups, lr=0.0, momentum=0.9)
            loader = run.loader(Samples(), batch_size=8)
            run.attach(fused, optimizer, epochs=2)
            used = []
            for _ in run.epochs():
                for x, y in loader:
                    used.append((x, y))
                    run.backward(fused.losses(loss_of, fused(x), y).sum())
                    run.step()
            return models, used

        with tactus_train.init() as run:
            models, used = train(run)
        solo = [model_of(seed) for seed in range(3)]
        for model, lr in zip(solo, RATES):
            optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
            for x, y in used:
                optimizer.zero_grad()
                loss_of(model(x), y).backward()
                optimizer.step()
        self.assert_alike(models, solo)

    def refused(self, kind, words, *models):
        with self.assertRaises(kind) as caught:
            Fused(models)
        self.assertIn(words, str(caught.exception))

    def test_what_is_not_alike_is_refused(self):
        self.refused(UsageError, "of no models")
        self.refused(ModelError, "model 1 is not built as model 0: found '(1): ReLU()', wanted '(1): Tanh()'", model_of(),
                     nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5)))
        self.refused(ModelError, "(dropout): Dropout(p=0.1", Reader(), Reader(dropout=0.1))
        self.refused(ModelError, "mask is float32 [7, 7] on cpu, that of model 0 is float32 [6, 6] on cpu",
                     *(Sized(context) for context in (6, 7)))
        self.refused(ModelError, "mask is float64", Sized(6), Sized(6).double())
        untied = Reader()
        untied.head.weight = nn.Parameter(untied.head.weight.detach().clone())
        self.refused(ModelError, "other parameters are tied", Reader(), untied)
        self.refused(ModelError, "has a LSTM", nn.LSTM(3, 3), nn.LSTM(3, 3))

    def test_modes_that_differ_are_refused(self):
        models = [model_of(seed) for seed in range(2)]
        fused = Fused(models)
        models[1].eval()
        with self.assertRaises(UsageError):
            fused(next(batches("rows"))[0])


class Sized(nn.Module):
    """Nothing of its words tells how large it is."""

    def __init__(self, context):
        super().__init__()
        self.register_buffer("mask", torch.zeros(context, context))


if __name__ == "__main__":
    unittest.main(verbosity=2)
