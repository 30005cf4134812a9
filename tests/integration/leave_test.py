"""Agents that say goodbye: what runs on their node goes on without it, or is suspended and goes on elsewhere."""
import json
import os
import re
import signal
import unittest

from cluster import tiny_spec, wait_until
from one_coordinator import OneCoordinator


class LeaveTest(OneCoordinator):
    def log(self, name):
        return (self.folder.path / f"{name}.log").read_text()

    def states(self):
        """What the coordinator said of the job's states, as (state, rounds, reason)."""
        return re.findall(r"job state changed job=\S+ job_number=\d+ state=(\S+) workers=\d+ rounds=(\d+) reason=\"?(.*?)\"?$",
                          self.log("coordinator"), re.MULTILINE)

    def start_job(self, drain_deadline, options=(), least=1, **more):
        """A job on two nodes of one device each that could do with so many; returns its id when it trains."""
        for node in ("a", "b"):
            self.cluster.start_agent(node, 1, drain_deadline=drain_deadline, options=options if node == "a" else ())
        wait_until(lambda: len(self.cluster.tactus("get", "nodes", "-o", "name")[1].split()) == 2, 20, "both joined")
        job = self.cluster.submit({**tiny_spec(self.corpus, time="10m"), "workers": {"min": least, "max": 2}, **more})
        wait_until(lambda: self.rounds(job) >= 20, 60, "it trains")
        self.assertEqual(self.cluster.job(job)["attempts"][-1]["nodes"], ["a", "b"])
        return job

    def goes_on_on(self, nodes, job, beyond):
        """The job when it has trained beyond so many rounds there."""
        wait_until(lambda: self.cluster.state(job) == "RUNNING" and self.rounds(job) > beyond
                   and self.cluster.job(job)["attempts"][-1]["nodes"] == nodes, 60, f"it goes on on {nodes} alone")
        return self.cluster.job(job)

    def check_each_round_is_told_once(self, job):
        self.cluster.tactus("cancel", job, "--discard")
        listed = json.loads(self.cluster.tactus("get", "rounds", job, "-o", "json")[1])
        listed = listed.get("rounds", listed)
        self.assertEqual([int(one.get("round", 0)) for one in listed], list(range(len(listed))))

    def check_the_other_trains_on(self, job, leaving, staying, reason):
        """A signal to the agent, or what else is the reason, was given."""
        self.assertEqual(self.cluster.processes[leaving].wait(60), 0)
        self.assertIn("agent left in time", self.log(leaving))
        on = self.goes_on_on([staying], job, self.rounds(job) + 20)
        self.assertEqual(len(on["attempts"]), 1)
        self.assertEqual(int(on["resizes"]), 1)
        self.assertEqual(on["resize_reason"],
                         f"from 2 to 1 worker without a stop: node {leaving} is leaving: {reason}")
        self.assertEqual(int(on.get("regroups", 0)), 0)
        self.assertNotIn("suspending", [state for state, _, _ in self.states()])
        self.check_each_round_is_told_once(job)
        self.cluster.kill(staying)  # it would wait for a coordinator that ends beside it

    def test_the_others_train_on_and_nothing_is_lost(self):
        job = self.start_job("1m")
        staying = self.cluster.workers("b")

        self.cluster.signal("a", signal.SIGTERM)  # where the first worker is

        wait_until(lambda: not self.cluster.workers("a"), 60, "it is left")
        self.assertEqual(self.cluster.workers("b"), staying)
        self.check_the_other_trains_on(job, "a", "b", "SIGTERM")

    def test_nor_is_it_when_another_worker_leaves(self):
        job = self.start_job("1m")

        self.cluster.signal("b", signal.SIGUSR1)

        self.check_the_other_trains_on(job, "b", "a", "SIGUSR1")

    def test_nor_is_it_when_the_machine_is_about_to_be_taken_away(self):
        notice = self.folder.path / "notice"
        command = f"until test -e {notice}; do sleep 0.1; done; echo it comes; echo 60s"
        # The command's time counts: without it there would be none.
        job = self.start_job("0", options=("--preemption-command", command))

        notice.touch()

        self.check_the_other_trains_on(job, "a", "b", "preemption notice")

    def test_a_job_that_cannot_do_with_less_is_suspended_in_time(self):
        job = self.start_job("1m", least=2)
        self.cluster.start_agent("c", 1)

        self.cluster.signal("a", signal.SIGTERM)  # where the worker is that writes the checkpoint

        self.assertEqual(self.cluster.processes["a"].wait(60), 0)
        self.assertIn("agent left in time", self.log("a"))
        suspended = [int(rounds) for state, rounds, why in self.states()
                     if state == "queued" and why == "node a is leaving: SIGTERM"]
        self.assertEqual(len(suspended), 1, self.states())
        self.assertGreaterEqual(suspended[0], 20)
        on = self.goes_on_on(["b", "c"], job, suspended[0])
        self.assertEqual(len(on["attempts"]), 1)
        self.assertEqual(int(on["checkpoint_rounds"]), suspended[0])
        self.check_each_round_is_told_once(job)

    def test_while_the_coordinator_is_away_it_is_suspended(self):
        job = self.start_job("1m")
        listen = self.cluster.address
        self.cluster.kill("coordinator")

        self.cluster.signal("a", signal.SIGTERM)
        wait_until(lambda: not self.cluster.workers("a"), 60, "it is suspended")
        self.cluster.start_coordinator(listen=listen)

        self.assertEqual(self.cluster.processes["a"].wait(60), 0)
        on = self.goes_on_on(["b"], job, 20)
        self.assertGreaterEqual(int(on["checkpoint_rounds"]), 20)
        self.assertEqual(len(on["attempts"]), 1)

    def test_sigterm_to_a_worker_suspends_its_job(self):
        job = self.start_job("0")

        os.kill(self.cluster.workers("b")[0], signal.SIGTERM)

        wait_until(lambda: any(state == "queued" and int(rounds) >= 20 for state, rounds, _ in self.states()), 60,
                   "it is suspended")
        kept = int(self.cluster.job(job)["checkpoint_rounds"])
        wait_until(lambda: self.cluster.state(job) == "RUNNING" and self.rounds(job) > kept, 60, "it goes on")
        self.assertEqual(len(self.cluster.job(job)["attempts"]), 1)

    def test_without_the_time_those_who_stay_go_on(self):
        job = self.start_job("1s", checkpoints={"every": "1s"}, retries=0)
        wait_until(lambda: int(self.cluster.job(job).get("checkpoint_rounds", 0)) > 0, 60, "a checkpoint is kept")
        standing = self.cluster.workers("b")[0]
        os.kill(standing, signal.SIGSTOP)  # so that no round ends

        self.cluster.signal("a", signal.SIGTERM)

        self.assertEqual(self.cluster.processes["a"].wait(60), 0)
        os.kill(standing, signal.SIGCONT)
        self.assertIn("agent left too early", self.log("a"))
        kept = int(self.cluster.job(job)["checkpoint_rounds"])
        on = self.goes_on_on(["b"], job, kept)
        self.assertEqual(len(on["attempts"]), 1)
        self.assertEqual(int(on["regroups"]), 1)
        self.cluster.kill("b")


if __name__ == "__main__":
    unittest.main()
