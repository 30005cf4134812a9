"""What is called in the wrong place, or of the wrong kind: one line that says what to do, and nothing hangs."""
import contextlib
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import tactus_train  # noqa: E402
from tactus_train import DivergedError, ModelError, UsageError  # noqa: E402
from training_test import Samples, model_of  # noqa: E402

PACKAGE = str(pathlib.Path(__file__).resolve().parents[2] / "python")


def threads_now():
    """How many this process has, once that stays so: the kernel lists one for a moment after it was joined."""
    counts = []
    while len(counts) < 5 or len(set(counts[-5:])) > 1:
        counts.append(len(os.listdir("/proc/self/task")))
        time.sleep(0.02)
    return counts[-1]


class MisuseTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.run_ = tactus_train.init()

    def tearDown(self):
        self.run_.close()

    def attached(self, model=None, optimizer=None, **options):
        self.model = model or model_of()
        loader = self.run_.loader(Samples(), batch_size=8)
        self.optimizer = optimizer or torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.run_.attach(self.model, self.optimizer, epochs=1, **options)
        return loader

    def loss(self, batch):
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def refused(self, kind, words, call, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        self.assertIn(words, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        return caught.exception

    def test_no_step(self):
        batches = iter(self.attached())
        self.run_.backward(self.loss(next(batches)))
        self.refused(UsageError, "step() was not called for the last one (round 0, 8 samples)", next, batches)

    def test_step_without_backward(self):
        next(iter(self.attached()))
        self.refused(UsageError, "run.backward(loss) was not called for this batch", self.run_.step)

    def test_step_without_a_batch(self):
        self.attached()
        self.refused(UsageError, "run.step() without a batch", self.run_.step)

    def test_a_loss_that_is_not_a_mean_or_has_no_gradient(self):
        batch = next(iter(self.attached()))
        each = nn.functional.cross_entropy(self.model(batch[0]), batch[1], reduction="none")
        self.refused(UsageError, "the loss has the shape [8]", self.run_.backward, each)
        self.refused(UsageError, "no parameter is behind this loss", self.run_.backward, each.mean().detach())

    def test_the_optimizer_is_stepped_by_hand(self):
        batch = next(iter(self.attached()))
        self.run_.backward(self.loss(batch))
        said = self.refused(UsageError, "optimizer.step() is called by run.step()", self.optimizer.step)
        self.assertRegex(str(said), r"Remove this call \(\w+\.py:\d+\)")

    def test_gradients_are_clipped_by_hand(self):
        batch = next(iter(self.attached()))
        self.run_.backward(self.loss(batch))
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.01)
        self.refused(UsageError, "pass clip_norm= to run.attach()", self.run_.step)

    def test_calls_before_those_that_they_need(self):
        model = model_of()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.refused(UsageError, "run.attach() before run.loader()", self.run_.attach, model, optimizer)
        loader = self.run_.loader(Samples(), batch_size=8)
        self.refused(UsageError, "before run.attach(model, optimizer)", next, iter(loader))
        self.refused(UsageError, "run.loader() was called before", self.run_.loader, Samples(), 8)
        self.run_.attach(model, optimizer)
        self.refused(UsageError, "run.attach() was called before", self.run_.attach, model, optimizer)

    def test_init_twice(self):
        self.refused(UsageError, "init() was called in this process before", tactus_train.init)

    def test_parameters_that_cannot_be_trained(self):
        self.run_.loader(Samples(), batch_size=8)
        half = model_of().to(torch.bfloat16)
        self.refused(ModelError, "parameter 0.weight is bfloat16; allowed: float32", self.run_.attach, half,
                     torch.optim.SGD(half.parameters(), lr=0.1))
        frozen = model_of().requires_grad_(False)
        self.refused(ModelError, "no parameter that needs a gradient", self.run_.attach, frozen,
                     torch.optim.SGD(frozen.parameters(), lr=0.1))
        synced = nn.Sequential(nn.Linear(12, 5), nn.SyncBatchNorm(5))
        self.refused(ModelError, "SyncBatchNorm (1)", self.run_.attach, synced, torch.optim.SGD(synced.parameters(), lr=0.1))
        # After all that was refused the run is as good as new.
        model = model_of()
        self.run_.attach(model, torch.optim.SGD(model.parameters(), lr=0.1))

    def test_an_optimizer_of_another_model(self):
        self.run_.loader(Samples(), batch_size=8)
        model, other = model_of(), model_of()
        self.refused(UsageError, "parameters that the model does not have", self.run_.attach, model,
                     torch.optim.SGD(other.parameters(), lr=0.1))
        self.refused(UsageError, "it does not have 2.weight", self.run_.attach, model,
                     torch.optim.SGD(model[0].parameters(), lr=0.1))
        self.refused(UsageError, "wanted is one of torch.optim", self.run_.attach, model, object())

    def test_an_optimizer_that_wants_a_closure(self):
        self.run_.loader(Samples(), batch_size=8)
        model = model_of()
        self.refused(ModelError, "closure", self.run_.attach, model, torch.optim.LBFGS(model.parameters()))

    def test_skipping_takes_a_gradient_back_or_says_that_it_cannot(self):
        before = self.attached() and [p.detach().clone() for p in self.model.parameters()]
        batch = next(iter(self.run_._loader))
        self.run_.backward(self.loss(batch))
        self.run_.skip()
        self.assertTrue(all(torch.equal(p, was) for p, was in zip(self.model.parameters(), before)))
        self.run_.detach()
        self.run_.close()
        self.run_ = tactus_train.init()
        loader = self.run_.loader(Samples(), batch_size=8, micro_batch=4)
        self.run_.attach(self.model, torch.optim.SGD(self.model.parameters(), lr=0.1))
        batches = iter(loader)
        self.run_.backward(self.loss(next(batches)))
        self.run_.step()
        self.run_.backward(self.loss(next(batches)))
        self.refused(UsageError, "its gradient is in the step's already", self.run_.skip)

    def test_a_model_that_is_moved(self):
        for move in (lambda: self.model.double().float(), lambda: setattr(self.model[0].weight, "data", torch.zeros(16, 12))):
            batches = iter(self.attached())
            self.run_.backward(self.loss(next(batches)))
            self.run_.step()
            move()
            with self.assertRaises(ModelError) as caught:
                self.run_.backward(self.loss(next(batches)))
            self.assertIn("was moved or replaced after attach()", str(caught.exception))
            self.run_.close()
            self.run_ = tactus_train.init()

    def test_partial_sums_are_not_zeroed_unseen(self):
        model = model_of()
        loader = self.run_.loader(Samples(), batch_size=8, micro_batch=4)
        self.model = model
        self.run_.attach(model, torch.optim.SGD(model.parameters(), lr=0.1))
        batches = iter(loader)
        self.run_.backward(self.loss(next(batches)))
        self.run_.step()
        for p in model.parameters():
            p.grad.zero_()
        self.refused(UsageError, "Does the loop call model.zero_grad()?", self.run_.backward, self.loss(next(batches)))

    def test_parameters_that_need_a_gradient_later(self):
        model = model_of()
        model[0].requires_grad_(False)
        optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
        batches = iter(self.attached(model, optimizer))
        self.run_.backward(self.loss(next(batches)))
        self.run_.step()
        model[0].weight.requires_grad_(True)
        self.refused(UsageError, "parameter 0.weight needs a gradient since run.attach()", self.run_.backward,
                     self.loss(next(batches)))
        model[0].requires_grad_(False)
        self.run_.skip()
        model.add_module("3", nn.Linear(5, 5))
        self.refused(UsageError, "parameter 3.weight needs a gradient since run.attach()", next, iter(self.run_._loader))
        # As it says.
        self.run_.detach()
        optimizer.add_param_group({"params": model[3].parameters()})
        before = model[3].weight.detach().clone()
        self.run_.attach(model, optimizer, epochs=1)
        for batch in self.run_._loader:
            self.run_.backward(self.loss(batch))
            self.run_.step()
        self.assertFalse(torch.equal(model[3].weight, before))

    def test_parameters_that_no_pass_reaches_are_told_once(self):
        model = model_of()
        model.unused, model.neither = nn.Linear(3, 3), nn.Linear(2, 2)
        batches = iter(self.attached(model))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            for _ in range(4):
                batch = next(batches)
                self.run_.backward(nn.functional.cross_entropy(model[2](model[1](model[0](batch[0]))), batch[1]))
                self.run_.step()
        self.assertEqual(said.getvalue(), "tactus: no gradient in 2 rounds for unused.weight and 3 more: what has none stays as it is\n")

    def test_of_a_model_that_is_reached_nothing_is_told(self):
        batches, said = iter(self.attached()), io.StringIO()
        with contextlib.redirect_stderr(said):
            for _ in range(3):
                self.run_.backward(self.loss(next(batches)))
                self.run_.step()
        self.assertEqual(said.getvalue(), "")

    def test_a_pass_for_which_memory_is_short(self):
        class Hungry(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                return gradient + torch.empty(1 << 50)
        batch = next(iter(self.attached()))
        said = self.refused(tactus_train.Error, "memory was short in run.backward(): ", self.run_.backward,
                            Hungry.apply(self.loss(batch)))
        self.assertIn("micro_batch=4 of run.loader() halves what a pass needs; this one had 8 samples.", str(said))

    def test_sparse_gradients_train_as_dense_ones(self):
        def trained(sparse):
            torch.manual_seed(1)
            model = nn.Sequential(nn.EmbeddingBag(12, 4, sparse=sparse), nn.Linear(4, 5))
            with tactus_train.init() as run:
                loader = run.loader([(torch.tensor([i % 12, i * i % 12]), i % 5) for i in range(40)], batch_size=8)
                run.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), epochs=2)
                for _ in run.epochs():
                    for x, y in loader:
                        run.backward(nn.functional.cross_entropy(model(x), y))
                        run.step()
            return model[0].weight
        self.run_.close()
        self.assertTrue(torch.equal(trained(True), trained(False)))

    def test_torch_that_is_too_old(self):
        self.run_.close()
        with unittest.mock.patch.object(torch, "__version__", "1.9.1+cpu"):
            self.refused(tactus_train.UnavailableError, "torch is 1.9.1+cpu; needed is 1.13 or later", tactus_train.init)

    def test_groups_and_schedulers_that_are_not_known(self):
        self.attached()
        extra = {"params": [nn.Parameter(torch.zeros(1))]}
        self.refused(UsageError, "optimizer.add_param_group() after run.attach()", self.optimizer.add_param_group, extra)
        self.run_.close()
        self.optimizer.add_param_group(extra)
        self.run_ = tactus_train.init()
        optimizer = torch.optim.SGD(model_of().parameters(), lr=0.1)
        self.refused(UsageError, "ReduceLROnPlateau goes by a loss", self.attached,
                     scheduler=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer))

    def test_a_scheduler_that_is_stepped_by_hand_too(self):
        model = model_of()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        loader = self.attached(model, optimizer, scheduler=scheduler)
        with self.assertRaises(UsageError) as caught:
            for batch in loader:
                self.run_.backward(self.loss(batch))
                self.run_.step()
                scheduler.step()
        self.assertIn("scheduler.step() is called by run.step()", str(caught.exception))

    def test_an_optimizer_of_another_run(self):
        self.attached()
        model, optimizer = self.model, self.optimizer
        former, tactus_train.run._current = self.run_, None
        try:
            self.run_ = tactus_train.init()
            self.refused(UsageError, "it is attached to another run", self.attached, model, optimizer)
        finally:
            former.close()

    def test_a_sample_that_cannot_be_read_may_be_tried_again(self):
        data, failing = Samples(), [True]

        class Failing(Samples):
            def __getitem__(self, index):
                if failing[0]:
                    raise OSError("the disk is busy")
                return data[index]
        self.model = model_of()
        loader = self.run_.loader(Failing(), batch_size=8)
        self.run_.attach(self.model, torch.optim.SGD(self.model.parameters(), lr=0.1), epochs=1)
        with self.assertRaises(OSError):
            next(iter(loader))
        failing[0] = False
        for batch in loader:
            self.run_.backward(self.loss(batch))
            self.run_.step()
        self.assertEqual(sorted(data.read), list(range(len(data))))

    def test_a_step_that_fails_ends_the_run_with_its_reason(self):
        class Broken(torch.optim.SGD):
            fails = False

            def step(self, closure=None):
                if Broken.fails:
                    raise ValueError("it broke")
                return super().step(closure)
        model = model_of()
        loader = self.attached(model, Broken(model.parameters(), lr=0.1))
        Broken.fails = True
        batches = iter(loader)
        self.run_.backward(self.loss(next(batches)))
        with self.assertRaises(ValueError):
            self.run_.step()
        self.assertTrue(self.run_.over)
        self.assertEqual(self.run_.reason, "ValueError: it broke")
        self.assertIsNone(next(batches, None))

    def test_a_signal_that_is_caught_is_survived(self):
        batches, take, calls = iter(self.attached()), self.run_._link.take, []

        def interrupted():
            calls.append(1)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return take()
        self.run_.backward(self.loss(next(batches)))
        self.run_._link.take = interrupted
        with self.assertRaises(KeyboardInterrupt):
            self.run_.step()
        for batch in batches:
            self.run_.backward(self.loss(batch))
            self.run_.step()
        self.assertEqual((self.run_.reason, self.run_.samples), ("1 epoch completed", len(Samples())))

    def test_arguments_of_a_dataloader(self):
        self.refused(UsageError, "shuffle=False", self.run_.loader, Samples(), 8, shuffle=False)
        self.refused(UsageError, "num_workers: found -1", self.run_.loader, Samples(), 8, num_workers=-1)
        self.run_.loader(Samples(), 8, shuffle=True, num_workers=0)

        self.run_.close()
        self.run_ = tactus_train.init()
        self.refused(UsageError, "sampler: samples come in an order of the run's own", self.run_.loader, Samples(), 8,
                     sampler=torch.utils.data.RandomSampler(Samples()))
        self.refused(UsageError, "drop_last: an epoch has all samples", self.run_.loader, Samples(), 8, drop_last=True)
        self.refused(UsageError, "pin_memory: batches are read by the run's own processes", self.run_.loader, Samples(), 8,
                     pin_memory=True)
        self.refused(UsageError, "speed: run.loader() has no such argument", self.run_.loader, Samples(), 8, speed=2)
        self.run_.loader(Samples(), 8, sampler=None, drop_last=False)

    def test_data_that_are_none(self):
        self.refused(UsageError, "a map-style one is wanted", self.run_.loader, iter([]), 8)
        self.refused(UsageError, "it is empty", self.run_.loader, [], 8)
        self.refused(UsageError, "batch_size: found 0", self.run_.loader, Samples(), 0)

    def test_a_policy_that_is_none(self):
        self.run_.close()
        self.run_ = tactus_train.init(adapt={"batch": "magic"})
        self.refused(UsageError, "adapt.batch: found \"magic\", allowed: ", self.attached)
        self.run_.close()
        self.refused(UsageError, "adapt: found 'bach', allowed: aggregation, batch", tactus_train.init, adapt={"bach": "auto"})

    def test_numbers_that_are_none_are_skipped_and_then_an_error(self):
        loader, steps = self.attached(), []
        weights = self.model[0].weight.detach().clone()
        with self.assertRaises(DivergedError) as caught:
            for batch in loader:
                self.run_.backward(self.loss(batch) * float("nan"))
                steps.append(self.run_.step())
        self.assertIn("not finite in 10 rounds in a row", str(caught.exception))
        self.assertFalse(any(steps))
        self.assertTrue(torch.equal(self.model[0].weight, weights))

    def test_an_exception_in_the_loop_leaves_nothing_running(self):
        before = threads_now()
        with self.assertRaises(ZeroDivisionError):
            for _ in self.attached():
                threads = threads_now()
                1 / 0  # noqa: B018
        self.run_.close()
        self.assertEqual((threads, threads_now()), (before, before))
        self.assertTrue(all(p.grad is None for p in self.model.parameters()))

    def test_a_forked_child_is_told_so(self):
        loader = self.attached()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                next(iter(loader))
            except UsageError as error:
                code = 0 if "this one was forked from it" in str(error) else 2
            os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        for batch in loader:  # the parent's goes on
            self.run_.backward(self.loss(batch))
            self.run_.step()
        self.assertTrue(self.run_.over)

    def program(self, text, **environment):
        return self.run_python("-c", textwrap.dedent(text), **environment)

    def run_python(self, *words, **environment):
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PYTHONPATH": PACKAGE + os.pathsep + str(pathlib.Path(__file__).parent),
                                   **environment})

    LOOP = """
        import os, signal, threading, torch, tactus_train
        from training_test import Samples, model_of
        run = tactus_train.init()
        loader, model = run.loader(Samples(), batch_size=8), model_of()
        run.attach(model, torch.optim.SGD(model.parameters(), lr=0.1))
        """

    def test_ctrl_c_ends_the_program(self):
        ended = self.program(self.LOOP + """
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        while True:
            for x, y in loader:
                run.backward(torch.nn.functional.cross_entropy(model(x), y))
                run.step()
        """)
        self.assertIn("KeyboardInterrupt", ended.stderr)
        self.assertIn(ended.returncode, (130, -signal.SIGINT))

    def test_a_program_that_just_ends_ends(self):
        ended = self.program(self.LOOP + """
        for x, y in loader:
            run.backward(torch.nn.functional.cross_entropy(model(x), y))
            run.step()
            break
        print("done")
        """)
        self.assertEqual((ended.returncode, ended.stdout), (0, "done\n"), ended.stderr)

    def test_init_in_a_process_of_a_dataloader(self):
        ended = self.program("""
        import torch, tactus_train
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, i):
                tactus_train.init()
        for _ in torch.utils.data.DataLoader(Data(), num_workers=1):
            pass
        """)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("UsageError: init() in a DataLoader's worker. Call it in the process that trains", ended.stderr)

    def test_a_program_without_a_guard_that_is_read_anew(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "unguarded.py"
            path.write_text(textwrap.dedent("""
                import torch, tactus_train
                run = tactus_train.init()
                data = torch.utils.data.TensorDataset(torch.zeros(4, 1))
                for _ in torch.utils.data.DataLoader(data, num_workers=1, multiprocessing_context="spawn"):
                    pass
                """))
            ended = self.run_python(path)
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("UsageError: init() in a process that was started to help the one that trains", ended.stderr)

    def test_without_its_library(self):
        ended = self.program("import tactus_train; tactus_train.init().loader([(1, 2)], 1)\n" + textwrap.dedent("""
            import torch
            run = tactus_train.run._current
            model = torch.nn.Linear(1, 1)
            run.attach(model, torch.optim.SGD(model.parameters(), lr=0.1))
            """), TACTUS_SDK_LIBRARY="/nowhere/lib.so")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("the library is not there: looked for /nowhere/lib.so", ended.stderr)


class VersionTest(unittest.TestCase):
    def test_it_is_the_projects(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        of_project = re.search(r"project\(tactus VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text()).group(1)
        of_wheel = re.search(r'^version = "([\d.]+)"', (root / "python/pyproject.toml").read_text(), re.M).group(1)
        self.assertEqual((tactus_train.__version__, of_wheel), (of_project, of_project))


class AbiTest(unittest.TestCase):
    """The structs and functions of the header, and those that the package takes them for."""

    KINDS = {"int32_t": "c_int", "uint32_t": "c_uint", "uint64_t": "c_ulong", "double": "c_double"}

    def setUp(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        self.header = re.sub(r"/\*.*?\*/", "", (root / "sdk/tactus_sdk.h").read_text(), flags=re.S)

    def test_structs(self):
        from tactus_train import _abi
        for name, struct in (("request", _abi.Request), ("answer", _abi.Answer), ("standing", _abi.Standing)):
            body = re.search(r"typedef struct \{([^}]*)\} tactus_" + name, self.header).group(1)
            fields = []
            for line in filter(None, (part.strip() for part in body.split(";"))):
                kind, field = re.match(r"(.*?)(\w+)$", line, re.S).groups()
                kind = kind.strip()
                fields.append((field, "pointer" if kind.endswith("*") else self.KINDS[kind]))
            found = [(field, "pointer" if hasattr(kind, "contents") or kind.__name__ in ("c_char_p", "c_void_p") else kind.__name__)
                     for field, kind in struct._fields_]
            self.assertEqual(found, fields, name)

    def test_functions_and_numbers(self):
        from tactus_train import _abi
        declared = re.findall(r"^(?:const )?\w[\w\s]*?\*?\s*(tactus_\w+)\(([^)]*)\)", self.header, re.M)
        self.assertEqual({name: 0 if arguments == "void" else arguments.count(",") + 1 for name, arguments in declared},
                         {name: len(arguments) for name, (_, arguments) in _abi.FUNCTIONS.items()})
        self.assertEqual(int(re.search(r"#define TACTUS_ABI (\d+)", self.header).group(1)), _abi.ABI)
        for name, number in re.findall(r"TACTUS_([A-Z_]+) = (-?\d)", self.header):
            self.assertEqual(getattr(_abi, name), int(number), name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
