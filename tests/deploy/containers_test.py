"""deploy/containers: Containerfiles by hadolint, what they and the compose file name, and the command lines in them by the
programs themselves. scripts/deploy-check gets what this needs; scripts/container-check makes an image."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HADOLINT = pathlib.Path(sys.executable).parent / "hadolint"
try:
    import yaml
except ImportError as failure:
    print(f"skipped: {failure.name} is not here; scripts/deploy-check gets it")
    sys.exit(77)
if not HADOLINT.exists():
    print("skipped: hadolint is not here; scripts/deploy-check gets it")
    sys.exit(77)

SOURCE = pathlib.Path(os.environ["TACTUS_SOURCE"])
BIN = pathlib.Path(os.environ["TACTUS_BIN"])
FOLDER = SOURCE / "deploy/containers"
FILES = (FOLDER / "Containerfile", FOLDER / "Containerfile.cuda")


class ContainersTest(unittest.TestCase):
    def setUp(self):
        self.compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
        self.bucket = yaml.safe_load((FOLDER / "compose.bucket.yaml").read_text())

    def test_hadolint_has_no_complaint(self):
        done = subprocess.run([HADOLINT, *FILES], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_what_is_copied_and_run_is_there(self):
        for path in FILES:
            text = path.read_text()
            for words in re.findall(r"^COPY (?!--from)(.+)$", text, re.M):
                for name in words.split()[:-1]:
                    self.assertTrue((SOURCE / name).exists(), f"{path.name}: {name}")
            for name in re.findall(r"deploy/containers/([\w-]+)", text):
                if "Containerfile" not in name:
                    self.assertTrue(os.access(FOLDER / name, os.X_OK), name)
                    subprocess.run(["bash", "-n", FOLDER / name], check=True)

    def test_nothing_runs_as_root(self):
        text = FILES[0].read_text()
        user = text.index("USER 10001:10001")
        self.assertNotIn("\nRUN", text[user:])
        self.assertIn("--uid 10001 --gid 10001", (FOLDER / "install-packages").read_text())
        self.assertIn("HEALTHCHECK", text)
        self.assertNotIn("USER", FILES[1].read_text())  # that of the image it is made of

    def test_scripts_are_clean(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("shellcheck is not here")
        scripts = [path for path in FOLDER.iterdir() if path.read_text().startswith("#!")]
        done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def ours(self):
        return {name: service for name, service in self.compose["services"].items() if "tactus" in service["image"]}

    def test_compose_names_files_that_are_there(self):
        mounts = [mount.split(":") for service in self.compose["services"].values() for mount in service.get("volumes", [])]
        for source, *_ in (mount for mount in mounts if mount[0].startswith(".")):
            self.assertTrue((FOLDER / source).exists(), source)
        named = {source for source, *_ in mounts if re.fullmatch(r"[\w-]+", source)}
        self.assertEqual(named, set(self.compose["volumes"]))
        data = yaml.safe_load((SOURCE / "deploy/grafana/provisioning/datasources/tactus.yml").read_text())
        mine = yaml.safe_load((FOLDER / "grafana-datasource.yml").read_text())
        self.assertEqual({**data["datasources"][0], "url": ""}, {**mine["datasources"][0], "url": ""})

    def test_compose_is_open_to_this_machine_alone(self):
        for name, service in self.compose["services"].items():
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), f"{name}: {port}")
        for name, service in self.ours().items():
            self.assertIs(service["read_only"], True, name)
            self.assertEqual(service["cap_drop"], ["ALL"], name)

    def test_the_programs_take_their_command_lines(self):
        for name, service in self.ours().items():
            words = service.get("entrypoint", []) + service["command"]
            extra = ["config", "show"] if words[0] != "tactus" else []
            words = words if extra else ["tactus", *words[1:-1], "--help"]
            environment = {key: str(value) for key, value in service.get("environment", {}).items()}
            done = subprocess.run([BIN / words[0], *words[1:], *extra], capture_output=True, text=True, env=environment, timeout=30)
            self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")
            if extra:  # each variable but that of the health check is read
                self.assertEqual(len(re.findall(r"# environment$", done.stdout, re.M)), len(environment) - 1, done.stdout)

    def test_a_bucket_is_the_coordinators_alone(self):
        self.assertEqual(set(self.bucket["services"]), {"coordinator"})
        environment = self.bucket["services"]["coordinator"]["environment"]
        given = {name: value for name, value in (("TACTUS_BLOBS", "s3://models/fleet"), ("TACTUS_BLOBS_REGION", "eu-west-1"),
                                                 ("TACTUS_BLOBS_ENDPOINT", "https://minio:9000")) if name in environment}
        self.assertEqual(set(given), {name for name in environment if name.startswith("TACTUS_")})
        keys = {name: "a-secret" for name in environment if name.startswith("AWS_")}
        done = subprocess.run([BIN / "tactus-coordinator", "config", "show"], capture_output=True, text=True, env={**given, **keys},
                              timeout=30)
        self.assertEqual(done.returncode, 0, done.stderr)
        for value in given.values():
            self.assertIn(value, done.stdout)
        self.assertNotIn("a-secret", done.stdout)

    def test_prometheus_configuration_is_what_it_reads(self):
        source = SOURCE / "deploy/prometheus/prometheus.yml"
        script = self.compose["services"]["prometheus"]["command"][0].split(" > ")[0].replace("/etc/tactus/prometheus.yml", str(source))
        text = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
        made = yaml.safe_load(text)
        self.assertEqual(made["rule_files"], ["/etc/tactus/recording.yml", "/etc/tactus/alerts.yml"], script)
        self.assertNotIn("127.0.0.1:7071", text)
        self.assertEqual([job.get("static_configs", job.get("http_sd_configs")) for job in made["scrape_configs"]], [
            [{"targets": ["coordinator:7071"]}], [{"url": "http://coordinator:7071/sd/agents", "refresh_interval": "30s"}]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
