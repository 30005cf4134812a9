"""What has to hold of every job, whatever went wrong while it trained, and of the cluster afterwards: each function returns
lines, one for each promise that was broken."""
import re
import statistics
import subprocess

from hosts import BIN, COORDINATOR

ROUNDS_MAX = 1_000_000
DEADLY = re.compile(r"signal (4|6|7|8|11)\b|terminate called|CHECK failed|Sanitizer")


class Band:
    """The losses of runs without a fault, widened on both sides by their spread.

    A run with faults has had groups of one size after the other, and a group's size is its batch: so the runs without have
    all sizes from one worker to all, with a seed each, and what they spread over is what sizes and seeds do. A run with
    faults is a mixture of them. That it is one more draw, and not among the n that made the band, is what the margin is for:
    of draws from one normal distribution one lies beyond the extremes of six others by more than their whole spread in 16 of
    a thousand cases (by 200,000 of them). Few runs may lie close together by chance: the margin is a tenth of their mean at least. What is
    looked for is parameters that were lost or mixed up: ones that were never trained lose fifteen times as much.
    """

    def __init__(self, losses):
        margin = max(max(losses) - min(losses), statistics.mean(losses) / 10)
        self.low, self.high = min(losses) - margin, max(losses) + margin

    def __contains__(self, loss):
        return self.low <= loss <= self.high

    def __str__(self):
        return f"{self.low:.4f} to {self.high:.4f}"


def loss_of(job):
    """Of a program, whose validation is its own, that of its last steps."""
    result = job["result"]
    validated = int(result.get("validation", {}).get("samples", 0)) > 0
    return result["validation"]["loss"] if validated else result["train_loss"]


def rounds_of(hosts, job):
    """All that are on record, and the groups that applied them: a day after a job's end they are thinned."""
    answer = hosts.ask("get", "rounds", job, "--limit", ROUNDS_MAX)
    if answer is None:
        raise AssertionError(f"{job}: its rounds cannot be read")
    return answer.get("rounds", []), answer.get("groups", [])


def gaps_of(numbers, count):
    """[first, last] of the rounds below `count` that are missing."""
    gaps, due = [], 0
    for number in [*numbers, count]:
        if number > due:
            gaps.append([due, number - 1])
        due = max(due, number + 1)
    return gaps


def check_order(job, numbers, groups, restarts):
    """Each round once and in order. Missing may be what a former group's members applied last and not all could tell of any
    more, before the first round of the next group, and what a coordinator that was killed had heard of from some and not from
    all."""
    broken, rounds = [], int(job["result"]["rounds"])
    if sorted(set(numbers)) != numbers or numbers and numbers[-1] >= rounds:
        broken.append(f"rounds on record are not in order, or one is there twice, or beyond the {rounds} that were applied")
    firsts = {int(group.get("first_round", 0)) for group in groups}
    others = [gap for gap in gaps_of(numbers, rounds) if not any(gap[0] <= first <= gap[1] + 1 for first in firsts)]
    if len(others) > restarts:
        broken.append(f"rounds {others} of {rounds} are not on record; the coordinator was restarted {restarts} times")
    missing = rounds - len(set(numbers))
    # Of an attempt before, a round that was not on record may have been done anew and be there now.
    if len(job["attempts"]) == 1 and int(job["progress"].get("unrecorded_rounds", 0)) > missing:
        broken.append(f"{job['progress']['unrecorded_rounds']} rounds are said not to be on record; {missing} are not")
    return broken


def check_samples(job, rounds, samples_of_epoch):
    """Each sample once an epoch, by what rounds and result count."""
    broken, result = [], job["result"]
    epochs = job["spec"]["stop"]["epochs"]
    if int(result["samples"]) != epochs * samples_of_epoch or int(result["epochs"]) != epochs:
        broken.append(f"{result['samples']} samples, {result['epochs']} epochs; asked for were {epochs} of {samples_of_epoch}")
    recorded = sum(int(one["samples"]) for one in rounds)
    whole = len(rounds) == int(result["rounds"])
    if recorded > int(result["samples"]) or whole and recorded != int(result["samples"]):
        broken.append(f"{recorded} samples in {len(rounds)} of {result['rounds']} rounds, {result['samples']} in all")
    for one in rounds:
        if sum(map(int, one["worker_samples"])) != int(one["samples"]):
            broken.append(f"round {one.get('round', 0)}: {one['worker_samples']} are not {one['samples']} samples")
    return broken


def check_job(hosts, job, samples_of_epoch):
    """Of one that succeeded."""
    name = job["name"].rsplit("/", 1)[-1]
    rounds, groups = rounds_of(hosts, name)
    numbers = [int(one.get("round", 0)) for one in rounds]
    broken = check_order(job, numbers, groups, hosts.starts[COORDINATOR] - 1)
    broken += check_samples(job, rounds, samples_of_epoch) + check_attempts(job)
    return [f"{name}: {line}" for line in broken]


def check_attempts(job):
    """None begins beyond where the one before it came to."""
    broken, reached = [], 0
    for before, attempt in zip(job["attempts"], job["attempts"][1:]):
        reached = max(reached, int(before.get("rounds", 0)))
        if int(attempt.get("first_round", 0)) > reached:
            broken.append(f"attempt {attempt['number']} begins with round {attempt['first_round']} of {reached}")
    return broken


def check_cluster(hosts):
    """After the last job, while the daemons run."""
    broken = []
    code, out, err = hosts.tactus("admin", "integrity-check", check=False)
    if code != 0:
        broken.append(f"integrity-check: {out}{err}".strip())
    if hosts.ready_nodes() != hosts.nodes:
        broken.append(f"ready are the nodes {hosts.ready_nodes()}, of {hosts.nodes}")
    if hosts.workers():
        broken.append(f"{len(hosts.workers())} workers run, and no job does")
    return broken


def check_end(hosts):
    """After the daemons' end."""
    broken = [f"left running: {what}" for what in hosts.left()]
    for name, line in hosts.log_lines():
        if DEADLY.search(line):
            broken.append(f"{name}: {line}")
    for path in hosts.folder.glob("*/jobs/*/worker-*.log"):
        for line in path.read_text(errors="replace").splitlines():
            if DEADLY.search(line):
                broken.append(f"{path.relative_to(hosts.folder)}: {line}")
    for tape in sorted((hosts.folder / COORDINATOR / "tapes").glob("*.tape")):
        done = subprocess.run([BIN / "tactus", "replay", "--allow-cut", tape], capture_output=True, text=True, check=False)
        # Its coordinator was killed before it had begun: there is nothing to compare.
        begun = "after event 0" not in done.stderr or "cut short" not in done.stderr
        if done.returncode != 0 and begun:
            broken.append(f"replay of {tape.name}: {done.stdout}{done.stderr}".strip())
    return broken
