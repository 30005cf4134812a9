"""The cells of bench/regret: which clusters and jobs, and the plans that each is run with."""
import dataclasses
import functools
import hashlib
import itertools

from scenarios import adapt, proportional

# What a cell is made of. Every pair of levels of two factors occurs in some cell of the matrix, but for pairs that FEASIBLE
# leaves no cell for.
FACTORS = {
    "link": ["5mbit", "20mbit", "100mbit", "1gbit", "10gbit"],
    "speeds": ["1:1", "1:1:0.5:0.25", "8:4:2:1"],
    "workers": [2, 4, 8, 16, 64],
    "learner": ["cifar", "deep", "low", "middling", "huge"],
    "optimizer": ["sgd", "sgd0.9", "adamw"],
    "warmup": [False, True],
    "cosine": [False, True],
    "budget": [60, 120, 600, 1800, 7200],  # [s] of virtual time
    "parameters": [250_000, 2_500_000],    # that a reduction carries
}
PERIODS = [2, 4, 8, 16, 32, 64, 128]
LEADER_PERIODS = [4, 16, 64]
LOSS_NOISE = 0.5          # of one sample's loss, of a quadratic whose members choose a leader by it
ONE_PEER_MOMENTUM = 0.45  # up to which mixing with one neighbour a step is stable (decision 92)
ROUND_SECONDS_MAX = 300  # a group that ends no round in 10 minutes is given up
ADACOMP_WORKERS_MAX = 43  # job files refuse it for more: what each sends goes to all, and would be more than dense values
ENCODED_SHARE = 0.05  # of a step that a transfer takes, from which on fewer bytes are among the fixed plans
PER_WORKER = 32                            # samples a step, on average over the workers
FIXED_PART = 0.2                           # of a step's time, whatever its samples
BITS = {"mbit": 1e6, "gbit": 1e9}


def quadratic(noise):
    """Eigenvalues of 1 to 1/1000: a loss that falls like a power of time until the noise holds it up."""
    return {"noisy_quadratic": {"dimension": 256, "condition": 1000, "gradient_noise": noise}}


@dataclasses.dataclass(frozen=True)
class Learner:
    """What learns, for how many steps, and how fast: rates with which the loss still falls when the time is over."""
    loss: dict
    steps: int        # of a worker in a cell's budget, were nothing transferred
    workers_max: int  # more cost more than they would show
    seeds: int        # runs of a row whose mean says enough
    # Learning rates for 8 workers; for others as the root of their number.
    sgd: float        # without momentum; with momentum 0.9 a tenth
    adamw: float


# Three hidden layers on images that are invented, in the place of a convolution or a transformer, which the simulator lacks.
INVENTED = {"samples": 100_000, "features": 128, "classes": 10, "separation": 2, "validation_samples": 500}
LEARNERS = {
    "cifar": Learner({"perceptron": {"hidden": [32]}}, 2000, 8, 1, 0.014, 2e-4),
    "deep": Learner({"perceptron": {"hidden": [32, 32, 32], "synthetic": INVENTED}}, 2000, 16, 1, 0.07, 4e-4),
    "low": Learner(quadratic(1), 20_000, 64, 3, 0.15, 1e-3),
    "middling": Learner(quadratic(30), 20_000, 64, 3, 0.03, 1e-3),
    "huge": Learner(quadratic(1000), 20_000, 64, 3, 0.005, 1e-3),
}
# In the place of the images where there are none.
IMAGES = Learner({"perceptron": {"hidden": [32], "synthetic": INVENTED}}, 2000, 8, 1, 0.07, 4e-4)


@dataclasses.dataclass(frozen=True)
class Cell:
    """One of the matrix, by its factors; one with a name of its own also by what differs from them."""
    link: str
    speeds: str
    workers: int
    learner: str
    optimizer: str
    warmup: bool
    cosine: bool
    budget: int
    parameters: int
    title: str = ""        # empty: of the matrix
    steps: int = 0         # 0: the learner's
    rate: float = 0        # 0: the learner's
    links: tuple = ()      # one a worker; empty: all are `link`
    base: int = 0          # samples of the step that the rate is chosen for; 0: those of all workers, so that none gains

    @property
    def name(self):
        if self.title:
            return self.title
        words = [self.link, self.speeds.replace(":", "_"), f"{self.workers}w", self.learner, self.optimizer,
                 *["warmup"] * self.warmup, *["cosine"] * self.cosine, f"{self.budget}s",
                 f"{self.parameters / 1e6:g}M"]
        return "-".join(words)

    @property
    def local_steps(self):
        return self.steps or LEARNERS[self.learner].steps

    @property
    def step_seconds(self):
        """Of one step of all workers, in shares that fit their speeds."""
        return self.budget / self.local_steps

    @property
    def transfer_seconds(self):
        """Of a reduction: each of the mesh sends everybody else's part, and then everybody its own."""
        slowest = min(float(rate[:-4]) * BITS[rate[-4:]] for rate in self.links or [self.link])
        return 2 * (self.workers - 1) / self.workers * self.parameters * 32 / slowest

    def feasible(self):
        """A round of the longest period computes for two thirds of its time or more, and of every step there are some."""
        return (self.workers <= LEARNERS[self.learner].workers_max
                and self.transfer_seconds <= PERIODS[-1] / 2 * self.step_seconds
                and self.transfer_seconds <= self.budget / 20)


# The issue of adapting by itself began with these.
NAMED = [
    Cell("20mbit", "1:1", 4, "deep", "adamw", True, False, 600, 1_250_000, "slow-adamw", steps=1000, rate=1e-3),
    Cell("25mbit", "1:1", 5, "cifar", "sgd0.9", False, False, 120, 708_000, "five-links", steps=600, rate=0.005,
         links=("25mbit", "25mbit", "50mbit", "100mbit", "100mbit")),
    Cell("100mbit", "4:4:2:1", 4, "cifar", "sgd0.9", False, False, 120, 708_000, "race", steps=1660, rate=0.002),
    Cell("100mbit", "4:4:2:1", 4, "middling", "sgd0.9", True, True, 7200, 708_000, "race-hours", steps=100_000, rate=0.001),
    Cell("10gbit", "1:1", 2, "middling", "sgd0.9", False, False, 120, 250_000, "fast-pair", steps=15_000, rate=0.0015),
    # Rates for the batch of one worker: that of `race`, of which all workers' could bear more, and one that could not.
    Cell("100mbit", "4:4:2:1", 4, "cifar", "sgd0.9", False, False, 120, 708_000, "race-gains", steps=1660, rate=0.001,
         base=PER_WORKER),
    Cell("100mbit", "4:4:2:1", 4, "cifar", "sgd0.9", False, False, 120, 708_000, "race-bears-no-gain", steps=1660, rate=0.006,
         base=PER_WORKER),
]


def covering():
    """A few cells in which every feasible pair of levels occurs, the same each time: always the cell with the most pairs that
    no earlier one has, of equal ones that whose name has the least digest, so that no level is preferred."""
    cells = [cell for cell in (Cell(*levels) for levels in itertools.product(*FACTORS.values())) if cell.feasible()]
    cells.sort(key=lambda cell: hashlib.sha256(cell.name.encode()).digest())
    numbers = {}

    def pairs(cell):
        levels = list(enumerate(getattr(cell, factor) for factor in FACTORS))
        return sum(1 << numbers.setdefault(pair, len(numbers)) for pair in itertools.combinations(levels, 2))

    masks = [pairs(cell) for cell in cells]
    missing, chosen = (1 << len(numbers)) - 1, []
    while missing:
        best = max(range(len(cells)), key=lambda i: (masks[i] & missing).bit_count())
        chosen.append(cells[best])
        missing &= ~masks[best]
    return chosen


@functools.cache
def matrix():
    return NAMED + sorted(covering(), key=lambda cell: (cell.budget, cell.name))


# ---- What is simulated

def speeds_of(cell):
    """Of each worker, 1 on average: the levels in equal parts."""
    levels = [float(speed) for speed in cell.speeds.split(":")]
    speeds = [levels[i * len(levels) // cell.workers] for i in range(cell.workers)]
    return [speed * cell.workers / sum(speeds) for speed in speeds]


def learner_of(cell, images):
    return IMAGES if cell.learner == "cifar" and not images else LEARNERS[cell.learner]


def cluster_of(cell, images, how):
    """`how`: as for job_of."""
    loss = learner_of(cell, images).loss
    if "noisy_quadratic" in loss and how["synchronization"]["policy"] == "lsgd":
        # The loss without noise that a quadratic tells would make a judge of leaders whom no samples can be.
        loss = {"noisy_quadratic": {**loss["noisy_quadratic"], "loss_noise": LOSS_NOISE}}
    hosts = []
    for i, speed in enumerate(speeds_of(cell)):
        step = cell.step_seconds / speed
        hosts.append({"name": f"h{i}", "link": {"rate": cell.links[i] if cell.links else cell.link, "latency": "0.1ms"},
                      "devices": [{"batch_time": f"{FIXED_PART * step * 1e9:.0f}ns",
                                   "sample_time": f"{(1 - FIXED_PART) * step / PER_WORKER * 1e9:.0f}ns",
                                   "noise": {"sigma": 0.1}}]})
    return {"hosts": hosts, "model": {"parameters": cell.parameters}, "loss": loss}


def momentum_of(cell):
    """Of sgd."""
    return float(cell.optimizer.removeprefix("sgd") or 0)


def optimizer_of(cell, learner, momentum_max=1):
    """With less momentum the rate is as much higher, so that a step is as long in the long run."""
    root = (cell.workers / 8) ** 0.5
    if cell.optimizer == "adamw":
        return {"adamw": {"learning_rate": cell.rate or learner.adamw * root}}
    momentum = momentum_of(cell)
    rate = cell.rate or learner.sgd * (1 - momentum) * root
    if momentum > momentum_max:
        rate, momentum = rate * (1 - momentum_max) / (1 - momentum), momentum_max
    return {"sgd": {"learning_rate": rate, "momentum": momentum}}


def schedule_of(cell, rate):
    """Warm-up for the first twentieth of the steps; a cosine that is down when four fifths are done."""
    schedule = {}
    if cell.warmup:
        schedule["warmup_steps"] = cell.local_steps // 20
    if cell.cosine:
        schedule["cosine"] = {"steps": cell.local_steps * 4 // 5, "final_rate": 0.01 * rate}
    return {"schedule": schedule} if schedule else {}


def job_of(cell, images, how, seed):
    """`how`: the job's section adapt, but for what a step's rate is chosen for, and with `momentum_max` where the plan bears no
    more."""
    learner = learner_of(cell, images)
    how = dict(how)
    optimizer = optimizer_of(cell, learner, how.pop("momentum_max", 1))
    rate = next(iter(optimizer.values()))["learning_rate"]
    rule = {"policy": "constant", **how.get("learning_rate", {}), "base_batch": cell.base or PER_WORKER * cell.workers,
            **schedule_of(cell, rate)}
    return {"name": "job", "seed": seed, "model": {"builtin": "cifar-cnn"},
            "data": {"cifar": str(images or "."), "validation_samples_max": 500}, "optimizer": optimizer,
            "stop": {"time": f"{cell.budget}s"}, "workers": {"min": cell.workers, "max": cell.workers},
            "adapt": {**how, "learning_rate": rule}}


def fixed(synchronization):
    return adapt(proportional(PER_WORKER), synchronization)["adapt"]


def apart(label):
    """Whether it is a row of members that have parameters of their own, which auto never chooses."""
    return label.startswith(("lsgd", "decentlam"))


def rows_apart(cell):
    """{label: how} of plans under which members have parameters of their own."""
    rows = {f"lsgd {period}": fixed({"policy": "lsgd", "period": period}) for period in LEADER_PERIODS
            if period * cell.step_seconds <= ROUND_SECONDS_MAX}
    if cell.optimizer != "adamw":
        rows["decentlam ring"] = fixed({"policy": "decentlam", "graph": "ring"})
        rows["decentlam one_peer_exponential"] = {"momentum_max": ONE_PEER_MOMENTUM,
                                                  **fixed({"policy": "decentlam", "graph": "one_peer_exponential"})}
    return rows


def rows_of(cell):
    """{label: how} of the fixed plans and, last, of auto. Shares fit the speeds in all, so that what differs is when they
    combine."""
    rows = {"every_step": fixed({"policy": "every_step"}), "delayed": fixed({"policy": "delayed"})}
    rows |= {f"periodic {period}": fixed({"policy": "periodic", "period": period}) for period in PERIODS
             if period * cell.step_seconds <= ROUND_SECONDS_MAX}
    if cell.optimizer != "adamw":
        rows["adacomm"] = fixed({"policy": "adacomm"})
    if cell.base:
        rows |= {f"{label}, adascale": {**how, "learning_rate": {"policy": "adascale"}} for label, how in rows.items()
                 if label.startswith(("every_step", "periodic"))}
    if cell.transfer_seconds >= ENCODED_SHARE * cell.step_seconds:
        rows |= {f"{label}, float16": {**how, "encoding": {"policy": "float16"}} for label, how in rows.items()}
        rows |= {f"every_step, {encoding}": {**rows["every_step"], "encoding": {"policy": encoding}}
                 for encoding in (["dq", "adacomp"] if cell.workers <= ADACOMP_WORKERS_MAX else ["dq"])}
    rows |= rows_apart(cell)
    auto = {"policy": "auto"}
    rows["auto"] = adapt({**auto, "per_worker": PER_WORKER}, auto, auto, auto, auto)["adapt"]
    return rows
