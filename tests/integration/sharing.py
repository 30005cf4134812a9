"""Two coordinators over one PostgreSQL, agents and a load: what tests/integration/takeover_test.py and bench/takeover do
to them, and what has to hold afterwards."""
import json
import signal
import subprocess
import sys
import threading
import time

from cluster import BIN, SOURCE, Cluster, tiny_spec, wait_until

sys.path.insert(0, str(SOURCE / "tests/support"))
from postgres import Postgres, missing  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

# Who wrote, as the server itself saw it: the name of the connection has the holder of a term. Transactions are in the
# order of their locks of that term's row.
HISTORY = """
CREATE TABLE history (place BIGSERIAL PRIMARY KEY, writer TEXT NOT NULL, epoch BIGINT NOT NULL, jobs TEXT NOT NULL);
CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO history (writer, epoch, jobs) VALUES (current_setting('application_name'),
    (SELECT max(epoch) FROM terms), NEW.name);
  RETURN NEW; END $$;
CREATE TRIGGER remember AFTER INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION remember();
"""


class SharedCluster(Cluster):
    """Coordinators `one` and `two`, which share a database, and a folder of files or what `files` says."""

    def __init__(self, folder, database, lease, files=None):
        super().__init__(folder)
        self.files = files or ["--files-dir", self.folder / "files"]
        self.database = database
        self.lease = lease
        self.addresses = {}

    def start_sharing(self, name):
        address_file = self.folder / f"{name}.address"
        address_file.unlink(missing_ok=True)
        self._start(name, [BIN / "tactus-coordinator", "--listen", self.addresses.get(name, "127.0.0.1:0"),
                           "--state-dir", self.folder / name, *self.files, "--store", self.database.address, "--lease",
                           self.lease, "--metrics-listen", "off", "--address-file", address_file])
        wait_until(lambda: address_file.exists() or self.processes[name].poll() is not None, 20, f"{name} listens")
        if not address_file.exists():
            raise AssertionError(f"{name} ended: {self.log(name)[-2000:]}")
        self.addresses[name] = address_file.read_text().split()[0].removeprefix("grpc=")

    def start_both(self):
        self.start_sharing("one")
        wait_until(self.leader, 20, "one leads")
        self.start_sharing("two")
        self.address = ",".join(self.addresses.values())
        wait_until(lambda: self.tactus("get", "jobs", check=False)[0] == 0, 20, "the API answers")

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def leader(self):
        """Name of who leads by the database; None: nobody."""
        if self.database.query("SELECT to_regclass('terms') IS NULL")[0][0] == "t":
            return None
        rows = self.database.query("SELECT address FROM terms WHERE ended IS NULL ORDER BY epoch DESC LIMIT 1")
        return next((name for name, address in self.addresses.items() if rows and rows[0][0] == address), None)

    def epoch(self):
        return int(self.database.query("SELECT max(epoch) FROM terms")[0][0])

    def workers(self, *agents):
        """Coordinators have none."""
        return super().workers(*(agents or [name for name in self.processes if name not in self.addresses]))


class Load:
    """Submits jobs that will wait for ever, one after the other in each of a few threads; remembers those that were
    acknowledged, and when."""

    def __init__(self, cluster, spec, threads=4):
        self.cluster = cluster
        self.path = cluster.folder / "load.yaml"
        self.path.write_text(json.dumps(spec))
        self.acknowledged = []  # (time, name)
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        while not self.stopping.is_set():
            done = subprocess.run([BIN / "tactus", "--server", self.cluster.address, "submit", self.path, "-o", "name"],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0:
                self.acknowledged.append((time.monotonic(), done.stdout.strip().rsplit("/", 1)[-1]))
            else:
                self.stopping.wait(0.05)

    def since(self, moment):
        """The first acknowledgement after the moment; None: none yet."""
        return next((when for when, _ in list(self.acknowledged) if when > moment), None)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)


class Takeovers:
    """Kills and pauses of whoever leads, while a job trains and others are submitted."""

    def __init__(self, folder, database, lease="2s"):
        self.folder = folder
        self.database = database
        self.cluster = SharedCluster(folder.path, database, lease)
        self.load = None

    def begin(self, seconds=600):
        """Starts all of it; the job trains for so long."""
        self.cluster.start_both()
        self.database.query(HISTORY)
        for node in ("a", "b"):
            self.cluster.start_agent(node, 1)
        corpus = self.folder.corpus()
        self.job = self.cluster.submit(tiny_spec(corpus, time=f"{seconds}s"))
        self.cluster.wait(self.job, ["RUNNING"])
        wait_until(lambda: self.rounds() > 0, 60, "rounds are reported")
        self.workers = sorted(self.cluster.workers())
        waiting = tiny_spec(corpus)
        waiting["workers"] = {"min": 50, "max": 50}
        self.load = Load(self.cluster, waiting)
        wait_until(lambda: len(self.load.acknowledged) > 3, 60, "the load runs")

    def rounds(self):
        code, out, _ = self.cluster.tactus("get", "job", self.job, "-o", "json", check=False)
        return int(json.loads(out).get("progress", {}).get("rounds", 0)) if code == 0 else -1

    def take(self, number):
        """Sends whoever leads SIGKILL or SIGSTOP; returns the seconds until a call was acknowledged again, and until
        rounds that were trained afterwards were reported to the other."""
        cluster = self.cluster
        former = cluster.leader()
        before, epoch = self.rounds(), cluster.epoch()
        moment = time.monotonic()
        cluster.signal(former, number)
        wait_until(lambda: cluster.epoch() > epoch and cluster.leader() not in (None, former), 60, "the other leads")
        led = time.monotonic() - moment
        acknowledged = wait_until(lambda: self.load.since(moment + led), 60, "calls are acknowledged") - moment
        wait_until(lambda: self.rounds() > before, 90, "rounds are reported")
        decided = time.monotonic() - moment
        if number == signal.SIGKILL:
            cluster.kill(former)
            cluster.start_sharing(former)
        else:
            said = [cluster.log(former).count(words) for words in ("leads no more", "standing by")]
            cluster.signal(former, signal.SIGCONT)
            wait_until(lambda: all(cluster.log(former).count(words) > count for words, count in
                                   zip(("leads no more", "standing by"), said)), 30, "it steps down and stands by")
        return led, acknowledged, decided

    def check(self):
        """Stops the load; returns figures, or fails with what does not hold."""
        self.load.stop()
        cluster = self.cluster
        assert sorted(cluster.workers()) == self.workers, "the workers are not those of before"
        job = cluster.job(self.job)
        assert job["state"] == "JOB_STATE_RUNNING", job["state"]
        names = [name for _, name in self.load.acknowledged]
        assert len(set(names)) == len(names), "two jobs have one name"
        stored = {name for name, in self.database.query("SELECT name FROM jobs")}
        lost = set(names) - stored
        assert not lost, f"acknowledged and lost: {sorted(lost)[:5]}"
        listed = cluster.tactus("get", "jobs", "--limit", "100000", "-o", "name")[1].split()
        assert set(names) <= {name.rsplit("/", 1)[-1] for name in listed}, "acknowledged and not listed"
        writes, two = self.history()
        assert not two, f"two wrote in turns: {two}"
        late = self.database.query("SELECT count(*) FROM terms AS a JOIN terms AS b ON b.epoch > a.epoch"
                                   "  WHERE a.ended IS NULL OR a.last_write > b.begun")
        assert late[0][0] == "0", f"terms that overlap: {late}"
        return {"acknowledged": len(names), "writes": writes, "terms": cluster.epoch()}

    def history(self):
        """How many rows were written, and the writers who wrote again after another had."""
        writers, again = [], []
        rows = self.database.query("SELECT writer FROM history ORDER BY place")
        for writer, in rows:
            if writers and writers[-1] == writer:
                continue
            if writer in writers:
                again.append(writer)
            writers.append(writer)
        return len(rows), again

    def stop(self):
        if self.load:
            self.load.stop()
        self.cluster.stop()
