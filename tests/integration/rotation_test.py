"""While a job trains: certificates of half a minute are renewed by themselves, one authority takes the place of another, and a
node is revoked. No round is lost but the revoked node's."""
import json
import os
import shutil
import subprocess
import time
import unittest

from cluster import BIN, Cluster, Folder, processes_of, tiny_spec, wait_until

LIFE = 30  # seconds that a certificate is valid, the least that there may be, and that a rotation takes until the new key signs
NODES = ("a", "b", "c")


def openssl(*words):
    return subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=True, timeout=20).stdout


def key_that_signed(certificate):
    text = openssl("x509", "-in", certificate, "-noout", "-ext", "authorityKeyIdentifier")
    return text.split("keyid:")[-1].strip()


def serial(folder):
    return openssl("x509", "-in", folder / "cert.pem", "-noout", "-serial")


class RotationTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.corpus = self.folder.corpus()
        self.cluster = Cluster(self.folder.path)
        self.ca = self.folder.path / "ca"
        self.tls = {who: self.folder.path / f"{who}-tls" for who in ("coordinator", "admin", "user", *NODES)}
        self.cluster.tls = self.tls

    def tearDown(self):
        self.cluster.stop()
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def tactus(self, *words, code=0):
        done = subprocess.run([str(BIN / "tactus"), *map(str, words)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "XDG_CONFIG_HOME": str(self.folder.path / "config")})
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def token(self, *words):
        return self.cluster.tactus("admin", "token", *words, who="admin")[1].split()

    def start(self):
        """A coordinator with an authority, three nodes and a user, who all come by tokens."""
        self.tactus("admin", "init-ca", "--out", self.ca)
        self.tactus("admin", "issue", "--user", "admin", "--ca", self.ca, "--out", self.tls["admin"])
        self.cluster.start_coordinator(options=["--ca-dir", self.ca, "--certificate-life", f"{LIFE}s"])
        for node, token in zip(NODES, self.token(*(word for node in NODES for word in ("--node", node)))):
            self.cluster.start_agent(node, 1, options=["--join", token])
        self.tactus("login", "--server", self.cluster.address, "--tls-dir", self.tls["user"],
                    "--token", self.token("--user", "alice")[0])
        wait_until(lambda: len(self.cluster.tactus("get", "nodes", "-o", "name")[1].split()) == 3, 30, "all joined")

    def rounds(self, job):
        return int(self.cluster.job(job).get("progress", {}).get("rounds", 0))

    def log(self, name):
        return (self.folder.path / f"{name}.log").read_text()

    def trains(self, job):
        so_far = self.rounds(job)
        wait_until(lambda: self.rounds(job) > so_far + 20, 60, "it trains")

    def test_no_round_is_lost_but_the_revoked_nodes(self):
        self.start()
        job = self.cluster.submit({**tiny_spec(self.corpus, time="20m"), "workers": {"min": 1, "max": 3}})
        wait_until(lambda: self.rounds(job) >= 20, 60, "it trains")
        self.assertEqual(len(self.cluster.job(job)["attempts"][-1]["nodes"]), 3)
        of_before = self.folder.path / "admin-of-before"
        shutil.copytree(self.tls["admin"], of_before)
        first = {who: serial(folder) for who, folder in self.tls.items()}
        old_key = key_that_signed(self.tls["a"] / "cert.pem")

        rotated = time.monotonic()
        self.tactus("admin", "rotate-ca", "--ca", self.ca, "--over", f"{LIFE}s")
        self.assertIn("a rotation is under way", self.tactus("admin", "rotate-ca", "--ca", self.ca, code=2))

        # Everybody has another certificate of the new key before the old one is trusted no more; the user by using it.
        def all_signed_anew():
            self.rounds(job)
            return all(key_that_signed(self.tls[who] / "cert.pem") != old_key for who in ("coordinator", "user", *NODES))
        wait_until(all_signed_anew, 3 * LIFE, "the new key has signed all certificates")
        # The user's is renewed by use alone.
        wait_until(lambda: self.rounds(job) > 0 and time.monotonic() > rotated + 2 * LIFE + 12, 3 * LIFE,
                   "the old key is trusted no more")
        self.trains(job)
        progress = self.cluster.job(job)
        self.assertEqual(int(progress.get("regroups", 0)), 0)
        self.assertEqual(len(progress["attempts"]), 1)
        self.assertEqual(int(progress["progress"].get("unrecorded_rounds", 0)), 0)
        for who in ("coordinator", "user", *NODES):
            self.assertNotEqual(serial(self.tls[who]), first[who], who)
        # A certificate of days that the old key has signed is worth nothing now.
        self.cluster.tls = {**self.tls, "admin": of_before}
        self.assertNotEqual(self.cluster.tactus("get", "jobs", "--request-timeout", "3s", who="admin", check=False)[0], 0)
        self.cluster.tls = self.tls

        revoked = time.monotonic()
        self.tactus("admin", "revoke", "--node", "c", "--in", self.tls["coordinator"])
        wait_until(lambda: self.cluster.job(job)["attempts"][-1]["nodes"] == ["a", "b"], 60, "the others go on")
        self.assertLess(time.monotonic() - revoked, 60)
        self.trains(job)
        progress = self.cluster.job(job)
        self.assertEqual((int(progress["regroups"]), len(progress["attempts"])), (1, 1))  # without a new beginning
        # Its name is renewed no more, and a token makes it no new one.
        wait_until(lambda: "certificate not renewed" in self.log("c"), LIFE + 10, "it was told")
        self.assertIn("that of node/c is revoked", self.log("c"))
        self.tactus("admin", "issue", "--user", "admin", "--ca", self.ca, "--out", self.folder.path / "again")
        self.cluster.tls = {**self.tls, "admin": self.folder.path / "again"}
        self.tls["d"] = self.folder.path / "d-tls"
        self.cluster.tls["d"] = self.tls["d"]
        token = self.token("--node", "c")[0]
        agent = self.agent("--join", token)
        self.assertEqual(agent.returncode, 78, agent.stderr)
        self.assertIn("that of node/c is revoked", agent.stderr)
        self.trains(job)

    def agent(self, *words):
        return subprocess.run([str(BIN / "tactus-agent"), "--coordinator", self.cluster.address, "--tls-dir", str(self.tls["d"]),
                               "--state-dir", str(self.folder.path / "d"), *words], capture_output=True, text=True, timeout=90)

    def test_a_token_that_is_not_good_is_told_in_one_line(self):
        self.tactus("admin", "init-ca", "--out", self.ca)
        self.tactus("admin", "init-ca", "--out", self.folder.path / "other")
        self.tactus("admin", "issue", "--user", "admin", "--ca", self.ca, "--out", self.tls["admin"])
        self.cluster.start_coordinator(options=["--ca-dir", self.ca])
        self.tls["d"] = self.folder.path / "d-tls"
        good = self.token("--node", "d")[0]
        begin, pin, secret = good.split("-")
        guessed = f"{begin}-{pin}-{'0' * len(secret)}"
        of_another = f"{begin}-{'0' * len(pin)}-{secret}"
        for token, says in ((guessed, "token: is not one of this coordinator's; tactus admin token makes another"),
                            (of_another, "is not the coordinator whose authority the token pins; nothing was sent to it"),
                            ("x", "token: is none; allowed is tactus1-..., as tactus admin token prints it")):
            agent = self.agent("--join", token)
            self.assertEqual(agent.returncode, 78, agent.stderr)
            self.assertIn(says, agent.stderr)
            said = [line for line in agent.stderr.splitlines() if line.startswith("tactus-agent: ")]
            self.assertEqual(len(said), 1, agent.stderr)
            self.assertFalse((self.tls["d"] / "cert.pem").exists())
        self.cluster.start_agent("d", 1, options=["--join", good])
        wait_until(lambda: self.cluster.tactus("get", "nodes", "-o", "name", who="admin")[1].split() == ["d"], 20, "it joined")
        # Used up, but for whoever has the key; and what was enrolled needs it no more.
        self.cluster.kill("d")
        self.assertIn("token: was used already", self.tactus("login", "--server", self.cluster.address, "--token", good, code=5))
        self.cluster.start_agent("d", 1, options=["--join", good])
        wait_until(lambda: self.log("d").count("coordinator connected") == 2, 20, "it came back")
        self.assertFalse((self.folder.path / "config" / "tactus" / "config.yaml").exists())
        # Not an admin, no token.
        self.tactus("login", "--server", self.cluster.address, "--name", "lab", "--token", self.token("--user", "bob")[0])
        self.assertIn("it asks for a admin", self.tactus("admin", "token", "--user", "eve", code=5))
        self.assertEqual(self.tactus("get", "nodes", "-o", "name").split(), ["d"])
        self.cluster.stop()
        lines = [json.loads(line) for line in
                 self.tactus("admin", "audit", "--state-dir", self.folder.path / "coordinator").splitlines()]
        enrolled = [(line["who"], line["about"], line["code"]) for line in lines if line["method"] == "Enrolment/Enrol"]
        self.assertIn(("stranger", "node/d", "OK"), enrolled)
        self.assertIn(("stranger", "", "UNAUTHENTICATED"), enrolled)

    def test_without_an_authority_nobody_is_enrolled(self):
        self.tactus("admin", "init-ca", "--out", self.ca)
        for who, words in (("coordinator", ["--coordinator"]), ("admin", ["--user", "admin"])):
            self.tactus("admin", "issue", *words, "--ca", self.ca, "--out", self.tls[who])
        self.cluster.start_coordinator()
        code, _, err = self.cluster.tactus("admin", "token", "--node", "d", who="admin", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("this coordinator has no authority (--ca-dir), and gives no certificates", err)


if __name__ == "__main__":
    unittest.main()
