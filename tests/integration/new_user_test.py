"""A new user: a cluster of three machines, each a network namespace, from nothing to a trained job with TLS, by the commands
of docs/security.md to the letter. Needs root, or user namespaces; exit code 77: there are none here."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "chaos"))
import room  # noqa: E402
from cluster import BIN, SOURCE, Folder, tiny_spec, wait_until  # noqa: E402

COMMANDS_MAX = 6
SECTION = "## From nothing to a cluster with TLS"
NET = "10.215.0."
ADDRESSES = {"coordinator": NET + "1", "gpu-7": NET + "2", "gpu-8": NET + "3"}


def documented():
    """[(host, command)]: of the section's first block of code. A comment "on NAME" says where; else on the coordinator's."""
    text = (SOURCE / "docs" / "security.md").read_text()
    block = re.search(r"```\n(.*?)```", text.split(SECTION, 1)[1], re.S).group(1)
    found = []
    for line in block.splitlines():
        command, _, comment = line.partition("#")
        on = re.match(r"\s*on ([a-z0-9-]+)", comment)
        found.append((on.group(1) if on and on.group(1) in ADDRESSES else "coordinator", command.split()))
    return found


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


class Machines:
    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        run("ip", "link", "add", "name", "bridge0", "type", "bridge")
        run("ip", "link", "set", "bridge0", "up")
        for number, (name, address) in enumerate(ADDRESSES.items()):
            (folder / name).mkdir()
            run("ip", "netns", "add", name)
            run("ip", "link", "add", "name", f"host{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"host{number}", "master", "bridge0", "up")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            for link in ("eth0", "lo"):
                run("ip", "-n", name, "link", "set", link, "up")

    def words(self, host, command):
        return ["nsenter", f"--net=/run/netns/{host}", str(BIN / command[0]), *command[1:]]

    def surroundings(self, host):
        """Its own folders, and in them nothing."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("TACTUS_", "XDG_"))}
        return {"cwd": self.folder / host, "env": {**clean, "HOME": str(self.folder / host)}}

    def start(self, host, command):
        with open(self.folder / f"{host}-{command[0]}.log", "wb") as log:
            self.daemons.append(subprocess.Popen(self.words(host, command), stdout=log, stderr=log, **self.surroundings(host)))

    def call(self, host, command, seconds=180):
        done = subprocess.run(self.words(host, command), capture_output=True, text=True, timeout=seconds, check=False,
                              **self.surroundings(host))
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def stop(self):
        """The agents say goodbye to a coordinator that is there."""
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait(30)


def play(folder):
    commands = documented()
    corpus = Folder(folder).corpus()
    machines = Machines(folder)
    job = folder / "coordinator" / "job.yaml"
    job.write_text(json.dumps({**tiny_spec(corpus, rounds=100), "workers": {"min": 2, "max": 2}}))
    places = {"HOST": ADDRESSES["coordinator"], "GPU_7": ADDRESSES["gpu-7"], "GPU_8": ADDRESSES["gpu-8"]}
    tokens = []
    begin = time.monotonic()
    for host, words in commands:
        words = [re.sub(r"\b(HOST|GPU_7|GPU_8)\b", lambda found: places[found.group()], word) for word in words]
        words = [tokens.pop(0) if word == "TOKEN" else word for word in words]
        if words[0] != "tactus":
            machines.start(host, words)
        elif words[1:3] == ["admin", "token"]:
            wait_until(lambda: "serving" in (folder / "coordinator-tactus-coordinator.log").read_text(), 20, "it serves")
            tokens = machines.call(host, words).split()
        else:
            machines.call(host, words)
    seconds = time.monotonic() - begin

    trained = json.loads(machines.call("coordinator", ["tactus", "get", "jobs", "-o", "json"]))["jobs"]
    assert [one["state"] for one in trained] == ["JOB_STATE_SUCCEEDED"], trained
    assert trained[0]["owner"] == "user/admin", trained
    machines.call("coordinator", ["tactus", "download", trained[0]["name"], "--to", str(folder / "result")])
    assert (folder / "result" / "model.pt").stat().st_size > 0
    for node in ("gpu-7", "gpu-8"):
        assert f"holder=node/{node}" in (folder / f"{node}-tactus-agent.log").read_text()
    machines.stop()
    print(f"new user: {len(commands)} commands, {seconds:.1f} s from nothing to a trained job")
    assert len(commands) <= COMMANDS_MAX, f"{len(commands)} commands; the aim is {COMMANDS_MAX}"


if __name__ == "__main__":
    play(room.enter())
