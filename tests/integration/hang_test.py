"""A worker that stands still is known and named while its job waits, and the job goes on with it.

TACTUS_HANGS: how often one is stopped (2); TACTUS_HANG_FOR_GOOD=1: also once for ever, which takes minutes.
"""
import os
import random
import signal
import statistics
import time
import unittest

from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until

WORKERS = 3


class HangTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.cluster = Cluster(self.folder.path)
        self.cluster.start_coordinator()
        for node in ("a", "b"):
            self.cluster.start_agent(node, 2)
        self.stopped = None

    def tearDown(self):
        if self.stopped:
            os.kill(self.stopped, signal.SIGCONT)
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def start_job(self):
        spec = {**tiny_spec(self.folder.corpus(), time="30m"), "workers": {"min": WORKERS, "max": WORKERS}}
        job = self.cluster.submit(spec)
        wait_until(lambda: self.rounds(job) >= 20, 60, "it trains")
        return job

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def reason(self, job):
        return self.cluster.job(job)["state_reason"]

    def name_of(self, job, pid):
        """As the coordinator calls it: its agent started it with a socket that is named by its id."""
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            number = file.read().split(b"\0")[2].decode().rsplit("/", 1)[-1].removesuffix(".sock")
        worker = next(one for one in self.cluster.job(job)["progress"]["workers"] if one["worker_id"] == number)
        return f"worker {number} on node {worker['node']}"

    def stop_one(self, job, dice):
        pid = dice.choice(sorted(self.cluster.workers()))
        words = f"{self.name_of(job, pid)} stands still: its process is stopped"
        self.stopped = pid
        begin = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: words in self.reason(job), 60, words)
        return pid, time.monotonic() - begin

    def test_who_is_stopped_is_named_and_goes_on(self):
        job = self.start_job()
        dice = random.Random(1)
        seconds = []
        for _ in range(int(os.environ.get("TACTUS_HANGS", "2"))):
            time.sleep(dice.random())  # any moment of a round
            workers = sorted(self.cluster.workers())
            pid, known = self.stop_one(job, dice)
            seconds.append(known)
            before = self.rounds(job)
            os.kill(pid, signal.SIGCONT)
            self.stopped = None
            wait_until(lambda: self.rounds(job) > before, 60, "it goes on")
            wait_until(lambda: self.reason(job) == f"training on {WORKERS} workers", 60, "nothing is said of it")
            self.assertEqual(sorted(self.cluster.workers()), workers, "the same processes train on")
        print(f"{len(seconds)} stopped: known and named after {statistics.median(seconds):.1f} s (median), "
              f"{max(seconds):.1f} s (longest)")
        described = self.cluster.job(job)
        self.assertEqual(described["state"], "JOB_STATE_RUNNING")
        self.assertEqual(len(described["attempts"]), 1)

    def test_the_deadlines_are_told(self):
        job = self.start_job()
        lines = self.cluster.tactus("describe", "job", job, "--deadlines")[1].splitlines()
        names = [line.split()[0] for line in lines[1:]]
        self.assertEqual(names, ["look", "regroup", "unheard", "silence", "still", "start", "stall", "hold"])
        self.assertRegex(lines[1], r"look +2.0s +4 x 0\.\d+ s, at least 2.0s, at most 1m 00s +no newer round")
        self.cluster.tactus("cancel", job, "--discard")
        self.cluster.wait(job, ["CANCELLED"])
        over = self.cluster.tactus("describe", "job", job, "--deadlines")[1]
        self.assertEqual(over, "the job is over: it waits for nothing\n")

    @unittest.skipUnless(os.environ.get("TACTUS_HANG_FOR_GOOD"), "takes minutes")
    def test_who_is_stopped_for_good_is_ended_and_the_job_goes_on(self):
        job = self.start_job()
        pid, _ = self.stop_one(job, random.Random(2))

        wait_until(lambda: len(self.cluster.job(job)["attempts"]) == 2, 300, "its group is lost")
        before = self.rounds(job)
        wait_until(lambda: self.rounds(job) > before, 60, "the next one trains")

        self.stopped = None
        self.assertNotIn(pid, self.cluster.workers())
        self.assertIn("stands still: its process is stopped", self.cluster.job(job)["attempts"][0]["reason"])


if __name__ == "__main__":
    unittest.main()
