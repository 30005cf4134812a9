"""Worker processes over TCP whose optimizer's state is cut up among them, under a scripted agent and coordinator: the
bits of all ways to hold it, losses, and checkpoints from one cut to another.
"""
import unittest

from regrouped_workers_test import WITHIN, ScriptedGroups

ADAMW = {"learningRate": 0.003, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weightDecay": 0.01}
MEMORIES = [{"memoryBytes": str(gib << 30)} for gib in (24, 8, 16)]


class ShardedWorkersTest(ScriptedGroups):
    def cut(self, shard="SHARD_NONE", copies=1):
        self.spec["optimizer"] = {"adamw": ADAMW, "shard": shard, "shardCopies": copies}

    def trained(self, count, **start):
        """The hash of what a group of so many comes to."""
        group = self.start(count, *MEMORIES[:count], **start)
        self.form(group, 1)
        self.check_end(group)
        return (group[0].output / "model.safetensors").read_bytes()

    def test_all_ways_of_holding_it_give_the_same_bits(self):
        self.cut()
        expected = self.trained(3)
        for shard, copies in (("SHARD_EQUAL", 1), ("SHARD_MEMORY", 1), ("SHARD_MEMORY", 2)):
            with self.subTest(shard=shard, copies=copies):
                self.cut(shard, copies)
                self.assertEqual(self.trained(3), expected)

    def test_with_two_copies_the_others_go_on_without_one(self):
        for victim in (2, 0):
            with self.subTest(victim=victim):
                self.cut("SHARD_MEMORY", 2)
                self.lose_one(victim)

    def test_with_one_copy_all_say_that_a_part_is_lost(self):
        self.cut("SHARD_MEMORY", 1)
        group = self.start(3, *MEMORIES)
        self.form(group, 1)
        group[0].await_round(20)
        group.pop(1).kill()

        self.form(group, 2, self.await_loss(group, 1))

        for worker in group:
            failed = worker.await_kind("failed")
            self.assertIn("parameters is held by no member of this group", failed["message"])
            self.assertTrue(failed["transient"], "another try, from a checkpoint, may not meet it")
            worker.process.wait(WITHIN)

    def suspended(self, count):
        """The checkpoint that a group of so many leaves."""
        group = self.start(count, *MEMORIES[:count])
        self.form(group, 1)
        group[0].await_round(10)
        # By rank 0 alone, which all follow after the same round.
        group[0].say({"stop": {"reason": "the test", "suspend": True}})
        for worker in group:
            self.assertTrue(worker.await_kind("finished")["suspended"])
        return str(group[0].output / "checkpoint.safetensors")

    def test_a_checkpoint_of_any_cut_is_read_by_any_other(self):
        for written, copies in (("SHARD_NONE", 1), ("SHARD_MEMORY", 1), ("SHARD_EQUAL", 2)):
            self.cut(written, copies)
            checkpoint = self.suspended(3)
            self.cut()
            expected = self.trained(2, checkpoint=checkpoint)
            for read in ("SHARD_EQUAL", "SHARD_MEMORY"):
                with self.subTest(written=written, read=read):
                    self.cut(read)
                    self.assertEqual(self.trained(2, checkpoint=checkpoint), expected)


if __name__ == "__main__":
    unittest.main()
