"""A Slurm of its own for a test: Debian's slurm-wlm with several slurmd on this machine's loopback, each a node."""
import os
import pathlib
import shutil
import socket
import subprocess
import time

from cluster import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
CONFIGURATION = """ClusterName=tactus
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmdTimeout=30
KillWait=5
NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first_port}-{last_port}] CPUs=4 RealMemory=2000
PartitionName=big Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
PartitionName=small Nodes=n3 MaxTime=INFINITE State=UP
"""


def missing():
    """Why there cannot be one here; empty: there can."""
    if os.geteuid() != 0:
        return "needs root, as slurmd does"
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"needs {', '.join(absent)} (apt-get install slurm-wlm munge)" if absent else ""


def free_ports(count):
    """The first of so many ports of loopback in a row that nobody has."""
    for first in range(20000 + os.getpid() % 5000, 32000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise AssertionError("no free ports")


class SlurmCluster:
    """Nodes n1 and n2 in the partition big, n3 in small."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "slurm"
        self.processes = []
        for name in ("munge", "ctld", "spool-n1", "spool-n2", "spool-n3"):
            (self.folder / name).mkdir(parents=True)
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        first = free_ports(4)
        configuration = self.folder / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=self.folder, ctld_port=first, first_port=first + 1, last_port=first + 3))
        os.environ["SLURM_CONF"] = str(configuration)
        munge = self.folder / "munge"
        self._start("munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}/socket",
                    f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        wait_until((munge / "socket").exists, 10, "munged serves")
        self._start("slurmctld", "slurmctld", "-D")
        for node in ("n1", "n2", "n3"):
            self._start(f"slurmd-{node}", "slurmd", "-D", "-N", node)
        wait_until(lambda: self.words("sinfo", "-h", "-o", "%T") == ["idle"], 60, "three nodes are idle")

    def _start(self, name, *command):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def words(self, *command):
        """What a command of Slurm prints, sorted, each word once; nothing where it fails."""
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return sorted(set(done.stdout.split())) if done.returncode == 0 else []

    def control(self, *words):
        done = subprocess.run(["scontrol", *words], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"scontrol {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def field(self, job, name):
        """Of `scontrol show job`; of a heterogeneous job of its first part."""
        return self.control("show", "job", str(job)).split(f" {name}=", 1)[1].split()[0]

    def state_of_node(self, name):
        return self.words("sinfo", "-h", "-n", name, "-o", "%T")

    def stop(self):
        subprocess.run(["scancel", "--user", "root"], capture_output=True, timeout=60)
        end = time.monotonic() + 30
        while self.words("squeue", "-h", "-o", "%i") and time.monotonic() < end:
            time.sleep(0.2)
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()
