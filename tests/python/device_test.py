"""Programs on a GPU, on the double of the CUDA runtime: what streams do comes when somebody waits for it, at once, or by chance, and
torch's tensors, which are the host's, play the device's memory."""
import ctypes
import gc
import os
import pathlib
import re
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy
import torch
import torch.distributed as dist
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "bench"))
import tactus_train  # noqa: E402
from tactus_train import ModelError, UnavailableError, _abi, _device  # noqa: E402
from gpu_train.workers import Group, WorkerFailed  # noqa: E402
from scaling_test import Scaler, loss_of  # noqa: E402
from training_test import OPTIMIZERS, Samples, model_of  # noqa: E402

SCHEDULES = {"lazy": ("sgd", "adamw"), "eager": ("adamw",), "random": ("own",)}
LIMIT_SECONDS = 60


class Double(_device.Cuda):
    """A device whose memory the host may touch once it has waited for it."""

    asked = 0  # to keep no memory that is not used
    room = True

    def __init__(self, device):
        self.device = device
        self.library = ctypes.CDLL(os.environ["TACTUS_SDK_LIBRARY"])
        self.library.tactus_double_stream.restype = ctypes.c_void_p
        for name in ("synchronize", "adopt", "forget", "end_stream"):
            getattr(self.library, "tactus_double_" + name).argtypes = [ctypes.c_void_p] + [ctypes.c_uint64] * (name == "adopt")
        self.own = self.library.tactus_double_stream()
        self.adopted = set()

    def __del__(self):
        """With the run, which is closed by then."""
        for address in self.adopted:
            self.library.tactus_double_forget(address)
        self.library.tactus_double_end_stream(self.own)

    def stream(self):
        return self.own

    def zeros(self, length):
        if not Double.room:
            return None
        memory = torch.zeros(length + 16)
        memory = memory[-memory.data_ptr() % 64 // 4:][:length]
        self.library.tactus_double_adopt(memory.data_ptr(), 4 * length)
        self.adopted.add(memory.data_ptr())
        return memory

    def let_go(self, memory):
        self.wait()
        self.library.tactus_double_forget(memory.data_ptr())
        self.adopted.remove(memory.data_ptr())

    def wrap(self, address, length, keep):
        raise AssertionError("memory that nobody has lent")

    def shrink(self):
        Double.asked += 1

    def wait(self):
        """What torch does on the host comes behind what its stream waits for, as on a device."""
        self.library.tactus_double_synchronize(self.own)


class DoubleLink(_device.DeviceLink):
    def take(self):
        request = super().take()
        self._cuda.wait()
        return request

    def end(self, why):
        super().end(why)
        self._cuda.wait()


def on_the_double(schedule):
    """A machine with one GPU, on which all parameters are."""
    gc.collect()
    assert ctypes.CDLL(os.environ["TACTUS_SDK_LIBRARY"]).tactus_double_reset(schedule.encode(), 1) == 0
    Double.asked, Double.room = 0, True
    return mock.patch.multiple(_device, Cuda=Double, DeviceLink=DoubleLink, of_parameters=lambda parameters: torch.device("cuda", 0))


def train(optimizer_of, micro_batch=None, clip=None, epochs=1, batch=8):
    """With Tactus; the model, its optimizer, and the batches as they were read."""
    data, model = Samples(), model_of()
    with tactus_train.init() as run:
        loader = run.loader(data, batch_size=batch, micro_batch=micro_batch)
        optimizer = optimizer_of(model.parameters())
        run.attach(model, optimizer, epochs=epochs, clip_norm=clip)
        batches = []
        for _ in run.epochs():
            for x, y in loader:
                batches.append(data.read[-len(x):])
                run.backward(nn.functional.cross_entropy(model(x), y))
                run.step()
    return model, optimizer, batches


def largest_difference(one, other):
    return max(float((a - b).abs().max()) for a, b in zip(one.state_dict().values(), other.state_dict().values()))


class DeviceTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def test_training_is_that_of_a_processor_whenever_the_device_gets_to_it(self):
        for schedule, names in SCHEDULES.items():
            for name in names:
                with self.subTest(schedule=schedule, optimizer=name):
                    expected, of_host, batches = train(OPTIMIZERS[name])
                    with on_the_double(schedule):
                        trained, optimizer, read = train(OPTIMIZERS[name])
                    self.assertEqual(read, batches)
                    self.assertEqual(largest_difference(trained, expected), 0)
                    for state, other in zip(optimizer.state.values(), of_host.state.values()):
                        for key, value in state.items():
                            self.assertEqual(str(value), str(other[key]), key)

    def test_pieces_of_batches_and_clipping(self):
        for options in ({"micro_batch": 3}, {"clip": 0.1}, {"micro_batch": 4, "clip": 0.1}):
            with self.subTest(options):
                expected, *_ = train(OPTIMIZERS["momentum"], **options)
                with on_the_double("random"):
                    trained, *_ = train(OPTIMIZERS["momentum"], **options)
                self.assertLess(largest_difference(trained, expected), 1e-6)  # norms are added up in another order

    def test_where_there_is_no_room_the_library_has_memory_of_its_own(self):
        with on_the_double("lazy"):
            Double.room = False
            with self.assertRaisesRegex(AssertionError, "memory that nobody has lent"):
                train(OPTIMIZERS["sgd"])

    def test_a_device_that_is_not_there_is_one_line(self):
        with on_the_double("lazy"), mock.patch.object(_device, "of_parameters", lambda parameters: torch.device("cuda", 3)):
            with self.assertRaisesRegex(tactus_train.Error, "device 'cuda:3' cannot be used: the driver finds 1 device"):
                train(OPTIMIZERS["sgd"])

    def test_what_the_device_refuses_is_no_misuse(self):
        library = ctypes.CDLL(os.environ["TACTUS_SDK_LIBRARY"])
        for function in ("cudaEventRecord", "cudaStreamWaitEvent"):
            with self.subTest(function), on_the_double("lazy"), tactus_train.init() as run:
                model = model_of()
                loader = run.loader(Samples(), batch_size=8)
                run.attach(model, OPTIMIZERS["sgd"](model.parameters()), epochs=1)
                x, y = next(iter(loader))
                run.backward(nn.functional.cross_entropy(model(x), y))
                library.tactus_double_fail(function.encode(), 1)
                with self.assertRaisesRegex(tactus_train.Error, function) as caught:
                    run.step()
                self.assertIs(type(caught.exception), tactus_train.Error)
            run = loader = model = None  # before the machine is another


class TorchOnTheDouble:
    """The torch that _device.Cuda sees, whose device is a Double."""

    float32, device, empty, Tensor = torch.float32, torch.device, torch.empty, torch.Tensor

    def __init__(self, double):
        self.double, self.recorded = double, []
        self.cuda = mock.Mock(OutOfMemoryError=torch.cuda.OutOfMemoryError)
        self.cuda.is_available.return_value = True
        self.cuda.current_stream = lambda device: types.SimpleNamespace(cuda_stream=double.stream())

    def zeros(self, length, dtype, device):
        assert (dtype, device) == (torch.float32, self.double.device)
        if not Double.room:
            raise torch.cuda.OutOfMemoryError("of the device")
        return self.double.zeros(length)

    def record(self, memory, stream):
        """In place of Tensor.record_stream."""
        self.recorded.append((memory.data_ptr(), stream.cuda_stream))


class CudaTest(unittest.TestCase):
    """What is asked of torch about a device."""

    def setUp(self):
        gc.collect()
        library = ctypes.CDLL(os.environ["TACTUS_SDK_LIBRARY"])
        self.assertEqual(library.tactus_double_reset(b"lazy", 1), 0)
        self.double = Double(torch.device("cuda", 0))
        self.torch = TorchOnTheDouble(self.double)
        Double.room = True
        self.addCleanup(self.let_go)
        for patch in (mock.patch.object(_device, "torch", self.torch),
                      mock.patch.object(torch.Tensor, "record_stream", lambda memory, stream: self.torch.record(memory, stream))):
            patch.start()
            self.addCleanup(patch.stop)

    def let_go(self):
        """Before the machine is another, whoever keeps this test."""
        self.double = self.torch = None

    def test_training_asks_torch_for_streams_and_memory_and_says_what_still_reads_it(self):
        expected, *_ = train(OPTIMIZERS["adamw"])

        class Waits(_device.DeviceLink):
            def take(link):
                request = super().take()
                self.double.wait()
                return request

            def end(link, why):
                super().end(why)
                self.double.wait()
        with mock.patch.multiple(_device, DeviceLink=Waits, of_parameters=lambda parameters: torch.device("cuda", 0)):
            trained, *_ = train(OPTIMIZERS["adamw"])
        self.assertEqual(largest_difference(trained, expected), 0)
        self.torch.cuda.set_device.assert_called_once_with(torch.device("cuda", 0))
        self.torch.cuda.init.assert_called_once_with()
        addresses, streams = zip(*self.torch.recorded)
        self.assertEqual(set(streams), {self.double.own})
        self.assertEqual(set(addresses), self.double.adopted, "what came back meanwhile, and the rest at the end")

    def test_where_there_is_no_room_there_is_none_and_another_error_is_one(self):
        cuda = _device.Cuda(torch.device("cuda", 0))
        Double.room = False
        self.assertIsNone(cuda.zeros(10))
        with mock.patch.object(self.torch, "zeros", side_effect=RuntimeError("an illegal memory access")):
            with self.assertRaisesRegex(RuntimeError, "illegal"):
                cuda.zeros(10)
        cuda.shrink()
        self.torch.cuda.empty_cache.assert_called_once_with()
        self.assertEqual(cuda.name, "cuda:0")

    def test_memory_of_the_librarys_is_seen_where_it_is_and_keeps_its_run(self):
        class Run:
            pass
        floats, keep = (ctypes.c_float * 4)(1, 2, 3, 4), Run()
        taken = []
        self.torch.as_tensor = lambda array, device: taken.append((array, device)) or array
        _device.Cuda(torch.device("cuda", 0)).wrap(ctypes.addressof(floats), 4, keep)
        (array, device), = taken
        self.assertEqual(device, torch.device("cuda", 0))
        self.assertIs(array._keep, keep)
        # The host's arrays are described alike.
        seen = numpy.asarray(types.SimpleNamespace(__array_interface__={**array.__cuda_array_interface__, "version": 3}))
        self.assertEqual(seen.tolist(), [1, 2, 3, 4])
        seen[2] = 7
        self.assertEqual(floats[2], 7)

    def test_a_program_that_runs_alone_is_best_where_torch_and_the_library_have_a_device(self):
        self.assertEqual(_device.here(), torch.device("cuda"))
        self.torch.cuda.is_available.return_value = False
        self.assertEqual(_device.here(), torch.device("cpu"))
        self.torch.cuda.is_available.return_value = True
        library = mock.Mock()
        library.tactus_knows_cuda.return_value = 0
        with mock.patch.object(_abi, "load", lambda: library):
            self.assertEqual(_device.here(), torch.device("cpu"))


class RefusalTest(unittest.TestCase):
    def test_a_library_without_cuda(self):
        library = mock.Mock()
        library.tactus_knows_cuda.return_value = 0
        with mock.patch.object(_abi, "load", lambda: library):
            with self.assertRaisesRegex(UnavailableError, "the model is on cuda:0, and this library of Tactus was built without CUDA"):
                _device.open_link(torch.device("cuda", 0), {}, None)

    def test_parameters_on_two_devices_or_on_none_that_is_known(self):
        def on(*devices):
            return [(f"p{i}", types.SimpleNamespace(device=torch.device(device))) for i, device in enumerate(devices)]
        with self.assertRaisesRegex(ModelError, "parameter p2 is on cuda:1, and p0 on cuda:0; allowed: one device in a process"):
            _device.of_parameters(on("cuda:0", "cuda:0", "cuda:1"))
        with self.assertRaisesRegex(ModelError, "parameter p0 is on mps; allowed: cpu and cuda"):
            _device.of_parameters(on("mps", "mps"))
        self.assertEqual(_device.of_parameters(on("cuda:1", "cuda:1")), torch.device("cuda:1"))


class GroupTest(unittest.TestCase):
    """Members that are processes, by way of their hosts' memories."""

    def train(self, size, *words):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            command = [sys.executable, "-B", __file__, "member", *words, f"folder={folder}"]
            spec = {"name": "program", "seed": "1", "program": {"command": ["python3"]},
                    "adapt": {"batch": {"perWorker": 8, "microBatch": 8}, "learningRate": {"baseBatch": 8, "schedule": {"warmupSteps": 0}}}}
            with Group(command, folder / "group", [("cuda:0", {})] * size, spec, 8) as members:
                members.await_ready(LIMIT_SECONDS)
                members.form(LIMIT_SECONDS, transport="staged")
                members.await_finished(LIMIT_SECONDS)
                return [re.search(r"member (\d) of (\d): (.*)", worker.errors.read_text()).groups() for worker in members.workers]

    def test_two_members_have_the_same_and_all_samples_are_used(self):
        for words in (("random",), ("lazy", "overlap")):
            with self.subTest(words):
                told = self.train(2, *words)
                self.assertEqual([(rank, size) for rank, size, _ in told], [("0", "2"), ("1", "2")])
                self.assertEqual(told[0][2], told[1][2])
                self.assertIn("samples 206", told[0][2])

    def test_gradients_that_leave_in_the_pass_are_those_of_unscaled_losses(self):
        """Divided before they leave; what became infinite in it all leave out, and scale down alike."""
        behind = self.train(2, "lazy", "scaled")
        during = self.train(2, "lazy", "scaled", "overlap")
        for told, early in ((behind, "early 0 "), (during, "early 2 ")):
            self.assertEqual(told[0][2], told[1][2])
            self.assertIn(early, told[0][2])
            self.assertIn("scales 16777216 8388608 ", told[0][2])
            self.assertIn(" left out", told[0][2])
            self.assertNotIn(" 0 left out", told[0][2])
        self.assertEqual(behind[0][2].partition("scales")[2], during[0][2].partition("scales")[2])

    def test_a_process_group_of_the_programs_own_is_left_alone(self):
        told = self.train(2, "random", "process-group")
        self.assertEqual(told[0][2], told[1][2])
        self.assertIn("sum 3 of ", told[0][2])

    def test_a_model_on_another_device_than_its_worker_is_told_where_to_go(self):
        with self.assertRaisesRegex(WorkerFailed, r"device: the model is on cpu:0, and this worker's device is cuda:0: model.to\(run.device\)"):
            self.train(1, "random", "elsewhere")


def member(schedule, *words):
    torch.set_num_threads(1)
    with on_the_double(schedule):
        if "elsewhere" in words:
            _device.of_parameters = lambda parameters: torch.device("cpu")
        data, model, told, loss_by = Samples(), model_of(), "", lambda model, x, y: nn.functional.cross_entropy(model(x), y)
        scaler, early, applied = None, set(), []
        if "scaled" in words:  # wide enough that the last layer is a bucket of its own
            scaler, loss_by = Scaler(2.0**24), loss_of
            model = nn.Sequential(nn.Linear(12, 4200), nn.Tanh(), nn.Linear(4200, 64))
        with tactus_train.init() as run:
            assert run.device == torch.device("cuda", 0)
            loader = run.loader(data, batch_size=8)
            run.attach(model, OPTIMIZERS["adamw"](model.parameters()), epochs=2, overlap="overlap" in words, scaler=scaler)
            for _ in run.epochs():
                for x, y in loader:
                    run.backward(loss_by(model, x, y))
                    early.add(len(run._overlap._told) if run._overlap else 0)
                    applied.append(bool(run.step()))
                if "process-group" in words:
                    told = f"sum {sum_by_torch(run, words[-1].partition('=')[2]):g} of "
            if scaler is not None:
                told = f"early {max(early)} scales {' '.join(f'{scale:.0f}' for scale in scaler.scales)} {applied.count(False)} left out "
            values = [value.sum().item() for value in model.state_dict().values()]
            print(f"member {run.rank} of {run.size}: samples {run.samples} {told}{values}")


def sum_by_torch(run, folder):
    """Of the members' ranks, each and 1, by torch's default process group."""
    if not dist.is_initialized():
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=run.rank, world_size=run.size)
    value = torch.tensor(run.rank + 1.0)
    dist.all_reduce(value)
    return float(value)


if __name__ == "__main__":
    if sys.argv[1:2] == ["member"]:
        member(*sys.argv[2:])
    else:
        unittest.main(verbosity=2)
