"""Worker processes over TCP, each with a part of the model (model.options.mesh), under a scripted agent and coordinator:
what a mesh comes to is what one worker comes to, whole replicas go on in the next group, and a mesh has to be whole.
"""
import pathlib
import struct
import unittest

from meshes_test import norm, tensors
from regrouped_workers_test import ScriptedGroups


class SplitWorkersTest(ScriptedGroups):
    def split(self, kind, devices, heads=4):
        self.spec["model"]["options"] = {"width": 16, "heads": heads, "layers": 1, "context": 16}
        if devices > 1:
            self.spec["model"]["options"]["mesh"] = {"kind": f"MESH_KIND_{kind}", "devices": devices}

    def tell_group(self, group, generation, rounds=(), **plan):
        sizes = plan.pop("batchSizes", [16 // len(group)] * len(group))
        super().tell_group(group, generation, rounds, batchSizes=sizes, **plan)

    def trained(self, kind, devices, replicas=1, **start):
        """What a group comes to, and its loss."""
        self.split(kind, devices)
        group = self.start(devices * replicas, **start)
        self.form(group, 1)
        self.check_end(group)
        return tensors(group[0].output / "model.safetensors")

    def check_equal(self, found, expected, bound):
        self.assertEqual(set(found), set(expected))
        length = norm(value for values in expected.values() for value in values)
        apart = norm(a - b for name in expected for a, b in zip(found[name], expected[name], strict=True))
        self.assertLess(apart / length, bound)

    def test_meshes_come_to_what_one_worker_comes_to(self):
        expected = self.trained("NONE", 1)
        for layout in (("1D", 2), ("2D", 4), ("1D", 2, 2)):
            with self.subTest(layout=layout):
                self.check_equal(self.trained(*layout), expected, 1e-3)

    def test_the_other_replica_goes_on_as_a_whole(self):
        self.split("1D", 2)
        group = self.start(4)
        self.form(group, 1)
        group[0].await_round(20)
        group.pop(1).kill()
        rounds = self.await_loss(group, 1)
        group.pop(0).kill()  # as a coordinator ends it
        self.assertEqual(len(set(rounds[1:])), 1, "a replica's members have applied the same")

        self.form(group, 2, rounds[1:])

        self.check_end(group)

    def test_a_group_that_is_no_whole_replicas_is_refused(self):
        self.split("2D", 4)
        group = self.start(2)
        self.tell_group(group, 1)
        for worker in group:
            failed = worker.await_kind("failed")
            self.assertEqual(failed["field"], "workers")
            self.assertIn("found a group of 2, allowed is a multiple of 4", failed["message"])

    def test_a_suspended_mesh_leaves_a_checkpoint_that_every_layout_reads(self):
        self.split("2D", 4)
        group = self.start(4)
        self.form(group, 1)
        group[0].await_round(10)
        group[0].say({"stop": {"reason": "the test", "suspend": True}})
        for worker in group:
            self.assertTrue(worker.await_kind("finished")["suspended"])
        checkpoint = str(group[0].output / "checkpoint.safetensors")
        content = pathlib.Path(checkpoint).read_bytes()
        header = content[8:8 + struct.unpack("<Q", content[:8])[0]].decode()
        self.assertIn('"parameters.blocks.0.qkv.weight"', header)
        self.assertIn('"optimizer.0.blocks.0.qkv.weight"', header)

        expected = self.trained("NONE", 1, checkpoint=checkpoint)

        for layout in (("1D", 2), ("2D", 4)):
            with self.subTest(layout=layout):
                self.check_equal(self.trained(*layout, checkpoint=checkpoint), expected, 1e-3)


if __name__ == "__main__":
    unittest.main()
