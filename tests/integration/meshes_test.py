"""Jobs whose model is split over the devices of a mesh (model.options.mesh): they train as dense ones do, lose members,
keep checkpoints that every layout reads, and say what is wrong with a mesh that cannot be."""
import json
import math
import os
import signal
import struct
import unittest

from cluster import tiny_spec, wait_until
from one_coordinator import OneCoordinator
from two_nodes import WORKERS, TwoNodes

BATCH = 16  # of all workers together, so that every layout takes the same steps
ROUNDS = 20
# Split and dense passes are the same sums in other orders. Of a step each is some 100 roundings from exact, momentum
# repeats a difference ten times.
BOUND = 2 * 10 * ROUNDS * 100 * 2.0**-24


# Of local steps: 20 rounds of 4 steps, of which block momentum repeats what they did twice.
PERIODIC = {"policy": "periodic", "period": 4, "block_momentum": 0.5}
WINDOWS_BOUND = 2 * 4 * BOUND

# LAMB's momentum is an average, which repeats nothing. Its direction is a quotient, whose epsilon is as large as
# gradients are, so that what is off in these is twice as far off in it, and again as far with the ratio: four of each
# rounding are fewer than sgd's ten.
LAMB = {"lamb": {"learning_rate": 0.02, "epsilon": 0.01}}


# Its coefficients are quotients of products of two vectors: what is combined is so much farther off than these.
ADASUM = 4


# AdaScale's steps are up to so many times as long.
GAIN = 4


def tensors(path):
    """name: list of numbers, of a safetensors file of float32."""
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    found = {}
    for name, tensor in header.items():
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        found[name] = struct.unpack(f"<{(end - begin) // 4}f", raw[begin:end])
    return found


def norm(values):
    return math.sqrt(math.fsum(value * value for value in values))


class MeshesTest(TwoNodes):
    def spec(self, kind="none", devices=1, replicas=1, recompute=False, **more):
        workers = devices * replicas
        spec = {**tiny_spec(self.corpus, rounds=ROUNDS), **more}
        spec["model"] = {"builtin": "bytes-lm", "options": {"width": 16, "heads": 4, "layers": 2, "context": 16}}
        if kind != "none":
            spec["model"]["options"]["mesh"] = {"kind": kind, "devices": devices}
        if recompute:
            spec["model"]["options"]["recompute"] = True
        spec["workers"] = {"min": workers, "max": workers, **more.get("workers", {})}
        spec["adapt"] = {"policy": "none", "batch": {"per_worker": BATCH // workers}}
        return spec

    def done(self, job, seconds=240):
        done = self.cluster.wait(job, ["SUCCEEDED", "FAILED"], seconds)
        self.assertEqual(done["state"], "JOB_STATE_SUCCEEDED", done.get("state_reason"))
        return done

    def result(self, job):
        folder = self.folder.path / f"of-{job}"
        self.cluster.tactus("download", job, "--to", folder)
        return tensors(next(folder.rglob("model.safetensors")))

    def run_job(self, *words, **spec):
        """Of a job that runs to its end: the job and its parameters."""
        job = self.cluster.submit(self.spec(*words, **spec))
        done = self.done(job)
        return done, self.result(job)

    def distance(self, found, expected):
        self.assertEqual(set(found), set(expected))
        length = norm(value for values in expected.values() for value in values)
        apart = norm(a - b for name in expected for a, b in zip(found[name], expected[name], strict=True))
        self.assertGreater(length, 0)
        return apart / length

    def check_equal(self, found, expected, bound=BOUND):
        self.assertLess(self.distance(found, expected), bound)

    def test_every_layout_trains_as_the_dense_model(self):
        dense, expected = self.run_job()
        loss = float(dense["result"]["train_loss"])
        self.assertLess(loss, 5.5, "it has learned something")
        for layout in (("none", 1, 1, True), ("1d", 1), ("1d", 2), ("2d", 4), ("2d", 4, 1, True), ("1d", 2, 2)):
            with self.subTest(layout=layout):
                done, found = self.run_job(*layout)
                self.check_equal(found, expected)
                self.assertAlmostEqual(float(done["result"]["train_loss"]), loss, delta=1e-4)
                self.assertAlmostEqual(float(done["result"]["validation"]["loss"]),
                                       float(dense["result"]["validation"]["loss"]), delta=1e-4)
                self.assertEqual(done["result"]["samples"], dense["result"]["samples"], "each counts once")
                self.assertEqual(done["result"]["validation"]["samples"], dense["result"]["validation"]["samples"])
                if layout[0] == "2d":
                    self.assertIn("2d, 2 x 2 devices", done["mesh"])
                    self.assertIn("1 replica", done["mesh"])
                if layout == ("1d", 2, 2):
                    self.assertIn("2 replicas, each within one node, of equal devices", done["mesh"])

    def test_whole_epochs_and_validations_between_rounds(self):
        """The rounds at an epoch's end have fewer samples than members, for some of them none."""
        spec = {"stop": {"epochs": 2}, "validation": {"rounds": 10}, "data": {"text": str(self.folder.corpus(4000))}}
        dense, expected = self.run_job(**spec)
        for layout in (("2d", 4), ("1d", 2, 2)):
            with self.subTest(layout=layout):
                done, found = self.run_job(*layout, **spec)
                self.assertEqual(done["result"]["samples"], dense["result"]["samples"])
                self.assertEqual(done["result"]["rounds"], dense["result"]["rounds"])
                self.check_equal(found, expected, 1e-3)

    def test_micro_batches_are_taken_by_all_together(self):
        _, expected = self.run_job()
        spec = self.spec("2d", 4)
        spec["adapt"]["batch"]["micro_batch"] = 3
        job = self.cluster.submit(spec)
        self.done(job)
        self.check_equal(self.result(job), expected)

    def test_gradients_are_clipped_by_the_norm_of_all_parts(self):
        optimizer = {"sgd": {"learning_rate": 0.1, "momentum": 0.9}, "clip_norm": 0.1}
        _, plain = self.run_job()
        dense, expected = self.run_job(optimizer=optimizer)
        with self.assertRaises(AssertionError, msg="clipping has an effect"):
            self.check_equal(plain, expected)
        for layout in (("2d", 4), ("1d", 2, 2)):
            with self.subTest(layout=layout):
                done, found = self.run_job(*layout, optimizer=optimizer)
                self.check_equal(found, expected)
                self.assertEqual(done["result"]["samples"], dense["result"]["samples"])

    def test_lamb_goes_by_the_norms_of_whole_layers(self):
        _, without = self.run_job(optimizer={"adamw": {**LAMB["lamb"], "weight_decay": 0.01}})
        for optimizer in (LAMB, {**LAMB, "clip_norm": 0.1}):
            dense, expected = self.run_job(optimizer=optimizer)
            with self.assertRaises(AssertionError, msg="norms have an effect"):
                self.check_equal(without, expected)
            loss = float(dense["result"]["train_loss"])
            for layout in (("1d", 2), ("2d", 4), ("1d", 2, 2)):
                with self.subTest(layout=layout, clipped=len(optimizer) > 1):
                    done, found = self.run_job(*layout, optimizer=optimizer)
                    self.check_equal(found, expected)
                    self.assertAlmostEqual(float(done["result"]["train_loss"]), loss, delta=1e-4)
                    self.assertEqual(done["result"]["samples"], dense["result"]["samples"])

    def test_adascale_goes_by_what_replicas_differ_in(self):
        """The gain follows from norms that are equal but for rounding; those of an earlier round, so the first is 1."""
        def run(*layout):
            spec = self.spec(*layout)
            spec["adapt"]["learning_rate"] = {"policy": "adascale", "base_batch": BATCH // 4}
            job = self.cluster.submit(spec)
            self.done(job)
            rounds = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]
            return [float(each["gain"]) for each in rounds], self.result(job)

        gains, expected = run("none", 1, 2)
        self.assertTrue(any(1.01 < gain < 3.99 for gain in gains), gains)
        _, constant = self.run_job("none", 1, 2)
        with self.assertRaises(AssertionError, msg="the gain has an effect"):
            self.check_equal(constant, expected)

        found_gains, found = run("1d", 2, 2)

        self.check_equal(found, expected, GAIN * BOUND)
        self.assertEqual(len(found_gains), len(gains))
        for found_gain, gain in zip(found_gains, gains, strict=True):
            self.assertAlmostEqual(found_gain, gain, delta=1e-2)

    def test_adasum_goes_by_the_products_of_whole_layers(self):
        """Of gradients in every step, and of what an optimizer with momentum did in windows."""
        plain = {"sgd": {"learning_rate": 0.1}}
        momentum = {"sgd": {"learning_rate": 0.1, "momentum": 0.9}}
        windows = {"policy": "periodic", "period": 4}
        for optimizer, synchronization, bound in ((plain, "every_step", ADASUM / 10 * BOUND),
                                                  (momentum, windows, ADASUM * 4 * BOUND)):
            def run(*layout, aggregation="adasum"):
                spec = self.spec(*layout, optimizer=optimizer)
                spec["adapt"] |= {"aggregation": aggregation, "synchronization": synchronization}
                job = self.cluster.submit(spec)
                self.done(job)
                return self.result(job)

            with self.subTest(synchronization=synchronization):
                expected = run("none", 1, 2)
                with self.assertRaises(AssertionError, msg="Adasum has an effect"):
                    self.check_equal(run("none", 1, 2, aggregation="average"), expected, bound)
                self.check_equal(run("1d", 2, 2), expected, bound)

    def test_parts_travel_between_replicas_in_half_the_bytes(self):
        """Rounded to 8 bits each way, which is far below what 20 rounds change."""
        _, expected = self.run_job()
        sent = {}
        for encoding in ("dense", "bfloat16", "float16"):
            spec = self.spec("1d", 2, 2)
            spec["adapt"]["encoding"] = encoding
            job = self.cluster.submit(spec)
            self.done(job)
            rounds = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]
            sent[encoding] = int(rounds[-1]["bytes"])
            self.check_equal(self.result(job), expected, 1e-2)
        for halved in ("bfloat16", "float16"):
            self.assertLess(sent[halved], 0.6 * sent["dense"])
        self.assertNotEqual(sent["dense"], 0)

    def test_what_encodings_leave_out_goes_on_from_checkpoints(self):
        """To the bit in the same layout; of another one both members find something left to them."""
        encoding = {"policy": "adacomp", "bin": 32}
        spec = self.spec("1d", 2, 2, stop={"rounds": 100000})
        spec["adapt"]["encoding"] = encoding
        job = self.cluster.submit(spec)
        self.trains_beyond(job, 20)
        self.cluster.tactus("pause", job)
        rounds = int(self.cluster.wait(job, ["PAUSED"], 60)["checkpoint_rounds"]) + 300
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED"], 60)
        spec["stop"] = {"rounds": rounds}
        undisturbed = self.cluster.submit(spec)
        self.assertLess(float(self.done(undisturbed)["result"]["train_loss"]), 5.5)

        _, same = self.goes_on_from(job, "1d", 2, rounds, 2, encoding=encoding)

        self.assertEqual(same, self.result(undisturbed))
        for layout in (("none", 1, 2), ("2d", 4, 1)):
            with self.subTest(layout=layout):
                kind, devices, replicas = layout
                done, _ = self.goes_on_from(job, kind, devices, rounds, replicas, encoding=encoding)
                self.assertLess(float(done["result"]["train_loss"]), 5.5)
                name = done["name"].rsplit("/", 1)[-1]
                self.assertNotIn("begins with none", self.cluster.tactus("logs", name)[1])

    def goes_on_from(self, job, kind, devices, rounds, replicas=1, synchronization=None, encoding=None, **more):
        path = self.folder.path / f"{kind}{devices}.yaml"
        spec = self.spec(kind, devices, replicas, stop={"rounds": rounds}, **more)
        if synchronization:
            spec["adapt"]["synchronization"] = synchronization
        if encoding:
            spec["adapt"]["encoding"] = encoding
        path.write_text(json.dumps(spec))
        name = self.cluster.tactus("submit", path, "--from", job, "-o", "name")[1].strip().rsplit("/", 1)[-1]
        return self.done(name), self.result(name)

    def test_a_checkpoint_of_a_mesh_is_read_by_every_layout(self):
        self.every_layout_goes_on()

    def test_a_checkpoint_of_lamb_is_read_by_every_layout(self):
        self.every_layout_goes_on(optimizer=LAMB)

    def every_layout_goes_on(self, **more):
        job = self.cluster.submit(self.spec("2d", 4, stop={"rounds": 100000}, **more))
        self.trains_beyond(job, 50)
        self.cluster.tactus("pause", job)
        self.cluster.wait(job, ["PAUSED"], 60)
        rounds = int(self.cluster.job(job)["checkpoint_rounds"])
        self.assertGreater(rounds, 50)
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED"], 60)

        dense, expected = self.goes_on_from(job, "none", 1, rounds + ROUNDS, **more)

        for kind, devices in (("1d", 2), ("2d", 4)):
            with self.subTest(kind=kind):
                done, found = self.goes_on_from(job, kind, devices, rounds + ROUNDS, **more)
                self.assertEqual(done["result"]["samples"], dense["result"]["samples"])
                self.check_equal(found, expected)

    def test_a_mesh_goes_on_from_a_checkpoint_that_was_taken_while_it_trained(self):
        job = self.cluster.submit(self.spec("2d", 4, stop={"rounds": 100000}, checkpoints={"every": "1s"}))
        wait_until(lambda: int(self.cluster.job(job).get("checkpoint_rounds", 0)) > 0, 60, "a checkpoint is there")

        os.kill(sorted(self.cluster.workers())[-1], signal.SIGKILL)

        wait_until(lambda: len(self.cluster.job(job).get("attempts", [])) == 2, 60, "another attempt begins")
        self.assertGreater(int(self.cluster.job(job)["attempts"][1]["first_round"]), 0)
        self.trains_beyond(job, int(self.cluster.job(job)["attempts"][1]["first_round"]) + 20)
        self.end_after(job, self.rounds(job) + 50)
        self.assertEqual(int(self.cluster.job(job).get("regroups", 0)), 0)
        self.done(job)

    def test_a_replica_leaves_as_a_whole_and_the_other_goes_on(self):
        # Two replicas begin where all devices are free; else one does, and the other comes later.
        wait_until(lambda: not self.cluster.workers(), 30, "the workers of former jobs are gone")
        job = self.cluster.submit(self.spec("1d", 2, 2, stop={"rounds": 100000}, workers={"min": 2, "max": WORKERS}))
        self.trains_beyond(job, 50)

        os.kill(self.cluster.workers("b")[0], signal.SIGKILL)

        wait_until(lambda: int(self.cluster.job(job).get("regroups", 0)) == 1, 30, "a regroup is on record")
        wait_until(lambda: self.cluster.job(job).get("mesh", "").endswith("1 replica, within one node, of equal devices"),
                   30, "one replica is left")
        self.assertEqual(len(self.cluster.job(job)["attempts"]), 1)
        rounds = self.rounds(job)
        self.trains_beyond(job, rounds + 20)
        self.end_after(job, self.rounds(job) + 50)
        self.done(job)

    # ---- Local steps: a replica is to others what a worker is that holds the whole model

    def windows(self, kind, devices, replicas=2, encoding="dense", windows=None, **more):
        spec = self.spec(kind, devices, replicas, **more)
        spec["adapt"]["synchronization"] = windows or PERIODIC
        spec["adapt"]["encoding"] = encoding
        return spec

    def run_windows(self, *words, **more):
        job = self.cluster.submit(self.windows(*words, **more))
        return self.done(job), self.result(job), job

    def test_windows_of_meshes_train_as_those_of_workers_that_hold_all(self):
        dense, expected, _ = self.run_windows("none", 1)
        _, by_step = self.run_job("none", 1, 2, stop={"rounds": 4 * ROUNDS})
        with self.assertRaises(AssertionError, msg="windows have an effect"):
            self.check_equal(by_step, expected, WINDOWS_BOUND)

        for node in ("c", "d"):
            self.cluster.start_agent(node, WORKERS // 2)
        for kind, devices in (("2d", 4), ("1d", 2)):
            with self.subTest(kind=kind):
                done, found, job = self.run_windows(kind, devices)
                self.check_equal(found, expected, WINDOWS_BOUND)
                self.assertEqual(done["result"]["samples"], dense["result"]["samples"])
                self.assertEqual(int(done["result"]["samples"]), 4 * ROUNDS * BATCH)
                loss = float(dense["result"]["train_loss"])
                self.assertAlmostEqual(float(done["result"]["train_loss"]), loss, delta=1e-3)
        rounds = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]
        sent = int(rounds[-1]["bytes"])
        # As far off as workers are that hold all, whose roundings are others.
        _, rounded, _ = self.run_windows("none", 1, encoding="bfloat16")
        _, halved, job = self.run_windows("1d", 2, encoding="bfloat16")
        self.check_equal(halved, expected, 2 * self.distance(rounded, expected))
        rounds = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])["rounds"]
        self.assertLess(int(rounds[-1]["bytes"]), 0.6 * sent)
        self.assertNotEqual(sent, 0)

    def test_windows_of_lamb_go_by_the_norms_of_whole_layers(self):
        dense, expected, _ = self.run_windows("none", 1, optimizer=LAMB)

        done, found, _ = self.run_windows("1d", 2, optimizer=LAMB)

        self.check_equal(found, expected, WINDOWS_BOUND)
        self.assertEqual(done["result"]["samples"], dense["result"]["samples"])

    def test_windows_at_an_epochs_end_have_steps_of_few_samples(self):
        spec = {"stop": {"epochs": 2}, "validation": {"rounds": 5}, "data": {"text": str(self.folder.corpus(4000))}}
        dense, expected, _ = self.run_windows("none", 1, **spec)

        done, found, _ = self.run_windows("1d", 2, **spec)

        self.assertEqual(done["result"]["samples"], dense["result"]["samples"])
        self.assertEqual(done["result"]["rounds"], dense["result"]["rounds"])
        self.check_equal(found, expected, 1e-3)

    def test_one_mesh_takes_single_steps(self):
        _, expected = self.run_job()
        done, found, job = self.run_windows("2d", 4, 1)
        self.check_equal(found, expected)
        self.assertEqual(int(done["result"]["samples"]), ROUNDS * BATCH)
        said = " ".join(self.cluster.tactus("explain", job)[1].split())  # without the breaks of lines
        self.assertIn("one replica has nobody to exchange with", said)

    def test_a_checkpoint_of_windows_goes_on_in_every_layout_with_its_block_momentum(self):
        job = self.cluster.submit(self.windows("1d", 2, stop={"rounds": 100000}))
        self.trains_beyond(job, 20)
        self.cluster.tactus("pause", job)
        self.cluster.wait(job, ["PAUSED"], 60)
        rounds = int(self.cluster.job(job)["checkpoint_rounds"])
        self.cluster.tactus("resume", job)
        self.trains_beyond(job, rounds + 20)
        self.cluster.tactus("pause", job)
        self.cluster.wait(job, ["PAUSED"], 60)
        rounds = int(self.cluster.job(job)["checkpoint_rounds"])
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED"], 60)

        def goes_on(kind, devices, **windows):
            return self.goes_on_from(job, kind, devices, rounds + ROUNDS, 2, {**PERIODIC, **windows})

        dense, expected = goes_on("none", 1)
        with self.assertRaises(AssertionError, msg="block momentum has an effect"):
            self.check_equal(goes_on("none", 1, block_momentum=0)[1], expected, WINDOWS_BOUND)
        done, found = goes_on("1d", 2)
        self.check_equal(found, expected, WINDOWS_BOUND)
        self.assertEqual(done["result"]["samples"], dense["result"]["samples"])

    def test_a_worker_dies_in_a_window_and_the_other_replica_goes_on(self):
        wait_until(lambda: len(self.cluster.tactus("get", "nodes", "-o", "name")[1].split()) == 2, 30, "both nodes joined")
        windows = {"policy": "periodic", "period": 64, "block_momentum": 0.3}
        job = self.cluster.submit(self.windows("1d", 2, 2, windows=windows, stop={"rounds": 100000},
                                               optimizer={"adam": {"learning_rate": 0.001}},
                                               workers={"min": 2, "max": WORKERS}))
        self.trains_beyond(job, 5)

        os.kill(self.cluster.workers("b")[0], signal.SIGKILL)

        wait_until(lambda: int(self.cluster.job(job).get("regroups", 0)) == 1, 30, "a regroup is on record")
        self.assertEqual(len(self.cluster.job(job)["attempts"]), 1)
        self.trains_beyond(job, self.rounds(job) + 10)
        self.end_after(job, self.rounds(job) + 10)
        done = self.done(job)
        self.assertLess(float(done["result"]["train_loss"]), 5.5)

    def restart_coordinator(self, meanwhile=lambda: None):
        address = self.cluster.address
        self.cluster.kill("coordinator")
        meanwhile()
        self.cluster.start_coordinator(address)

    def test_a_mesh_trains_on_without_the_coordinator(self):
        job = self.cluster.submit(self.spec("2d", 4, stop={"rounds": 100000}))
        self.trains_beyond(job, 50)
        before = sorted(self.cluster.workers())

        self.restart_coordinator()

        rounds = self.rounds(job)
        self.trains_beyond(job, rounds + 50)
        self.assertEqual(sorted(self.cluster.workers()), before, "the processes are those of before")
        self.end_after(job, self.rounds(job) + 50)
        done = self.done(job)
        self.assertEqual((len(done["attempts"]), int(done.get("regroups", 0))), (1, 0))
        self.assertEqual(int(done["result"]["samples"]), BATCH * int(done["result"]["rounds"]))
        _, expected = self.run_job(stop={"rounds": int(done["result"]["rounds"])})
        # Of hundreds of rounds, over which training itself makes differences larger.
        self.check_equal(self.result(job), expected, 0.01)

    def test_a_replica_is_lost_while_the_coordinator_is_gone_and_the_other_goes_on(self):
        wait_until(lambda: not self.cluster.workers(), 30, "the workers of former jobs are gone")
        job = self.cluster.submit(self.spec("1d", 2, 2, stop={"rounds": 100000}, workers={"min": 2, "max": WORKERS}))
        self.trains_beyond(job, 50)
        left = sorted(self.cluster.workers("a"))

        self.restart_coordinator(lambda: os.kill(self.cluster.workers("b")[0], signal.SIGKILL))

        wait_until(lambda: int(self.cluster.job(job).get("regroups", 0)) == 1, 60, "a regroup is on record")
        wait_until(lambda: self.cluster.job(job).get("mesh", "").endswith("1 replica, within one node, of equal devices"),
                   30, "one replica is left")
        wait_until(lambda: not self.cluster.workers("b"), 30, "the other replica's last worker is ended")
        self.assertEqual(sorted(self.cluster.workers("a")), left, "the processes are those of before")
        rounds = self.rounds(job)
        self.trains_beyond(job, rounds + 20)
        self.assertEqual(len(self.cluster.job(job)["attempts"]), 1)
        self.end_after(job, self.rounds(job) + 50)
        self.done(job)

    def test_what_cannot_be_is_a_line_with_the_nearest_choice(self):
        def refused(change, *says):
            spec = self.spec("2d", 4)
            change(spec)
            path = self.folder.path / "bad.yaml"
            path.write_text(json.dumps(spec))
            code, _, said = self.cluster.tactus("submit", path, check=False)
            self.assertEqual(code, 2, said)
            for words in says:
                self.assertIn(words, said)

        def mesh(**fields):
            def change(spec):
                spec["model"]["options"]["mesh"] = fields
            return change

        refused(mesh(kind="2d", devices=5), "model.options.mesh.devices", "allowed is a square; the nearest is 4")
        refused(mesh(kind="2d", devices=9), "found 4 heads, which 3 rows do not divide", "nearest layout")
        refused(mesh(kind="1d", devices=3), "found 4 heads, which 3 devices do not divide", "nearest layout")
        refused(mesh(kind="2d"), "model.options.mesh.devices", "is missing")
        refused(mesh(devices=4), "model.options.mesh.kind", "give none, 1d, 2d or auto")
        refused(lambda spec: spec["workers"].update(min=6, max=8), "workers.min", "the nearest is 4 or 8")
        refused(lambda spec: spec["workers"].update(spares=1), "workers.spares")
        refused(lambda spec: spec["optimizer"].update(shard="equal"), "optimizer.shard")
        def adasum_of_momentum(spec):
            spec["adapt"]["aggregation"] = {"policy": "adasum"}
            spec["optimizer"] = {"sgd": {"learning_rate": 0.1, "momentum": 0.9}}

        refused(adasum_of_momentum, "adapt.aggregation.policy", "take periodic, or average, or sgd without momentum")

        def one_bit(spec):
            spec["optimizer"] = {"adam": {"learning_rate": 0.001}}
            spec["adapt"]["encoding"] = {"policy": "one_bit"}

        refused(one_bit, "adapt.encoding.policy", "model.options.mesh", "of which each device of a mesh has a part")
        for policy in ("delayed", "lsgd", "decentlam"):
            refused(lambda spec: spec["adapt"].update(synchronization={"policy": policy}), "adapt.synchronization.policy",
                    "model.options.mesh", "take every_step, periodic, post_local or adacomm")
        refused(lambda spec: spec["adapt"].update(synchronization={"policy": "periodic", "period": 4, "elastic": True}),
                "adapt.synchronization.elastic", "allowed with model.options.mesh is false")


class UnequalMeshesTest(OneCoordinator):
    """A node of two devices, and one of two that pretend to be a third as fast."""

    def setUp(self):
        super().setUp()
        self.cluster.start_agent("a", 2, "0.6,0.6")
        self.cluster.start_agent("b", 2, "0.2,0.2")

    def test_replicas_share_by_speed_and_their_members_equally(self):
        spec = tiny_spec(self.corpus, rounds=100000)
        spec["model"]["options"] = {"width": 64, "heads": 4, "layers": 2, "context": 64, "mesh": {"kind": "1d", "devices": 2}}
        spec["workers"] = {"min": 4, "max": 4}
        spec["adapt"]["batch"] = {"policy": "proportional", "per_worker": 32}
        job = self.cluster.submit(spec)
        seen = []

        def sizes():
            """Of the newest plan, as they are on record."""
            workers = self.cluster.job(job).get("progress", {}).get("workers", [])
            shares = [int(worker["batch_size"]) for worker in workers]
            if len(shares) == 4 and sum(shares) > 0:  # before the first round there are none
                seen.append(shares)
            return seen[-1] if seen else [32] * 4

        def follow():
            least, most = sorted((sizes()[0], sizes()[2]))
            return most > 2 * least

        wait_until(follow, 120, "shares follow the speeds")
        for shares in seen:
            self.assertEqual(shares[0], shares[1], "of one replica")
            self.assertEqual(shares[2], shares[3], "of the other")
            self.assertEqual(sum(shares), 4 * 32)
        said = " ".join(self.cluster.tactus("explain", job)[1].split())  # without the breaks of lines
        self.assertRegex(said, r"replica [01] computes [0-9.]+ samples/s against [0-9.]+ on the fastest")
        self.cluster.tactus("cancel", job)
        self.cluster.wait(job, ["CANCELLED"], 60)


if __name__ == "__main__":
    unittest.main()
