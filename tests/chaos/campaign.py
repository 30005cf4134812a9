"""Trains jobs on hosts of the program's own while processes are killed and stopped, links cut, disks filled and memory
taken, at random moments, several at once; holds jobs and cluster to what was promised (promises.py), and prints a table.

Exit codes: 0 all promises were kept, 1 not, 77 there can be no namespaces here, 130 interrupted.
"""
import argparse
import collections
import os
import pathlib
import random
import sys
import time

import room
from faults import KINDS, KillWorker, NoTarget, kinds_here
from hosts import Hosts
from promises import Band, check_cluster, check_end, check_job, loss_of

from cluster import Folder, tiny_spec, wait_until  # in the path since hosts was imported

LOOK_SECONDS = 0.5
REGROUP_SECONDS = 60  # that a group of those who live may take, of a machine that does other things too
END_SECONDS = 1800  # that jobs may take when nothing goes wrong any more; a cut link alone may cost 15 minutes
EARLY = 0.03  # chance, at each look, of a fault while no job trains
OVER = ("SUCCEEDED", "FAILED", "CANCELLED")

# Ways of running rounds.
PLANS = {
    "every step": {"policy": "none", "batch": {"per_worker": 8}},
    "periodic": {"policy": "none", "batch": {"per_worker": 8}, "synchronization": {"policy": "periodic", "period": 8}},
    "delayed": {"policy": "none", "batch": {"per_worker": 8}, "synchronization": {"policy": "delayed"}},
    "adapting": {"batch": {"per_worker": 8}},
}
PROGRAM = "program"  # of the user's, whose batches are its own to say
PROGRAM_SOURCE = pathlib.Path(__file__).resolve().with_name("train.py")
KINDS_OF_JOBS = [*PLANS, PROGRAM]
BYTES_OF_SAMPLE = 16  # of the corpus


def counts(text):
    """{kind of fault: how many}."""
    pairs = [one.rsplit(":", 1) for one in text.split(",")]
    known = [kind.kind for kind in KINDS]
    for pair in pairs:
        if len(pair) != 2 or pair[0] not in known or not pair[1].isdigit():
            raise argparse.ArgumentTypeError(f"found {':'.join(pair)!r}, allowed is KIND:N with a kind of {', '.join(known)}")
    return {kind: int(number) for kind, number in pairs}


def parse(words=None):
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=100, help="how many (100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones, whom they meet, and when (1)")
    parser.add_argument("--nodes", type=int, default=3, help="agents, a host each (3)")
    parser.add_argument("--devices", type=int, default=2, help="workers of an agent (2)")
    parser.add_argument("--jobs", type=int, default=2, help="at a time (2)")
    parser.add_argument("--epochs", type=int, default=2, help="that a job trains (2)")
    parser.add_argument("--corpus", type=int, default=600_000, help="bytes that it trains on (600000)")
    parser.add_argument("--plans", default=",".join(KINDS_OF_JOBS), help=f"of jobs, by turns ({','.join(KINDS_OF_JOBS)})")
    parser.add_argument("--runs", type=int, default=6, help="without a fault, of each plan (6); 0: losses are not compared")
    parser.add_argument("--counts", type=counts, metavar="KIND:N,...",
                        help="so many of each kind, mixed, in place of --faults by turns, as in \"worker killed:50,link cut:20\"")
    parser.add_argument("--only", default="", help="kinds of faults with this word in their names")
    parser.add_argument("--at-once", type=int, default=3, help="faults at a time, at most (3)")
    parser.add_argument("--every", type=float, default=3, help="seconds between two faults, on average (3)")
    parser.add_argument("--longest", type=float, default=20, help="seconds that a fault lasts, at most (20)")
    parser.add_argument("--keep", action="store_true", help="keep logs and state folders")
    return parser.parse_args(words)


class Campaign:
    def __init__(self, hosts, arguments, folder):
        self.hosts, self.arguments = hosts, arguments
        self.dice = random.Random(arguments.seed)
        kinds = [kind for kind in kinds_here(hosts) if arguments.only in kind.kind]
        # One turn of them: each once, or as often as was asked for.
        self.kinds = [kind for kind in kinds for _ in range(arguments.counts.get(kind.kind, 0) if arguments.counts else 1)]
        self.faults = len(self.kinds) if arguments.counts else arguments.faults
        self.plans = arguments.plans.split(",")
        self.corpus = folder / "corpus.txt"
        self.bands, self.samples_of_epoch = {}, {}
        self.running = {}  # job -> plan
        self.seen = {}  # job -> (rounds, when they were that)
        self.active, self.past = [], []  # (fault, begin, end)
        self.gaps = collections.defaultdict(list)
        self.totals = collections.Counter()
        self.broken = []
        self.turn, self.kills = [], 0  # kinds to come; workers killed

    def say(self, text):
        print(f"{time.monotonic() - self.begun:7.1f} {text}", flush=True)

    def submit(self, plan, least, most, seed):
        if plan == PROGRAM:
            words = [sys.executable, "-B", PROGRAM_SOURCE.name, str(self.arguments.corpus // BYTES_OF_SAMPLE), str(seed)]
            spec = {"program": {"command": words, "directory": str(PROGRAM_SOURCE.parent)},
                    "stop": {"epochs": self.arguments.epochs}, "adapt": {"policy": "none"}}
        else:
            spec = {**tiny_spec(self.corpus, epochs=self.arguments.epochs), "adapt": PLANS[plan], "seed": seed,
                    "optimizer": {"sgd": {"learning_rate": 0.05, "momentum": 0.5}, "clip_norm": 1}}  # good for delayed rounds, too
        job = self.hosts.submit({**spec, "name": plan.replace(" ", "-"), "workers": {"min": least, "max": most},
                                 "checkpoints": {"every": "2s"}, "retries": 100})
        self.running[job] = plan
        return job

    def ended(self, job):
        """The job, which is over: held to its promises."""
        plan = self.running.pop(job["name"].rsplit("/", 1)[-1])
        self.totals["jobs"] += 1
        if job["state"] != "JOB_STATE_SUCCEEDED":
            self.broken.append(f"{job['name']}: {job['state']}: {job['state_reason']}")
            return plan
        self.totals["regroups"] += int(job.get("regroups", 0))
        self.totals["attempts lost"] += len(job["attempts"]) - 1
        self.totals["rounds"] += int(job["result"]["rounds"])
        of_epoch = self.samples_of_epoch.setdefault(plan == PROGRAM, int(job["result"]["samples"]) // self.arguments.epochs)
        self.broken += check_job(self.hosts, job, of_epoch)
        return plan

    def look(self):
        """Jobs as they are, by name; those that are over have been checked. None: nobody answers."""
        answer = self.hosts.ask("get", "jobs")
        if answer is None:
            return None
        now, jobs = time.monotonic(), {}
        for job in answer.get("jobs", []):
            name = job["name"].rsplit("/", 1)[-1]
            if name not in self.running:
                continue
            jobs[name] = job
            rounds = int(job.get("progress", {}).get("rounds", 0))
            before, since = self.seen.get(name, (0, now))
            if rounds != before:
                for fault, begin, end in self.active + self.past:
                    if begin <= now and end >= since:
                        self.gaps[fault.kind].append(now - since)
            if rounds != before or name not in self.seen:
                self.seen[name] = (rounds, now)
        return jobs

    def is_over(self, job):
        return job["state"].removeprefix("JOB_STATE_") in OVER

    def measure(self):
        """Runs without a fault, of all sizes of groups: what their losses are."""
        losses = collections.defaultdict(list)
        size = self.hosts.devices * len(self.hosts.nodes) // self.arguments.jobs
        runs = self.arguments.runs
        waiting = [(plan, 1 + i * (size - 1) // max(1, runs - 1), i + 1) for i in range(runs) for plan in self.plans]
        while waiting or self.running:
            while waiting and len(self.running) < self.arguments.jobs:
                plan, workers, seed = waiting.pop()
                self.submit(plan, workers, workers, seed)
            for job in (self.look() or {}).values():
                if self.is_over(job):
                    plan = self.ended(job)
                    losses[plan].append(loss_of(job))
                    self.say(f"without a fault, {plan}: {job['result']['rounds']} rounds, loss {loss_of(job):.4f}")
            time.sleep(LOOK_SECONDS)
        self.bands = {plan: Band(found) for plan, found in losses.items()}
        self.totals.clear()

    def end_faults(self, now):
        for one in [one for one in self.active if one[2] <= now]:
            one[0].end()
            self.active.remove(one)
            self.past.append(one)

    def begin_fault(self):
        """A kind by turns, in an order of chance; none where there is nobody to meet it. Every second kill of a worker waits
        until nothing else goes wrong."""
        if not self.turn:
            self.turn = self.dice.sample(self.kinds, len(self.kinds))
        kind = self.turn[-1]
        if kind is KillWorker and self.active and self.kills % 2 == 0:
            return
        try:
            fault = kind(self.hosts, self.dice, self.arguments.longest)
        except NoTarget:
            fault = None
        if fault is None or any(fault.on & other.on for other, _, _ in self.active):
            self.turn.insert(0, self.turn.pop())  # later
            return
        self.turn.pop()
        self.totals["faults"] += 1
        self.kills += kind is KillWorker
        now = time.monotonic()
        alone = not self.active
        self.active.append((fault, now, now + fault.seconds))
        self.say(f"{fault.kind}: {', '.join(sorted(fault.on)) or fault.pid}" +
                 (f", for {fault.seconds:.1f} s" if fault.seconds else ""))
        if alone and kind is KillWorker:
            self.kill_one(fault)
        else:
            fault.begin()

    def is_ripe(self, jobs):
        """Most faults are to meet jobs that train; some meet them while they start."""
        trains = any(job["state"] == "JOB_STATE_RUNNING" for job in (jobs or {}).values())
        return trains or self.dice.random() < EARLY

    def kill_one(self, fault):
        """While nothing else goes wrong: where a group of those who live is formed, they are the same processes."""
        jobs = self.look() or {}
        of = next((name for name in jobs if fault.pid in self.hosts.workers_of(name)), None)
        fault.begin()
        if of is None:
            return
        before, job = self.hosts.workers_of(of), jobs[of]
        limit = time.monotonic() + REGROUP_SECONDS
        while time.monotonic() < limit:
            now = (self.look() or {}).get(of)
            if now is None or now["state"] != "JOB_STATE_RUNNING" or len(now["attempts"]) != len(job["attempts"]):
                return
            if int(now.get("regroups", 0)) > int(job.get("regroups", 0)):
                after = self.hosts.workers_of(of)
                self.totals["kills whose survivors were looked at"] += 1
                if set(before) - {fault.pid} != set(after):
                    self.broken.append(f"{of}: workers {sorted(before)} without {fault.pid} became {sorted(after)}")
                return

    def disturb(self):
        """Jobs one after the other, until all faults were made and all jobs are over."""
        turns, next_fault, limit = 0, time.monotonic(), None
        size = self.hosts.devices * len(self.hosts.nodes) // self.arguments.jobs
        while True:
            now = time.monotonic()
            self.end_faults(now)
            for name in self.hosts.revive():
                self.say(f"{name} ended by itself, and is started again")
            jobs = self.look()
            for job in (jobs or {}).values():
                if self.is_over(job):
                    self.finish_job(job)
            more = self.totals["faults"] < self.faults
            if more and jobs is not None and len(self.running) < self.arguments.jobs:
                try:
                    self.submit(self.plans[turns % len(self.plans)], 1, size, turns + 1)
                    turns += 1
                except AssertionError as refused:
                    self.say(f"refused: {str(refused).strip().splitlines()[-1]}")
            if more and now >= next_fault and len(self.active) < self.arguments.at_once and self.is_ripe(jobs):
                self.begin_fault()
                next_fault = time.monotonic() + self.dice.expovariate(1 / self.arguments.every)
            if not more and not self.active:
                limit = limit or now + END_SECONDS
                if not self.running:
                    return
                if now > limit:
                    self.broken += [f"{name}: not over: {job['state_reason']}" for name, job in (jobs or {}).items()]
                    return
            time.sleep(LOOK_SECONDS / 2)

    def finish_job(self, job):
        plan = self.ended(job)
        if job["state"] != "JOB_STATE_SUCCEEDED":
            self.say(f"{job['name']}: {job['state']}: {job['state_reason']}")
            return
        loss = loss_of(job)
        self.say(f"{job['name'].rsplit('/', 1)[-1]}: {job['result']['rounds']} rounds, {job.get('regroups', 0)} regroups, "
                 f"{len(job['attempts'])} attempts, loss {loss:.4f}")
        if plan in self.bands and loss not in self.bands[plan]:
            self.broken.append(f"{job['name']}: loss {loss:.4f}, without faults {self.bands[plan]}")

    def run(self):
        """True: all promises were kept."""
        self.begun = time.monotonic()
        self.hosts.start_all()
        try:
            self.measure()
            self.disturb()
            while self.active:
                self.end_faults(float("inf"))
            try:
                wait_until(lambda: self.hosts.ready_nodes() == self.hosts.nodes and not self.hosts.workers(), 120, "calm")
            except AssertionError:
                pass  # check_cluster says what is not
            self.broken += check_cluster(self.hosts)
        finally:
            self.hosts.stop()
            if self.arguments.keep:
                self.hosts.keep()
        self.broken += check_end(self.hosts)
        self.report()
        return not self.broken

    def report(self):
        counts = collections.Counter(fault.kind for fault, _, _ in self.past)
        row = "| {:<20} | {:>5} | {:>25} |".format
        print(row("fault", "times", "longest without a round, s"))
        print(row("-" * 20, "-" * 5, "-" * 25))
        for kind in sorted(counts):
            gaps = self.gaps.get(kind)
            print(row(kind, counts[kind], f"{max(gaps):.1f}" if gaps else "-"))
        print("; ".join(f"{number} {what}" for what, number in self.totals.items()))
        for plan, band in self.bands.items():
            print(f"loss without faults, {plan}: {band}")
        for name, code in self.hosts.ended:
            print(f"{name} ended by itself: {code}")
        print(f"seed {self.arguments.seed}: " + ("all promises were kept" if not self.broken else "PROMISES BROKEN"))
        for line in self.broken:
            print(f"  {line}")


def main():
    arguments = parse()
    folder = room.enter(keep=arguments.keep)
    Folder(folder).corpus(arguments.corpus)
    os.environ["PYTHONPATH"] = str(PROGRAM_SOURCE.parents[2] / "python")
    os.environ["OMP_NUM_THREADS"] = "1"
    hosts = Hosts(folder, arguments.nodes, arguments.devices)
    sys.exit(0 if Campaign(hosts, arguments, folder).run() else 1)


if __name__ == "__main__":
    main()
