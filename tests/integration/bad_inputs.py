"""The table of bad inputs: what is wrong, what must be said of it, and how the program must end.

Most cases are made from the schema: each field of the job file, of the cluster file and of the configuration file gets
values that it cannot have. A field that is added to the schema is in the table without a line here.
"""
import re
import sys
from typing import NamedTuple

from cluster import SOURCE

sys.path.insert(0, str(SOURCE / "tests/proto"))
from descriptors import compile_protos  # noqa: E402

INTEGER, REAL, TEXT, TRUTH, ENUM, MESSAGE = "integer", "real", "text", "truth", "enum", "message"
KINDS = {1: REAL, 2: REAL, 3: INTEGER, 4: INTEGER, 5: INTEGER, 13: INTEGER, 8: TRUTH, 9: TEXT, 11: MESSAGE, 14: ENUM}
REPEATED = 3
DURATION = ".google.protobuf.Duration"
# Of each field so many of its wrong values, so that the table stays within its time.
VALUES_OF_A_FIELD = 2


class Case(NamedTuple):
    name: str
    words: list  # of the command line; {NAME} stands for the path of the file of that name
    says: list   # what its one line has to hold
    code: int = 2
    files: dict = {}        # name: text
    environment: dict = {}
    program: str = "tactus"


class Field(NamedTuple):
    path: str
    kind: str
    repeated: bool
    map: bool
    duration: bool
    unit: bool
    allowed: str  # of all variants; empty: it depends, or there is none
    keys: tuple   # of a message


class Schema:
    def __init__(self):
        compiled = compile_protos(SOURCE)
        self.messages = {}
        for file in compiled.file:
            for message in file.message_type:
                self._add(f".{file.package}", message)

    def _add(self, scope, message):
        name = f"{scope}.{message.name}"
        self.messages[name] = message
        for below in message.nested_type:
            self._add(name, below)

    def fields(self, name, path="", depth=0):
        """Every field below a message, once each: what refers to itself ends at the fifth level."""
        for field in self.messages[name].field:
            yield from self._field(field, f"{path}{field.name}", depth)

    def _field(self, field, path, depth):
        options = {descriptor.name: value for descriptor, value in field.options.ListFields()}
        rules = options.get("field", [])
        allowed = rules[0].allowed if len(rules) == 1 and not rules[0].of else ""
        is_map = field.type_name in self.messages and self.messages[field.type_name].options.map_entry
        is_duration = field.type_name == DURATION
        below = () if field.type_name not in self.messages or is_map else tuple(
            one.name for one in self.messages[field.type_name].field)
        repeated = field.label == REPEATED
        yield Field(path, KINDS[field.type], repeated, is_map, is_duration, "unit" in options, allowed, below)
        if below and not is_duration and depth < 5:
            place = f"{path}[0]." if repeated else f"{path}."
            yield from self.fields(field.type_name, place, depth + 1)


def wrong_values(field):
    """(what is written in the file, what is said of it) that the field's kind does not have."""
    if field.map:
        return [("5", "'5' stands where a map is expected"), ("[a]", "a list stands where a map is expected")]
    if field.repeated:
        return [("5", "'5' stands where a list is expected"), ("{a: b}", "a map stands where a list is expected")]
    if field.duration:
        return [("soon", "'soon' is not a duration"), ("-1s", "'-1s' is negative"),
                ("99999999999999999h", "is out of range"), ("5", "'5' is not a duration"), ("[1s]", "a list stands where")]
    if field.kind == MESSAGE:
        return [("{zzzzz: 1}", "zzzzz: unknown key"), ("", "no value is given"), ("[1]", "a list stands where")]
    if field.kind == INTEGER:
        return [("many", "'many' is not a whole number"), ("1.5", "'1.5' is not a whole number"),
                ("99999999999999999999999", "is out of range"), ('"5"', "it stands in quotes"), ("{a: 1}", "a map stands where")]
    if field.kind == REAL and field.unit:
        return [("fast", "'fast' is not a "), ("-1", "'-1' is not a ")]
    if field.kind == REAL:
        return [("low", "'low' is not a finite number"), ("nan", "'nan' is not a finite number"), ("1e999", "is out of range")]
    if field.kind == TRUTH:
        return [("maybe", "'maybe' is not true or false"), ("[true]", "a list stands where")]
    if field.kind == ENUM:
        return [("nonsense", "'nonsense' is unknown"), ("[a]", "a list stands where")]
    return [("{a: b}", "a map stands where"), ("[a, b]", "a list stands where"), ('"a\\tb\\u0007"', "holds a control character")]


def out_of_range(field):
    """Values that the field's words refuse: below and above."""
    found = re.fullmatch(r"(above )?(-?[\d.e]+)(?: or more| to (below )?([\d.e]+))?", field.allowed)
    if not found or field.repeated or field.kind not in (INTEGER, REAL):
        return []
    above, low, below, high = found.groups()
    values = []
    if not (field.kind == INTEGER and float(low) < 1 and not above):
        values.append(low if above else str(int(low) - 1) if field.kind == INTEGER else f"{-2 * abs(float(low)) - 1:.15g}")
    if high and float(high) < 2**32 - 1:
        values.append(high if below else str(int(high) + 1) if field.kind == INTEGER else f"{float(high) * 2 + 1:.15g}")
    return values


# What they need beside them is written by hand.
NEEDY = {"loss.curve.noise", "adapt.learning_rate.schedule.step.factor", "data.idx.inputs", "data.numpy.inputs", "data.images.crop"}
# Of these a section has one.
EXCLUSIVE = ({"builtin", "torchscript"}, {"text", "cifar", "idx", "numpy"}, {"samples_per_second", "sample_time"})


def written(path, value, beside):
    """(key, YAML) of a file's section with the value at the path; `beside`: what else stands in the section."""
    section, *rest = path.split(".")
    text = value
    for part in reversed(rest[1:]):
        text = f"{{{part}: {text}}}"
    if rest:
        others = next((one for one in EXCLUSIVE if rest[0] in one), set())
        kept = {key: one for key, one in beside.get(section, {}).items() if key != rest[0] and key not in others}
        text = "{" + ", ".join(f"{key}: {one}" for key, one in {**kept, rest[0]: text}.items()) + "}"
    is_list = section.endswith("[0]")
    return section.removesuffix("[0]"), f"[{text}]" if is_list else text


JOB = {"name": "tiny", "model": {"builtin": "bytes-lm"}, "data": {"text": "/corpus.txt"}, "stop": {"rounds": "5"}}
CLUSTER = {"hosts[0]": {"name": "a", "devices": "[{sample_time: 1ms}]"}, "model": {"parameters": "1000"},
           "faults[0]": {"at": "1s"}, "between[0]": {"groups": "[a, b]", "rate": "1gbit"}}
CLUSTER_FILE = "hosts: [{name: a, count: 2, devices: [{sample_time: 1ms}]}]\nmodel: {parameters: 1000}\n"


def document(sections):
    lines = []
    for key, one in sections.items():
        text = one if isinstance(one, str) else "{" + ", ".join(f"{name}: {value}" for name, value in one.items()) + "}"
        lines.append(f"{key}: {text}\n")
    return "".join(lines)


JOB_FILE = document(JOB)


def job_with(path, value):
    key, text = written(path, value, JOB)
    return document({**JOB, key: text})


def cluster_with(path, value):
    key, text = written(path, value, CLUSTER)
    hosts = "[{name: a, group: a, devices: [{sample_time: 1ms}]}, {name: b, group: b, devices: [{sample_time: 1ms}]}]"
    return document({"hosts": hosts, "model": "{parameters: 1000}", key: text})


def schema_cases(schema, message, write, words, file, **more):
    """Of every field some of its wrong values, in turn, so that all kinds of them come up."""
    for turn, field in enumerate(schema.fields(message)):
        if any(part.endswith("[0]") for part in field.path.split(".")[1:]):
            continue  # lists within lists are written by hand
        if field.path in NEEDY:
            continue
        values = wrong_values(field)
        for i in range(min(VALUES_OF_A_FIELD, len(values))):
            value, said = values[(turn + i) % len(values)]
            yield Case(f"{file}: {field.path}: {value}", words, [field.path, said], files={file: write(field.path, value)}, **more)
        for value in out_of_range(field):
            yield Case(f"{file}: {field.path}: {value}", words, [f"{field.path}: ", f"found {value}", "allowed"],
                       files={file: write(field.path, value)}, **more)


SUBMIT = ["submit", "{job.yaml}", "--dry-run"]
SIMULATE = ["simulate", "{cluster.yaml}", "{job.yaml}"]


def job(text, *says):
    return Case(f"job.yaml: {text}", SUBMIT, list(says), files={"job.yaml": text})


def field(path, value, *says):
    return job(job_with(path, value), path, *says)


def image_cases():
    """What needs images or several files beside it."""
    images = "name: tiny\nmodel: {builtin: cifar-cnn}\nstop: {rounds: 5}\ndata: "
    yield job(images + "{cifar: /c, images: {crop: 1025}}\n", "data.images.crop: ", "found 1025", "allowed is 0 to 1024")
    yield job(images + "{cifar: /c, images: {crop: many}}\n", "data.images.crop: ", "'many' is not a whole number")
    yield job(images + "{cifar: /c, images: {mean: [0.5]}}\n", "data.images.mean: ", "allowed are crop and flip")
    yield job(images + "{idx: {inputs: {a: b}, targets: /t}}\n", "data.idx.inputs: ", "a map stands where")
    yield job(images + "{idx: {inputs: [/a, /b], targets: /t}}\n", "data.idx.more_inputs: ", "applies to data.numpy only")
    yield job(images + "{numpy: {inputs: [/a, /b], targets: /t}}\n", "data.numpy.more_inputs: ", "a built-in one has one input")
    yield job(images + "{numpy: {inputs: /a, targets: /t, input_types: [half]}}\n", "data.numpy.input_types[0]: ", "float32, scaled")


def job_cases():
    """What fields mean together, and files that are none."""
    adapt = "adapt.synchronization"
    yield from image_cases()
    yield from (
        job("", "is empty"),
        job("name: [unclosed", "line"),
        job("- a\n- b\n", "a list stands where a map is expected"),
        job("name: a\nname: b\n", "name: given twice"),
        job("name: a\n\tb: c\n", "line 2"),
        job("name: \"a\0b\"\n", "NUL"),
        job("a: &x [*x]\n", "line"),
        job(JOB_FILE + "optimiser: {sgd: {}}\n", "optimiser", "did you mean 'optimizer'?"),
        job(document({**JOB, "stop": "{}"}), "stop: is missing"),
        job(document({**JOB, "model": "{}"}), "model: is missing", "bytes-lm"),
        job(document({**JOB, "data": "{}"}), "data: is missing", "numpy"),
        job(document({key: one for key, one in JOB.items() if key != "name"}), "name: is missing"),
        field("name", "Bad Name", "found \"Bad Name\"", "allowed"),
        field("name", "a" * 64, "allowed are 1 to 63"),
        field("model.builtin", "bytes-ml", "did you mean bytes-lm?"),
        field("model.torchscript", "sha256:ABC", "64 hexadecimal digits"),
        field("model.torchscript", '""', "is empty"),
        field("model.loss", "cross_entropi", "did you mean cross_entropy?"),
        field("model.loss", "mse", "allowed with model.builtin is cross_entropy"),
        field("model.precision", "bf16", "did you mean 'bfloat16'?"),
        field("model.options.width", "130", "allowed is a multiple of heads, 4"),
        field("model.options.classes", "10", "does not apply to bytes-lm"),
        field("data.cifar", "/c", "does not fit model.builtin bytes-lm"),
        field("data.context", "64", "is for TorchScript models"),
        job(document({**JOB, "data": "{text: a, cifar: b}"}), "data: both 'text' and 'cifar' are given"),
        job(document({**JOB, "optimizer": "{sgd: {}, adam: {}}"}), "optimizer: both 'sgd' and 'adam' are given"),
        job(document({**JOB, "optimizer": "{sgd: {nesterov: true}}"}), "optimizer.sgd.nesterov", "without momentum"),
        job(document({**JOB, "optimizer": "{lamb: {ratio_min: 2, ratio_max: 1}}"}), "optimizer.lamb.ratio_max", "at least"),
        job(document({**JOB, "optimizer": "{sdg: {}}"}), "did you mean 'sgd'?"),
        job(document({**JOB, "workers": "{min: 3, max: 2}"}), "workers.max", "allowed is workers.min, 3, or more"),
        job(document({**JOB, "workers": "{device: gpu}"}), "did you mean 'cuda'?"),
        job(document({**JOB, "workers": "{selector: {'zone!': a}}"}), "workers.selector", "zone!"),
        job(document({**JOB, "workers": "{tolerations: ['a b']}"}), "workers.tolerations", "a b"),
        job(document({**JOB, "snapshots": "{every: 1ms}"}), "snapshots.every", "found 1ms", "allowed is 1s or more"),
        job(document({**JOB, "snapshots": "{}"}), "snapshots.every: is missing"),
        job(document({**JOB, "checkpoints": "{every: never}"}), "checkpoints.every", "'never' is not a duration"),
        job(document({**JOB, "checkpoints": "{every: 10ms}"}), "checkpoints.every", "allowed is 1s to 24h"),
        job(document({**JOB, "hold": "1s"}), "hold: found 1s", "allowed is 10s to 30d"),
        job(document({**JOB, "adapt": "nonne"}), "did you mean 'none'?"),
        job(document({**JOB, "adapt": "{batch: {min: 9, max: 3}}"}), "adapt.batch.max", "or more"),
        job(document({**JOB, "adapt": "{batch: {per_worker: 4, min: 8}}"}), "adapt.batch.per_worker", "found 4"),
        job(document({**JOB, "adapt": "{synchronization: {policy: periodic}}"}), f"{adapt}.period: is missing"),
        job(document({**JOB, "adapt": "{synchronization: {policy: delayed, period: 4}}"}), f"{adapt}.period: does not apply to policy delayed"),
        job(document({**JOB, "adapt": "{synchronization: {policy: adacomm, initial_period: 500}}"}), f"{adapt}.initial_period", "1 to 128"),
        job(document({**JOB, "adapt": "{synchronization: {policy: periodic, period: 0}}"}), f"{adapt}.period", "found 0"),
        job(document({**JOB, "adapt": "{frozen: [batch, batch]}"}), "adapt.frozen[1]", "again"),
        job(document({**JOB, "adapt": "{frozen: [weather]}"}), "adapt.frozen[0]", "allowed is batch"),
        job(document({**JOB, "adapt": "{learning_rate: {schedule: {step: {}}}}"}), "schedule.step.boundaries: is missing"),
        job(document({**JOB, "adapt": "{learning_rate: {schedule: {step: {boundaries: [3, 2]}}}}"}), "boundaries", "not rising"),
        job(document({**JOB, "adapt": "{learning_rate: {schedule: {cosine: {}}}}"}), "schedule.cosine.steps: is missing"),
        job(document({**JOB, "adapt": "{learning_rate: {schedule: {cosine: {steps: 5}, warmup_steps: 9}}}"}), "cosine.steps", "found 5"),
        job(document({**JOB, "adapt": "{synchronization: {policy: post_local, period: 4}}"}), "adapt.learning_rate.schedule: is missing"),
    )


def cluster(text, *says, words=SIMULATE):
    return Case(f"cluster.yaml: {text}", words, list(says), files={"cluster.yaml": text, "job.yaml": JOB_FILE})


def cluster_cases():
    host = "hosts: [{name: a, devices: [%s]}]\nmodel: {parameters: 1000}\n"
    fault = CLUSTER_FILE + "faults: [{%s}]\n"
    yield from (
        cluster("", "hosts"),
        cluster("hosts: []\nmodel: {parameters: 1000}\n", "hosts", "allowed"),
        cluster("hosts: [{name: a}]\nmodel: {parameters: 1000}\n", "hosts[0].devices"),
        cluster(host % "{}", "hosts[0].devices[0]"),
        cluster(host % "{sample_time: 0}", "hosts[0].devices[0].sample_time", "allowed is above 0"),
        cluster(host % "{sample_time: 1ms, samples_per_second: 5}", "hosts[0].devices[0]"),
        cluster(host % "{sample_time: 1ms, noise: {sigma: 3}}", "noise.sigma", "found 3", "0 to 2"),
        cluster(host % "{sample_time: 1ms, cuont: 2}", "did you mean 'count'?"),
        cluster("hosts: [{name: a, devices: [{sample_time: 1ms}]}, {name: a, devices: [{sample_time: 1ms}]}]\n"
                "model: {parameters: 1}\n", "second host a"),
        cluster(fault % "at: 1s, crash: z/cpu:0", "faults[0]", "z"),
        cluster(fault % "at: 1s", "faults[0]"),
        cluster(fault % "at: 1s, slow: a-1/cpu:0", "faults[0]"),
        cluster(CLUSTER_FILE + "collective: star\n", "collective: 'star' is unknown", "allowed: mesh"),
        cluster(CLUSTER_FILE + "loss: {curve: {file: /nowhere.csv}}\n", "/nowhere.csv"),
    )


def command(words, *says, code=2, **more):
    return Case("tactus " + " ".join(words), words, list(says), code=code, **more)


def flag_cases():
    yield from (
        command([], "a verb is missing", "allowed: run"),
        command(["sumbit"], "did you mean 'submit'?"),
        command(["get"], "a verb is missing after 'get'", "allowed: jobs"),
        command(["get", "frob"], "'frob' is unknown", "allowed: jobs"),
        command(["get", "jobs", "tiny-1"], "not expected: tiny-1", "tactus get job NAME"),
        command(["get", "job"], "job is required"),
        command(["get", "jobs", "-o", "xml"], "xml", "table"),
        command(["get", "jobs", "--limit", "0"], "--limit", "\"0\"", "1 to 1000000"),
        command(["get", "jobs", "--limit", "x"], "--limit", "\"x\"", "1 to 1000000"),
        command(["get", "jobs", "--filter", "state"], "filter"),
        command(["get", "jobs", "--filter", "state=ASLEEP"], "filter", "ASLEEP"),
        command(["get", "jobs", "--filter", "colour=red"], "filter", "colour"),
        command(["get", "jobs", "--order-by", "size"], "order_by", "size"),
        command(["get", "job", "A B"], "name", "A B"),
        command(["get", "job", "none-1"], "none-1: no such job", code=3),
        command(["get", "node", "nowhere"], "nowhere", code=3),
        command(["get", "rounds", "none-1"], "no such job", code=3),
        command(["get", "decisions", "none-1", "--limit", "-1"], "--limit", "\"-1\""),
        command(["describe", "job", "none-1"], "no such job", code=3),
        command(["describe", "job", "none-1", "-o", "wide"], "wide", "table"),
        command(["describe", "frob"], "'frob' is unknown", "allowed: job, node"),
        command(["watch", "none-1"], "no such job", code=3),
        command(["wait", "none-1", "--for", "state=asleep"], "asleep", "SUCCEEDED"),
        command(["wait", "none-1", "--for", "asleep"], "allowed is state=STATE"),
        command(["wait", "none-1", "--timeout", "5"], "--timeout", "\"5\"", "unit"),
        command(["wait", "none-1", "--timeout", "-5s"], "--timeout", "not negative"),
        command(["wait", "none-1", "-o", "table"], "table", "json"),
        command(["wait", "none-1"], "no such job", code=3),
        command(["logs", "none-1"], "no such job", code=3),
        command(["logs", "none-1", "--rank", "-1"], "--rank", "\"-1\"", "0 to 65535"),
        command(["logs", "none-1", "--tail", "0"], "--tail", "\"0\""),
        command(["explain", "none-1"], "no such job", code=3),
        command(["explain", "none-1", "--axis", "weather"], "weather", "batch"),
        command(["explain", "none-1", "--last", "0"], "--last", "\"0\""),
        command(["explain", "none-1", "--value-of-devices", "--last", "5"], "--value-of-devices"),
        command(["update", "none-1"], "nothing is to be changed"),
        command(["update", "none-1", "--set", "stop"], "--set", "allowed is KEY=VALUE"),
        command(["update", "none-1", "--set", "stop="], "stop", "expected a map of"),
        command(["update", "none-1", "--set", "stop.epochs=x"], "stop.epochs", "'x' is not a whole number"),
        command(["update", "none-1", "--set", "stpo.epochs=1"], "did you mean 'stop'?"),
        command(["update", "none-1", "--label", "team"], "--label", "allowed is KEY=VALUE"),
        command(["update", "none-1", "--priority", "1001"], "--priority", "-1000 to 1000"),
        command(["update", "none-1", "--freeze", "weather"], "weather", "batch"),
        command(["update", "none-1", "--priority", "1"], "no such job", code=3),
        command(["revert", "none-1", "12-weather"], "12-weather"),
        command(["cancel", "none-1"], "no such job", code=3),
        command(["cancel", "none-1", "--grace", "soon"], "--grace", "\"soon\""),
        command(["cancel", "none-1", "--grace", "48h"], "grace", "0 to 24h"),
        command(["pause", "none-1"], "no such job", code=3),
        command(["resume", "none-1"], "no such job", code=3),
        command(["delete", "none-1"], "--yes deletes without asking"),
        command(["delete", "none-1", "--yes"], "no such job", code=3),
        command(["delete"], "job is required"),
        command(["delete", "node"], "node is required"),
        command(["delete", "none-1", "node", "n9"], "found jobs and nodes"),
        command(["delete", "node", "n9", "--yes"], "nodes/n9: no such node", code=3),
        command(["download", "none-1"], "no such job", code=3),
        command(["plot", "none-1", "--over", "space"], "space", "time"),
        command(["plot", "none-1"], "no such job", code=3),
        command(["trace", "none-1", "--rounds", "5"], "--rounds", "FIRST:LAST"),
        command(["trace", "none-1", "--rounds", "9:5"], "--rounds", "FIRST:LAST"),
        command(["cordon", "a b"], "name", "a b"),
        command(["drain", "n0", "--wait", "--timeout", "x"], "--timeout", "\"x\""),
        command(["admin"], "a verb is missing after 'admin'", "allowed: backup"),
        command(["admin", "log-level", "loud"], "loud", "debug"),
        command(["admin", "backup", "/proc/none/copy"], "/proc/none/copy", code=10),
        command(["replay", "/nowhere.tape"], "/nowhere.tape"),
        command(["replay", "{job.yaml}"], "another kind of file", files={"job.yaml": JOB_FILE}),
        command(["completion", "tcsh"], "tcsh", "bash"),
        command(["config", "use-context", "lab"], "lab", code=3),
        command(["man", "--to", "/proc/none"], "/proc/none", code=10),
        command(["submit"], "job_file is required"),
        command(["submit", "/nowhere.yaml"], "/nowhere.yaml", "No such file"),
        command(["submit", "/tmp"], "a folder; expected a job file"),
        command(["submit", "{job.yaml}", "--priority", "high"], "--priority", "high", files={"job.yaml": JOB_FILE}),
        command(["submit", "{job.yaml}", "--label", "=x"], "--label", "KEY=VALUE", files={"job.yaml": JOB_FILE}),
        command(["submit", "{job.yaml}", "--from", "none-1", "--dry-run"], "no such job", code=3, files={"job.yaml": JOB_FILE}),
        command(["submit", "{job.yaml}", "--set", "seed=x"], "seed: 'x' is not a whole number", files={"job.yaml": JOB_FILE}),
        command(["submit", "{job.yaml}", "--set", "seed=["], "--set seed", files={"job.yaml": JOB_FILE}),
        command(["run", "{job.yaml}", "--workers", "0"], "--workers", "1 to 256", files={"job.yaml": JOB_FILE}),
        command(["run", "{job.yaml}", "--workers", "2", "--speeds", "1"], "--speeds", "found 1", files={"job.yaml": JOB_FILE}),
        command(["run", "{job.yaml}", "--speeds", "1,0"], "--speeds", "0.001 to 1000", files={"job.yaml": JOB_FILE}),
        command(["run", "{job.yaml}", "--output", "/proc/none"], "--output: /proc/none", code=10, files={"job.yaml": JOB_FILE}),
        command(["run", "{job.yaml}", "--overwrite"], "--overwrite", "--output", files={"job.yaml": JOB_FILE}),
        command(["run", "{job.yaml}", "--tape", "/tmp"], "--tape: found a folder", files={"job.yaml": JOB_FILE}),
        command(["simulate"], "CLUSTER_FILE JOB_FILE"),
        command(["simulate", "{cluster.yaml}", "{job.yaml}", "--seed", "-1"], "--seed", "\"-1\"", files={"cluster.yaml": CLUSTER_FILE, "job.yaml": JOB_FILE}),
        command(["simulate", "{cluster.yaml}", "{job.yaml}", "--count", "0"], "--count", "1 to 100000", files={"cluster.yaml": CLUSTER_FILE, "job.yaml": JOB_FILE}),
        command(["simulate", "{cluster.yaml}", "{job.yaml}", "--loss", "magic"], "magic", files={"cluster.yaml": CLUSTER_FILE, "job.yaml": JOB_FILE}),
        command(["simulate", "{cluster.yaml}", "{job.yaml}", "--csv", "/proc/none/x"], "/proc/none/x", code=10, files={"cluster.yaml": CLUSTER_FILE, "job.yaml": JOB_FILE}),
        command(["simulate", "--add", "2xspeed=1"], "--add", "--from"),
        command(["simulate", "--from", "none-1"], "no such job", code=3),
        command(["get", "jobs", "--request-timeout", "0s"], "--request-timeout", "more than 0"),
        command(["get", "jobs", "--request-timeout", "-1s"], "--request-timeout", "not negative"),
        command(["get", "jobs", "--context", "lab", "--server", "h:1"], "--context", "--server"),
        command(["get", "jobs", "--server", "h:1"], "server", "h:1", "--tls-dir", "--insecure"),
        command(["get", "jobs", "--tls-dir", "/nowhere"], "tls-dir", "/nowhere/ca.pem"),
        command(["get", "jobs", "--tls-dir", "/nowhere", "--insecure"], "insecure", "--tls-dir"),
        command(["admin", "issue", "--ca", "/nowhere", "--out", "x"], "--node", "--user", "--coordinator"),
        command(["admin", "issue", "--ca", "/nowhere", "--out", "x", "--node", "a", "--user", "b"], "exactly one"),
        command(["admin", "issue", "--ca", "/nowhere", "--out", "x", "--node", "a"], "/nowhere/ca.pem"),
        command(["admin", "init-ca", "--out", "x", "--domain", "a/b"], "\"a/b\"", "allowed"),
        command(["admin", "revoke", "--user", "a b", "--in", "/tmp"], "user/a b", "allowed"),
        command(["admin", "audit", "--state-dir", "/nowhere"], "/nowhere/audit"),
        command(["get", "jobs", "--frob"], "not expected: --frob"),
        command(["version", "now"], "not expected: now"),
    )


def surroundings(environment, *says, code=2):
    return Case(f"{environment}", ["get", "jobs"], list(says), code=code, environment=environment)


def config_cases():
    def config(text, *says):
        return Case(f"config.yaml: {text}", ["get", "jobs"], list(says), files={"tactus/config.yaml": text})

    yield from (
        config("server: [", "config.yaml: "),
        config("- a\n", "a list stands where a map is expected"),
        config("sevrer: h:1\n", "did you mean 'server'?"),
        config("server: http://h:1\n", "'http://h:1' is not an address", "HOST:PORT"),
        config("server: h\n", "'h' is not an address", "HOST:PORT"),
        config("request_timeout: 5\n", "request_timeout", "\"5\""),
        config("output: xml\n", "output", "\"xml\"", "table"),
        config("context: lab\n", "'lab' is not a context"),
        config("context: lba\ncontexts: {lab: {server: 'h:1'}}\n", "did you mean 'lab'?"),
        config("contexts: {lab: {}}\n", "contexts.lab.server: is missing"),
        surroundings({"TACTUS_SERVER": "h:x"}, "environment TACTUS_SERVER", "'h:x'", "HOST:PORT"),
        surroundings({"TACTUS_SERVER": "h:70700"}, "environment TACTUS_SERVER", "'h:70700'"),
        surroundings({"TACTUS_CONTEXT": "lab"}, "environment TACTUS_CONTEXT", "'lab' is not a context"),
        surroundings({"TACTUS_REQUEST_TIMEOUT": "x"}, "TACTUS_REQUEST_TIMEOUT", "\"x\""),
        surroundings({"TACTUS_TLS_DIR": "/nowhere"}, "tls-dir", "/nowhere/ca.pem"),
        surroundings({"TACTUS_INSECURE": "maybe"}, "environment TACTUS_INSECURE", "\"maybe\"", "true"),
        surroundings({"TACTUS_OUTPUT": "xml"}, "TACTUS_OUTPUT", "\"xml\""),
    )


def daemon(program, words, *says, code=78, **more):
    return Case(f"{program} {' '.join(words)} {more}", words, list(says), code=code, program=program, **more)


def daemon_cases():
    usage = {"code": 64}

    def with_basics(basics, words):
        return [word for option, value in basics.items() if option not in words for word in (option, value)] + words

    def coordinator(words, *says, **more):
        basics = {"--listen": "127.0.0.1:0", "--metrics-listen": "off", "--state-dir": "{state}"}
        return daemon("tactus-coordinator", with_basics(basics, words), *says, **more)

    def agent(words, *says, **more):
        basics = {"--coordinator": "127.0.0.1:1", "--metrics-listen": "127.0.0.1:0", "--state-dir": "{state}"}
        return daemon("tactus-agent", with_basics(basics, words), *says, **more)

    yield from (
        coordinator(["--frob"], "--frob", **usage),
        coordinator(["--listen"], "--listen", **usage),
        coordinator(["--listen", "nowhere"], "listen", "nowhere"),
        coordinator(["--listen", "127.0.0.1:99999"], "listen", "99999"),
        coordinator(["--listen", "0.0.0.0:0"], "listen", "0.0.0.0:0", "--tls-dir", "--insecure"),
        coordinator(["--listen", "0.0.0.0:0", "--tls-dir", "/nowhere"], "tls-dir", "/nowhere/ca.pem"),
        coordinator(["--insecure", "--tls-dir", "/nowhere"], "insecure", "--tls-dir"),
        coordinator(["--policy", "/nowhere"], "policy", "--tls-dir"),
        coordinator(["--metrics-listen", "x"], "metrics-listen", "x"),
        coordinator(["--tape-bytes", "lots"], "--tape-bytes", "\"lots\"", "256MiB", **usage),
        coordinator(["--retain-bytes", "9parsecs"], "--retain-bytes", "\"9parsecs\"", **usage),
        coordinator(["--retain-bytes", "1"], "retain-bytes", "found 1", "allowed"),
        coordinator(["--retain-jobs", "-5d"], "retain-jobs", "\"-5d\"", "not negative"),
        coordinator(["--retain-jobs", "5"], "retain-jobs", "\"5\"", "unit"),
        coordinator(["--log-level", "loud"], "log-level", "\"loud\"", "debug"),
        coordinator(["--log-format", "xml"], "log-format", "\"xml\"", "json"),
        coordinator(["--backup-every", "0"], "backup-every", "found 0"),
        coordinator(["--backup-every", "1h"], "backup"),
        coordinator(["--backup-keep", "many"], "--backup-keep", "many", **usage),
        coordinator(["--restore-damaged"], "--restore-damaged", "--restore-from", **usage),
        coordinator(["--restore-from", "/nowhere"], "/nowhere", code=73),
        coordinator(["--state-dir", "/proc/none"], "/proc/none", code=73),
        coordinator(["--config", "/nowhere.ini"], "/nowhere.ini", **usage),
        coordinator(["--config", "{c.ini}"], "\"lisen\" is unknown", files={"c.ini": "lisen = h:1\n"}, **usage),
        coordinator(["--config", "{c.ini}"], "retain-jobs", "\"5\"", "c.ini)", files={"c.ini": "retain-jobs = 5\n"}),
        coordinator(["--config", "{c.ini}"], "--restored = maybe", "allowed is true or false", files={"c.ini": "restored = maybe\n"}, **usage),
        coordinator([], "log-level", "\"loud\"", "(environment TACTUS_LOG_LEVEL)", environment={"TACTUS_LOG_LEVEL": "loud"}),
        coordinator([], "retain-jobs", "\"5\"", "(environment TACTUS_RETAIN_JOBS)", environment={"TACTUS_RETAIN_JOBS": "5"}),
        agent(["--devices", "cpu:0"], "log-format", "\"xml\"", "(environment TACTUS_LOG_FORMAT)", environment={"TACTUS_LOG_FORMAT": "xml"}),
        coordinator([], "coordinator.db: ", "not a database", "--restore-from", code=73, files={"state/coordinator.db": "x" * 5000}),
        coordinator(["frob"], "frob", **usage),
        agent(["--coordinator", "10.0.0.1:1"], "coordinator", "10.0.0.1:1", "--tls-dir", "--insecure"),
        agent(["--tls-dir", "/nowhere"], "tls-dir", "/nowhere/ca.pem"),
        agent(["--frob"], "--frob", **usage),
        agent(["--coordinator", "nowhere"], "coordinator", "nowhere"),
        agent(["--coordinator", "http://h:1"], "coordinator", "http://h:1"),
        agent(["--devices", "tpu:0"], "devices", "tpu"),
        agent(["--devices", "cpu:x"], "devices", "cpu:x"),
        agent(["--devices", "cpu:0,cpu:0"], "devices", "cpu:0"),
        agent(["--node", "a b"], "node", "a b"),
        agent(["--devices", "cpu:0", "--emulated-speeds", "1,2"], "emulated-speeds"),
        agent(["--devices", "cpu:0", "--emulated-speeds", "0"], "emulated-speeds"),
        agent(["--devices", "cpu:0", "--address", "no such host"], "address", "no such host"),
        agent(["--devices", "cpu:0", "--label", "=x"], "label", "=x"),
        agent(["--devices", "cpu:0", "--taint", "=x"], "taint", "=x"),
        agent(["--devices", "cpu:0", "--drain-deadline", "soon"], "drain-deadline", "\"soon\""),
        agent(["--devices", "cpu:0", "--state-dir", "/proc/none"], "/proc/none", code=73),
        agent(["--devices", "cpu:0", "--worker-binary", "/nowhere"], "/nowhere"),
        agent(["--config", "{c.ini}"], "\"nod\" is unknown", files={"c.ini": "nod = a\n"}, **usage),
    )


def commands():
    """All but what goes through the API by itself."""
    schema = Schema()
    yield from schema_cases(schema, ".tactus.v1.JobSpec", job_with, SUBMIT, "job.yaml")
    yield from job_cases()
    for case in schema_cases(schema, ".tactus.sim.v1.Cluster", cluster_with, SIMULATE, "cluster.yaml"):
        yield case._replace(files={**case.files, "job.yaml": JOB_FILE})
    yield from cluster_cases()
    yield from flag_cases()
    for case in schema_cases(schema, ".tactus.cli.v1.Config", lambda path, value: document(dict([written(path, value, {})])),
                             ["get", "jobs"], "tactus/config.yaml"):
        yield case
    yield from config_cases()
    yield from daemon_cases()


def requests():
    """(service, call, request, what its refusal holds, its code) of the API."""
    spec = {"name": "tiny", "model": {"builtin": "bytes-lm"}, "data": {"text": "/corpus.txt"}, "stop": {"rounds": 5}}

    def create(**change):
        return ("Jobs", "CreateJob", {"spec": {**spec, **change}})

    def with_spec(**more):
        return ("Jobs", "CreateJob", {"spec": spec, **more})

    invalid, missing = "INVALID_ARGUMENT", "NOT_FOUND"
    update = {"name": "tiny-1", "spec": {"priority": 1}}
    yield from (
        (*create(name=""), ["name: is missing"], invalid),
        (*create(name="A"), ["name", "\"A\""], invalid),
        (*create(data={"text": "corpus.txt"}), ["data.text", "\"corpus.txt\"", "absolute"], invalid),
        (*create(data={"idx": {"inputs": "/a"}}), ["data.idx"], invalid),
        (*create(model={"torchscript": "m.pt"}), ["model.torchscript", "absolute"], invalid),
        (*create(model={"torchscript": "sha256:" + "0" * 64}), ["model.torchscript", "upload it first"], "NOT_FOUND"),
        (*create(stop={}), ["stop: is missing"], invalid),
        (*create(stop={"time": "-5s"}), ["stop.time"], invalid),
        (*create(optimizer={"sgd": {"learning_rate": "Infinity"}}), ["learning_rate", "found inf", "a finite number"], invalid),
        (*create(optimizer={"sgd": {"learning_rate": "NaN"}}), ["learning_rate", "found nan", "a finite number"], invalid),
        (*create(workers={"min": 5, "max": 2}), ["workers.max"], invalid),
        (*create(priority=5000), ["priority", "found 5000"], invalid),
        (*with_spec(request_id="a b"), ["request_id", "\"a b\""], invalid),
        (*with_spec(request_id="x" * 65), ["request_id"], invalid),
        (*with_spec(labels={"": "x"}), ["labels"], invalid),
        (*with_spec(**{"from": "Tiny"}), ["from"], invalid),
        (*with_spec(**{"from": "none-1"}), ["no such job"], missing),
        ("Jobs", "GetJob", {"name": ""}, ["name"], invalid),
        ("Jobs", "GetJob", {"name": "projects/other/jobs/a-1"}, ["name", "projects/other"], invalid),
        ("Jobs", "GetJob", {"name": "none-1"}, ["no such job"], missing),
        ("Jobs", "ListJobs", {"page_size": -1}, ["page_size", "-1"], invalid),
        ("Jobs", "ListJobs", {"page_token": "x"}, ["page_token"], invalid),
        ("Jobs", "ListJobs", {"filter": "state>1"}, ["filter"], invalid),
        ("Jobs", "ListJobs", {"order_by": "name up"}, ["order_by"], invalid),
        ("Jobs", "UpdateJob", {"name": "none-1", "update_mask": "spec.priority"}, ["no such job"], missing),
        ("Jobs", "UpdateJob", update, ["update_mask: is missing"], invalid),
        ("Jobs", "UpdateJob", {**update, "update_mask": "spec.name"}, ["update_mask", "spec.name"], invalid),
        ("Jobs", "UpdateJob", {**update, "update_mask": "spec.priority", "etag": "x"}, ["etag: found x"], "ABORTED"),
        ("Jobs", "UpdateJob", {**update, "spec": {"priority": 5000}, "update_mask": "spec.priority"}, ["priority", "found 5000"], invalid),
        ("Jobs", "CancelJob", {"name": "none-1"}, ["no such job"], missing),
        ("Jobs", "CancelJob", {"name": "tiny-1", "grace": "-1s"}, ["grace", "0 to 24h"], invalid),
        ("Jobs", "ResumeJob", {"name": "A"}, ["name"], invalid),
        ("Jobs", "DeleteJob", {"name": "tiny-1"}, ["not over"], "FAILED_PRECONDITION"),
        ("Jobs", "ListRounds", {"name": "tiny-1", "points_max": -1}, ["points_max", "-1"], invalid),
        ("Jobs", "ListRounds", {"name": "tiny-1", "page_size": 10**6 * -1}, ["page_size"], invalid),
        ("Jobs", "ListDecisions", {"name": "tiny-1", "newest": 10**6}, ["newest", "1000000"], invalid),
        ("Jobs", "RevertDecision", {"name": "tiny-1/decisions/x"}, ["name"], invalid),
        ("Jobs", "RevertDecision", {"name": "tiny-1/decisions/2-batch"}, ["is queued, allowed is a job that trains"], "FAILED_PRECONDITION"),
        ("Jobs", "GetDeviceValues", {"name": "tiny-1"}, ["is queued, allowed is a job that trains"], "FAILED_PRECONDITION"),
        ("Nodes", "GetNode", {"name": "a b"}, ["name", "a b"], invalid),
        ("Nodes", "GetNode", {"name": "nowhere"}, ["nowhere"], missing),
        ("Nodes", "ListNodes", {"page_size": -1}, ["page_size"], invalid),
        ("Nodes", "DrainNode", {"name": ""}, ["name"], invalid),
        ("Nodes", "DeleteNode", {"name": "a b"}, ["name", "a b"], invalid),
        ("Nodes", "DeleteNode", {"name": "nowhere"}, ["nowhere"], missing),
        ("Artifacts", "GetBlob", {"sha256": "x"}, ["sha256"], invalid),
        ("Admin", "SetLogLevel", {"level": "loud"}, ["level", "\"loud\""], invalid),
    )
