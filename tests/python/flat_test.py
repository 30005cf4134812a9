"""Parameters, gradients and states as views of flat memory: what is looked at in a step, and what goes when it is let go of."""
import copy
import ctypes
import pathlib
import sys
import unittest
import weakref
from unittest import mock

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import tactus_train  # noqa: E402
from tactus_train import _flat  # noqa: E402
from training_test import Samples, model_of  # noqa: E402


class FlatTest(unittest.TestCase):
    def setUp(self):
        self.memory = {}  # name: what is gone with the last view
        self.model = model_of()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.flat = _flat.Flat(_flat.trainable(list(self.model.named_parameters())))
        keys = _flat.probe_state_keys(self.optimizer)
        self.assertEqual(keys, ["exp_avg", "exp_avg_sq"])
        offsets, length = [], 0
        for parameter in self.flat.parameters:
            offsets.append(length)
            length += parameter.numel()
        self.flat.bind(offsets, self.floats("parameters", length), self.floats("gradients", length))
        self.states = _flat.OptimizerStates(self.optimizer, self.flat, keys)
        self.states.bind([self.floats(key, length) for key in keys])
        self.step()

    def floats(self, name, length):
        floats = (ctypes.c_float * length)()
        self.memory[name] = weakref.ref(floats)
        return torch.frombuffer(floats, dtype=torch.float32)

    def step(self):
        self.model(torch.ones(3, 12)).sum().backward()
        self.flat.gather_strays()
        self.flat.versions()
        self.optimizer.step()
        self.states.take_home()

    def there(self):
        return [name for name, floats in self.memory.items() if floats() is not None]

    def test_memory_goes_before_the_next_moves(self):
        seen, clone = [], torch.Tensor.clone

        def noted(*args, **kwargs):
            if not seen or seen[-1] != self.there():
                seen.append(self.there())
            return clone(*args, **kwargs)
        before = {key: value.clone() for key, value in self.model.state_dict().items()}
        states = [{key: torch.clone(value) for key, value in state.items()} for state in self.optimizer.state.values()]
        with mock.patch.object(torch.Tensor, "clone", noted):
            self.flat.release()
            self.states.release()
        self.assertEqual(seen, [["parameters", "exp_avg", "exp_avg_sq"], ["exp_avg", "exp_avg_sq"], ["exp_avg_sq"]])
        self.assertEqual(self.there(), [])
        for key, value in self.model.state_dict().items():
            self.assertTrue(torch.equal(value, before[key]), key)
        for state, was in zip(self.optimizer.state.values(), states):
            for key, value in was.items():
                self.assertTrue(torch.equal(state[key], value), key)

    def test_a_run_is_let_go_of_before_its_vectors_move(self):
        run, model = tactus_train.init(), model_of()
        run.loader(Samples(), batch_size=8)
        run.attach(model, torch.optim.SGD(model.parameters(), lr=0.1))
        link, seen, clone = weakref.ref(run._link), [], torch.Tensor.clone

        def noted(*args, **kwargs):
            seen.append(link())
            return clone(*args, **kwargs)
        with mock.patch.object(torch.Tensor, "clone", noted):
            run.close()
        self.assertEqual(set(seen), {None})

    def test_states_that_somebody_replaced_or_took_away_come_home(self):
        weight = self.model[0].weight
        state = self.optimizer.state[weight]
        home = state["exp_avg"]
        state["exp_avg"] = torch.full_like(home, 3)
        self.states.take_home()
        self.assertIs(state["exp_avg"], home)
        self.assertTrue((home == 3).all())
        taken = state.pop("exp_avg")
        self.states.take_home()
        self.assertNotIn("exp_avg", state)
        state["exp_avg"] = taken.clone()
        self.states.take_home()
        self.assertIs(state["exp_avg"], home)
        self.optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
        self.assertIsNot(self.optimizer.state[weight]["exp_avg"], home)
        self.states.take_home()
        self.assertIs(self.optimizer.state[weight]["exp_avg"], home)

    def test_who_was_not_touched_in_the_sum_is_hidden_from_the_step(self):
        self.flat.begin_sum()
        self.model[0](torch.ones(3, 12)).sum().backward()
        self.flat.versions()
        self.assertTrue(self.flat.hide_untouched())
        self.assertIsNotNone(self.model[0].weight.grad)
        self.assertIsNone(self.model[2].weight.grad)
        self.flat.point_back()
        self.flat.begin_sum()
        self.assertTrue(self.flat.hide_untouched(), "none was")
        self.assertIsNone(self.model[0].weight.grad)


if __name__ == "__main__":
    unittest.main(verbosity=2)
