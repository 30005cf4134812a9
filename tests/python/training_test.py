"""A loop with Tactus, alone, trains as the same loop without: bit for bit where a batch is a step."""
import copy
import multiprocessing
import os
import pathlib
import sys
import unittest
import warnings

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import tactus_train  # noqa: E402
from tactus_train import _together  # noqa: E402

SAMPLES = 103


class Samples(torch.utils.data.Dataset):
    """Rows of random numbers and their classes; remembers which were read."""

    def __init__(self, samples=SAMPLES):
        generator = torch.Generator().manual_seed(3)
        self.x = torch.randn(samples, 12, generator=generator)
        self.y = (self.x @ torch.randn(12, 5, generator=generator)).argmax(1)
        self.read = []

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        self.read.append(index)
        return self.x[index], self.y[index]


def model_of(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 5))


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
}


class Sign(torch.optim.Optimizer):
    """One that nobody knows."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.calls = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.calls += 1
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["memory"] = torch.zeros_like(p)
                state["memory"].mul_(0.9).add_(p.grad)
                p.add_(state["memory"].sign(), alpha=-group["lr"])


OPTIMIZERS["own"] = lambda p: Sign(p, lr=0.002)


class TrainingTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.run_ = None

    def tearDown(self):
        if self.run_ is not None:
            self.run_.close()

    def start(self, **options):
        if self.run_ is not None:
            self.run_.close()
        self.run_ = tactus_train.init(**options)
        return self.run_

    def with_tactus(self, optimizer_of, epochs=3, batch=8, micro_batch=None, clip=None, schedule=None, model=None):
        """Trains a copy of the model; returns it, and the batches as they were read."""
        data, model = Samples(), model or model_of()
        run = self.start()
        loader = run.loader(data, batch_size=batch, micro_batch=micro_batch)
        optimizer = optimizer_of(model.parameters())
        scheduler = schedule(optimizer) if schedule else None
        run.attach(model, optimizer, scheduler=scheduler, epochs=epochs, clip_norm=clip)
        batches = []
        for _ in run.epochs():
            for x, y in loader:
                batches.append(data.read[-len(x):])
                run.backward(nn.functional.cross_entropy(model(x), y))
                run.step()
        self.assertTrue(run.over)
        self.optimizer = optimizer
        run.close()
        return model, batches

    def without(self, optimizer_of, batches, clip=None, schedule=None, model=None):
        """The same batches by a loop of torch's."""
        data, model = Samples(), model or model_of()
        optimizer = optimizer_of(model.parameters())
        scheduler = schedule(optimizer) if schedule else None
        for indices in batches:
            x, y = torch.utils.data.default_collate([data[i] for i in indices])
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            if scheduler:
                scheduler.step()
        return model

    def assert_same(self, one, other, tolerance=0.0):
        for (name, a), b in zip(one.state_dict().items(), other.state_dict().values()):
            difference = float((a - b).abs().max())
            self.assertLessEqual(difference, tolerance * float(b.abs().max()), name)

    def test_each_optimizer_trains_bit_for_bit(self):
        for name, optimizer_of in OPTIMIZERS.items():
            with self.subTest(name):
                trained, batches = self.with_tactus(optimizer_of)
                self.assert_same(trained, self.without(optimizer_of, batches))
                self.assertEqual(len(batches), 39)

    def test_each_sample_is_read_once_an_epoch(self):
        _, batches = self.with_tactus(OPTIMIZERS["sgd"])
        for epoch in range(3):
            read = [index for batch in batches[13 * epoch:13 * (epoch + 1)] for index in batch]
            self.assertEqual(sorted(read), list(range(SAMPLES)))

    def test_micro_batches_add_up(self):
        for name in ("momentum", "adamw"):
            with self.subTest(name):
                trained, pieces = self.with_tactus(OPTIMIZERS[name], batch=8, micro_batch=3)
                self.assertEqual([len(piece) for piece in pieces[:6]], [3, 3, 2, 3, 3, 2])
                whole, batch = [], []
                for piece in pieces:
                    batch = batch + piece
                    if len(batch) == 8 or len(whole) % 13 == 12:
                        if len(batch) == (8 if len(whole) % 13 != 12 else 7):
                            whole.append(batch)
                            batch = []
                self.assertEqual(len(whole), 39)
                # Sums of three means in place of one: some ulp of each of 39 steps, which Adam's root passes on whole.
                self.assert_same(trained, self.without(OPTIMIZERS[name], whole), 2e-5)

    def test_clipping_bounds_the_norm(self):
        trained, batches = self.with_tactus(OPTIMIZERS["momentum"], clip=0.5)
        # torch divides by the norm plus 1e-6.
        self.assert_same(trained, self.without(OPTIMIZERS["momentum"], batches, clip=0.5), 1e-4)
        free = self.without(OPTIMIZERS["momentum"], batches)
        self.assertGreater(float((trained[0].weight - free[0].weight).abs().max()), 1e-3)

    def test_a_scheduler_is_stepped_once_a_batch(self):
        def schedule(optimizer):
            return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=39)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of torch's schedulers
            trained, batches = self.with_tactus(OPTIMIZERS["momentum"], schedule=schedule)
        self.assert_same(trained, self.without(OPTIMIZERS["momentum"], batches, schedule=schedule))

    def test_a_scheduler_counts_batch_sizes_however_they_are_cut(self):
        def schedule(optimizer):
            return torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.1)
        self.with_tactus(OPTIMIZERS["sgd"], micro_batch=2, schedule=schedule)
        self.assertAlmostEqual(self.optimizer.param_groups[0]["lr"], 0.1 * 0.1 ** 3, places=9)  # after 39

    def test_running_statistics_and_tied_and_unused_weights(self):
        def model():
            torch.manual_seed(5)
            made = nn.ModuleDict({"a": nn.Linear(12, 12), "norm": nn.BatchNorm1d(12), "b": nn.Linear(12, 12), "c": nn.Linear(12, 5),
                                  "unused": nn.Linear(3, 3)})
            made["b"].weight = made["a"].weight
            made["c"].bias.requires_grad_(False)
            made.forward = lambda x: made["c"](made["b"](torch.tanh(made["norm"](made["a"](x)))))
            return made

        def optimizer_of(parameters):
            return torch.optim.AdamW([p for p in parameters if p.requires_grad], lr=0.01, weight_decay=0.1)
        one = model()
        trained, batches = self.with_tactus(optimizer_of, model=one)
        self.assert_same(trained, self.without(optimizer_of, batches, model=model()))

    def test_channels_last_weights_stay_so(self):
        torch.manual_seed(2)
        model = nn.Sequential(nn.Unflatten(1, (3, 2, 2)), nn.Conv2d(3, 8, 2), nn.Flatten(), nn.Linear(8, 5))
        model = model.to(memory_format=torch.channels_last)
        twin = copy.deepcopy(model)
        trained, batches = self.with_tactus(OPTIMIZERS["adamw"], model=model)
        self.assertTrue(trained[1].weight.is_contiguous(memory_format=torch.channels_last))
        self.assert_same(trained, self.without(OPTIMIZERS["adamw"], batches, model=twin))

    @unittest.skipUnless(hasattr(torch, "compile"), "torch.compile is there from 2.0 on")
    def test_a_compiled_model_trains_as_it_does_without(self):
        def compiled():
            return torch.compile(model_of(), backend="aot_eager")
        trained, batches = self.with_tactus(OPTIMIZERS["adamw"], epochs=1, model=compiled())
        self.assert_same(trained, self.without(OPTIMIZERS["adamw"], batches, model=compiled()))

    def test_an_optimizer_goes_on_after_its_run(self):
        trained, batches = self.with_tactus(OPTIMIZERS["adamw"], epochs=1)
        alone = self.without(OPTIMIZERS["adamw"], batches)
        self.assert_same(trained, alone)
        for state in self.optimizer.state.values():
            self.assertEqual(float(state["step"]), 13)
        x, y = torch.utils.data.default_collate([Samples()[i] for i in range(8)])
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(trained(x), y).backward()
        self.optimizer.step()
        self.assertTrue(all(torch.isfinite(p).all() for p in trained.parameters()))

    def attached(self, optimizer_of=OPTIMIZERS["adamw"], batch=8, **options):
        run, self.model = self.start(), model_of()
        self.optimizer = optimizer_of(self.model.parameters())
        loader = run.loader(Samples(), batch_size=batch)
        run.attach(self.model, self.optimizer, **options)
        return run, loader

    def train(self, run, loader, steps=None):
        for i, (x, y) in enumerate(loader):
            run.backward(nn.functional.cross_entropy(self.model(x), y))
            run.step()
            if steps is not None and i + 1 == steps:
                return

    def test_what_was_taken_from_a_run_outlives_it(self):
        run, loader = self.attached(epochs=1)
        state, view = self.model.state_dict(), self.model[0].weight.detach()
        self.train(run, loader)
        kept = {key: value.clone() for key, value in state.items()}
        run.close()
        torch.zeros(10000).add_(1)
        for key, value in state.items():
            self.assertTrue(torch.equal(value, kept[key]), key)
        self.assertTrue(torch.equal(view, kept["0.weight"]))
        self.assertNotEqual(self.model[0].weight.data_ptr(), view.data_ptr())

    def test_a_copy_of_the_model_is_a_model_like_any_other(self):
        run, loader = self.attached(epochs=1)
        self.train(run, loader, steps=2)
        twin = copy.deepcopy(self.model)
        twin(torch.randn(2, 12)).sum().backward()
        twin.zero_grad(set_to_none=True)
        self.assertTrue(all(p.grad is None for p in twin.parameters()))
        self.assert_same(twin, self.model)
        self.train(run, loader)
        self.assertFalse(torch.equal(twin[0].weight, self.model[0].weight))

    def test_evaluation_leaves_modes_as_they_were(self):
        run, _ = self.attached()
        self.model[1].eval()
        modes = [module.training for module in self.model.modules()]
        run.evaluate(lambda x, y: self.assertFalse(self.model.training) or torch.zeros(len(x)), Samples(), batch_size=50)
        self.assertEqual([module.training for module in self.model.modules()], modes)
        self.assertIn(False, modes)
        self.assertIn(True, modes)

    def test_an_optimizer_is_left_alone_by_the_look_at_its_states(self):
        class Noisy(Sign):
            def step(self, closure=None):
                torch.rand(3)
                super().step()
        model = model_of()
        optimizer = Noisy(model.parameters(), lr=0.1)
        torch.manual_seed(3)
        expected = torch.rand(2)
        torch.manual_seed(3)
        run = self.start()
        run.loader(Samples(), batch_size=8)
        run.attach(model, optimizer)
        self.assertTrue(torch.equal(torch.rand(2), expected))
        self.assertEqual((optimizer.calls, len(optimizer.state)), (0, 0))

    def test_an_optimizer_may_change_its_own_rate(self):
        class Falling(torch.optim.SGD):
            def step(self, closure=None):
                super().step(closure)
                for group in self.param_groups:
                    group["lr"] *= 0.5
        run, loader = self.attached(lambda p: Falling(p, lr=0.1))
        self.train(run, loader, steps=3)
        self.assertAlmostEqual(self.optimizer.param_groups[0]["lr"], 0.0125, places=9)

    def test_states_that_are_loaded_move_into_the_buffers(self):
        run, loader = self.attached()
        self.train(run, loader, steps=2)
        self.optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
        self.train(run, loader, steps=1)
        views = run._states._views
        for i, parameter in enumerate(run._flat.parameters):
            for key, of_key in zip(run._states._keys, views):
                self.assertIs(self.optimizer.state[parameter][key], of_key[i])
        self.assertEqual(float(self.optimizer.state[self.model[0].weight]["step"]), 3)

    def test_an_epoch_that_is_left_goes_on(self):
        run, loader = self.attached(epochs=2)
        seen = []
        for epoch in run.epochs():
            run.log(seen=len(seen))
            seen.append(epoch)
            self.train(run, loader, steps=5)
        self.assertEqual(seen, [0, 0, 0, 1, 1, 1])
        self.assertEqual([entry["epoch"] for entry in run.history], seen)
        run.close()
        self.assertEqual((run.round, run.samples), (26, 2 * SAMPLES))

    def test_one_run_after_another(self):
        with tactus_train.init() as run:
            loader = run.loader(Samples(), batch_size=8)
            self.model = model_of()
            run.attach(self.model, torch.optim.SGD(self.model.parameters(), lr=0.1), epochs=1)
            self.train(run, loader)
        run, loader = self.attached(epochs=1)
        self.assertEqual((run.round, run.over), (0, False))
        self.assertEqual(loader.peek()[0].shape, (8, 12))
        self.train(run, loader)
        self.assertEqual(run.round, 13)

    def test_zero_grad_of_an_old_script_does_no_harm(self):
        data, model = Samples(), model_of()
        run = self.start()
        loader = run.loader(data, batch_size=8)
        optimizer = OPTIMIZERS["momentum"](model.parameters())
        run.attach(model, optimizer, epochs=1)
        batches = []
        for x, y in loader:
            batches.append(data.read[-len(x):])
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            for p in model.parameters():
                p.grad = None  # as set_to_none does
            run.backward(loss)
            run.step()
        run.close()
        self.assert_same(model, self.without(OPTIMIZERS["momentum"], batches))

    def test_a_step_tells_what_it_came_to(self):
        run, model = self.start(), model_of()
        loader = run.loader(Samples(), batch_size=8, micro_batch=4)
        run.attach(model, OPTIMIZERS["sgd"](model.parameters()), epochs=1)
        steps = []
        for x, y in loader:
            run.backward(nn.functional.cross_entropy(model(x), y))
            steps.append(run.step())
        self.assertEqual([bool(step) for step in steps[:4]], [False, True, False, True])
        self.assertIsNone(steps[0].loss)
        self.assertGreater(steps[1].loss, 0)
        self.assertGreater(steps[1].gradient_norm, 0)
        self.assertEqual([step.epoch_ended for step in steps], [False] * (len(steps) - 1) + [True])
        self.assertEqual(run.samples, SAMPLES)
        self.assertEqual(run.round, 13)
        self.assertEqual(run.reason, "1 epoch completed")

    def test_what_is_decided_has_a_reason(self):
        run, model = self.start(adapt={"batch": "auto", "learning_rate": "adascale"}), model_of()
        loader = run.loader(Samples(), batch_size=8)
        run.attach(model, OPTIMIZERS["sgd"](model.parameters()), epochs=1)
        sizes = []
        for x, y in loader:
            sizes.append(len(x))
            run.backward(nn.functional.cross_entropy(model(x), y))
            run.step()
        plan = run.plan
        self.assertEqual(max(sizes), 4, "two passes a step, which tell the noise")
        self.assertEqual((plan.learning_rate, plan.batch_sizes), ("adascale", [8]))
        self.assertEqual({decision["axis"] for decision in plan.decisions},
                         {"batch", "synchronization", "aggregation", "learning rate", "encoding"})
        self.assertTrue(all(decision["reason"] for decision in plan.decisions))
        self.assertEqual(run.plan.decisions, [], "each is told once")

    def test_evaluate_is_a_mean_over_samples(self):
        run, model, data = self.start(), model_of(), Samples()
        loader = run.loader(data, batch_size=8)
        run.attach(model, OPTIMIZERS["sgd"](model.parameters()), epochs=1)
        right = run.evaluate(lambda x, y: (model(x).argmax(1) == y).float(), data, batch_size=10)
        with torch.no_grad():
            self.assertAlmostEqual(right, float((model(data.x).argmax(1) == data.y).float().mean()), places=6)
        both = run.evaluate(lambda x, y: {"loss": nn.functional.cross_entropy(model(x), y), "one": torch.ones(len(x))}, data,
                            batch_size=10)
        self.assertAlmostEqual(both["one"], 1.0)
        self.assertAlmostEqual(both["loss"], float(nn.functional.cross_entropy(model(data.x), data.y)), places=5)
        self.assertTrue(model.training)
        self.assertEqual(len(loader), 13)
        self.assertEqual(run.mean(2), 2.0)
        self.assertEqual(run.mean({"a": 1, "b": 3}, weight=5), {"a": 1.0, "b": 3.0})

    def test_shares_of_an_evaluation_are_all_of_it_by_weight(self):
        for count, weights in ((10, [1, 1]), (7, [3, 1, 1]), (2, [1, 1, 1]), (100, [0, 0]), (5, [0.0, 2.0])):
            shares = [_together.share(count, weights, place) for place in range(len(weights))]
            self.assertEqual([i for share in shares for i in share], list(range(count)))
        self.assertEqual([len(_together.share(100, [3, 1], place)) for place in (0, 1)], [75, 25])

    def test_who_has_no_share_of_an_evaluation_knows_what_it_tells(self):
        evaluation = _together.Evaluation(lambda x, y: {"loss": x.mean(), "one": torch.ones(len(x))}, Samples(), 10,
                                          torch.utils.data.default_collate, [])
        self.assertEqual(evaluation.sums(range(0)), {"loss": 0.0, "one": 0.0})
        self.assertEqual(evaluation.sums(range(9, 11))["one"], 13.0)



class Counted(Samples):
    """Says, to whatever process, how often each sample was read; one of them fails, or ends its process."""

    def __init__(self, fails=-1, ends=-1):
        super().__init__()
        self.reads = torch.zeros(SAMPLES, dtype=torch.int64).share_memory_()
        self.fails, self.ends = fails, ends

    def __getitem__(self, index):
        if index == self.fails:
            raise OSError("no such picture")
        if index == self.ends:
            os._exit(3)
        self.reads[index] += 1
        return super().__getitem__(index)


class ReadersTest(unittest.TestCase):
    def train(self, dataset, workers, **adapt):
        with tactus_train.init(adapt=adapt or None) as run:
            model = model_of()
            loader = run.loader(dataset, 8, num_workers=workers)
            run.attach(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), epochs=3)
            seen = []
            for _ in run.epochs():
                for x, y in loader:
                    seen += x[:, 0].tolist()
                    run.backward(nn.functional.cross_entropy(model(x), y))
                    run.step()
            return model, seen

    def test_training_is_the_same_and_each_sample_is_read_once_an_epoch(self):
        alone, _ = self.train(Counted(), 0)
        for workers in (1, 3):
            dataset = Counted()
            model, _ = self.train(dataset, workers)
            for one, other in zip(alone.parameters(), model.parameters()):
                self.assertTrue(torch.equal(one, other))
            self.assertEqual(dataset.reads.tolist(), [3] * SAMPLES)

    def test_sizes_may_change(self):
        dataset = Counted()
        _, seen = self.train(dataset, 2, batch="auto", batch_max=32)
        self.assertEqual(sorted(seen), sorted(3 * dataset.x[:, 0].tolist()))

    def test_what_goes_wrong_there_is_said_here(self):
        with self.assertRaisesRegex(tactus_train.Error, "no such picture"):
            self.train(Counted(fails=50), 2)
        with self.assertRaisesRegex(tactus_train.Error, "has ended .exit code 3"):
            self.train(Counted(ends=50), 2)
        self.assertEqual(multiprocessing.active_children(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
