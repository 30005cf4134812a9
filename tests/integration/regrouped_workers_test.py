"""Worker processes over TCP under a scripted agent and coordinator: who is killed is missed at once, the others go on
in the next group, in their processes, with what they had.
"""
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
import unittest

from cluster import BIN, Folder, processes_of

SPEC = {
    "name": "test", "seed": "1",
    "model": {"builtin": "bytes-lm", "loss": "cross_entropy", "precision": "PRECISION_FLOAT32",
              "options": {"width": 16, "heads": 2, "layers": 1, "context": 16}},
    "data": {"validationFraction": 0.1, "validationSamplesMax": "10000", "context": 64},
    "optimizer": {"sgd": {"learningRate": 0.05, "momentum": 0.9, "weightDecay": 0, "nesterov": False}},
    "adapt": {"batch": {"perWorker": 32, "microBatch": 64},
              "learningRate": {"baseBatch": 32, "schedule": {"warmupSteps": 0}}},
    "stop": {"epochs": 3},
}
BATCHES = [8, 6, 4]
WITHIN = 180  # [s]: a guard against what hangs, where others compute besides


class Worker:
    """A process and the line to it."""

    def __init__(self, folder, name, spec, **start):
        self.name = name
        self.output = folder / name
        self.output.mkdir()
        path = folder / f"{name}.socket"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(1)
        with open(folder / f"{name}.log", "w") as log:
            self.process = subprocess.Popen([BIN / "tactus-worker", "--socket", path], stderr=log)
        self.line = listener.accept()[0]
        listener.close()
        self.messages = queue.Queue()
        self.reports = []
        self.validated = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.say({"start": {"jobId": "test", "spec": spec, "device": "cpu:0", "address": "127.0.0.1",
                            "outputDirectory": str(self.output), **start}})

    def _read(self):
        for line in self.line.makefile("r"):
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def say(self, message):
        self.line.sendall((json.dumps(message) + "\n").encode())

    def await_kind(self, kind):
        """Its next message of a kind; others, but for reports, are passed over."""
        deadline = time.monotonic() + WITHIN
        while True:
            message = self.messages.get(timeout=max(0.1, deadline - time.monotonic()))
            if message is None:
                raise AssertionError(f"{self.name} ended before it said {kind}")
            if "report" in message:
                self.reports.append(message["report"])
            if "validated" in message:
                self.validated.append(message["validated"])
            if "failed" in message and kind != "failed":
                raise AssertionError(f"{self.name} failed: {message['failed']}")
            if kind in message:
                return message[kind]

    def await_round(self, number):
        while int(self.await_kind("report").get("round", 0)) < number:
            pass

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class ScriptedGroups(unittest.TestCase):
    """Groups of real workers, whose coordinator is the test."""

    def setUp(self):
        self.folder = Folder()
        self.spec = json.loads(json.dumps(SPEC))
        self.spec["data"]["text"] = str(self.folder.corpus(40000))
        self.workers = []

    def tearDown(self):
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()
            worker.reader.join()
            worker.line.close()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def start(self, count, *own, **start):
        """own: of each worker, what of its start is its own."""
        begun = [Worker(self.folder.path, f"w{len(self.workers) + i}", self.spec, **start, **(own[i] if own else {}))
                 for i in range(count)]
        self.workers += begun
        for worker in begun:
            ready = worker.await_kind("ready")
        self.train_samples = int(ready["trainSamples"])
        return list(begun)

    def mesh(self, generation, rank):
        """What the member is told of who the others are: nothing, as by a coordinator of before."""
        return {}

    def tell_group(self, group, generation, rounds=(), **plan):
        for rank, worker in enumerate(group):
            worker.say({"group": {
                "generation": str(generation), "rank": rank, "size": len(group),
                "rounds": [str(each) for each in rounds],
                "plan": {"version": str(generation), "batchSizes": BATCHES[:len(group)],
                         "synchronization": "every_step", "reason": "the test"} | plan,
                **self.mesh(generation, rank)}})

    @staticmethod
    def introduce(group, generation):
        endpoints = []
        for worker in group:
            said = worker.await_kind("endpoint")
            while int(said["generation"]) < generation:
                said = worker.await_kind("endpoint")
            endpoints.append(said["endpoint"])
        for worker in group:
            worker.say({"peers": {"generation": str(generation), "endpoints": endpoints}})

    def form(self, group, generation, rounds=(), **plan):
        self.tell_group(group, generation, rounds, **plan)
        self.introduce(group, generation)

    def await_loss(self, group, generation):
        """The rounds that each has applied."""
        rounds = []
        for worker in group:
            lost = worker.await_kind("group_lost")
            self.assertEqual(int(lost["generation"]), generation)
            rounds.append(int(lost.get("rounds", 0)))
        self.assertLessEqual(max(rounds) - min(rounds), 1)
        return rounds

    def check_end(self, group, epochs=3):
        said = [worker.await_kind("finished") for worker in group]
        for each in said:
            self.assertEqual(each["reason"], f"{epochs} epochs completed")
            self.assertEqual(each["parametersHash"], said[0]["parametersHash"])
            self.assertEqual(int(each["samplesGlobal"]), epochs * self.train_samples)
        for worker in group:
            self.assertEqual(worker.process.wait(WITHIN), 0)
        self.assertTrue((group[0].output / "model.safetensors").exists())
        numbers = [int(report.get("round", 0)) for report in group[0].reports]
        self.assertEqual(numbers, sorted(set(numbers)), "each round was applied once")

    def lose_one(self, victim, **plan):
        group = self.start(3)
        self.form(group, 1, **plan)
        group[0].await_round(20)
        dead = group.pop(victim)
        dead.kill()
        killed = time.monotonic()
        rounds = self.await_loss(group, 1)
        self.assertLess(time.monotonic() - killed, 5)
        self.form(group, 2, rounds, **plan)
        self.check_end(group)


class RegroupedWorkersTest(ScriptedGroups):
    def test_the_others_go_on_without_the_last(self):
        self.lose_one(2)

    def test_the_second_goes_on_as_the_first(self):
        self.lose_one(0)
        self.assertTrue(list((self.workers[1].output / "tensorboard").iterdir()))

    def test_the_best_that_went_with_the_first_is_forgotten(self):
        self.spec["result"] = "RESULT_CHOICE_BEST"
        self.spec["validation"] = {"policy": "VALIDATION_POLICY_AUTO", "rounds": "3"}
        self.spec["data"]["validationSamplesMax"] = "50"
        self.lose_one(0)
        validated = self.workers[1].validated
        self.assertGreater(len(validated), 2)
        for each in validated:
            self.assertGreaterEqual(int(each["bestRounds"]), 20, "those before were with the first alone")

    def test_windows_of_local_steps_go_on(self):
        self.lose_one(1, synchronization="periodic", period=4)

    def test_delayed_rounds_go_on(self):
        self.lose_one(1, synchronization="delayed", period=4)

    def test_all_but_one_can_be_lost_one_after_the_other(self):
        group = self.start(3)
        self.form(group, 1)
        rounds = ()
        for generation, after in ((1, 10), (2, 30)):
            group[0].await_round(after)
            group.pop().kill()
            rounds = self.await_loss(group, generation)
            self.form(group, generation + 1, rounds)
        self.check_end(group)

    def test_who_waits_for_one_that_died_on_the_way_meets_the_next_group(self):
        group = self.start(3)
        self.tell_group(group, 1)
        endpoints = [worker.await_kind("endpoint")["endpoint"] for worker in group]
        group.pop().kill()
        for worker in group:
            worker.say({"peers": {"generation": "1", "endpoints": endpoints}})
        began = time.monotonic()
        self.form(group, 2, [0, 0])
        for worker in group:
            worker.await_round(1)
        self.assertLess(time.monotonic() - began, 10, "they did not wait until connecting timed out")
        self.check_end(group)

    def test_one_that_is_stopped_without_a_group_ends_where_nothing_is_to_be_kept(self):
        group = self.start(2)
        self.form(group, 1)
        group[0].await_round(5)
        group[1].kill()
        self.await_loss(group[:1], 1)
        group[0].say({"stop": {"reason": "enough", "suspend": True}})  # of the group that is no more
        with self.assertRaises(subprocess.TimeoutExpired):
            group[0].process.wait(1)
        group[0].say({"stop": {"reason": "enough", "discard": True}})
        self.assertEqual(group[0].process.wait(WITHIN), 0)

    def test_one_group_after_the_other_of_the_same_members_trains_as_one(self):
        """A loss costs a round in flight, and nothing of what comes out."""
        hashes = []
        for overtakes in (False, True):
            group = self.start(2)
            self.form(group, 1)
            if overtakes:
                group[0].await_round(10)
                self.tell_group(group, 2, [0, 0])  # at different rounds, so that they lose one another
                rounds = self.await_loss(group, 1)
                self.tell_group(group, 3, rounds)
                self.await_loss(group, 2)
                self.introduce(group, 3)
            hashes.append([worker.await_kind("finished")["parametersHash"] for worker in group])
            for worker in group:
                self.assertEqual(worker.process.wait(WITHIN), 0)
            os.rename(group[0].output, self.folder.path / f"first{overtakes}")
            os.rename(group[1].output, self.folder.path / f"second{overtakes}")
            self.assertEqual(len(set(hashes[-1])), 1)
            for worker in group:
                os.remove(self.folder.path / f"{worker.name}.socket")
                worker.reader.join()
                worker.line.close()
            self.workers = []
        self.assertEqual(hashes[0], hashes[1])


if __name__ == "__main__":
    unittest.main()
