"""What `cmake --install` makes of each component: which files, that programs find one another there, that units are sound,
and that a program elsewhere finds the client library."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["TACTUS_BUILD"])
SOURCE = pathlib.Path(os.environ["TACTUS_SOURCE"])
COMPONENTS = ("coordinator", "agent", "worker", "client", "dev", "monitoring", "doc")

OUTSIDE = """cmake_minimum_required(VERSION 3.25)
project(outside CXX)
find_package(tactus 0.1 REQUIRED)
add_executable(outside main.cc)
target_link_libraries(outside PRIVATE tactus::client)
"""
PROGRAM = """#include <client/api/client.h>
#include <runtime/status.h>
#include <cstdio>
int main() {
  tactus::api::Client client({.server = "127.0.0.1:1", .request_timeout = tactus::Seconds(0.2)});
  const auto job = client.GetJob("demo-1");
  std::printf("%s\\n", std::string(job.status().message()).c_str());
  return job.ok() ? 1 : 0;
}
"""


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
                          **options)


def install(component, prefix, destination=""):
    environment = {key: value for key, value in os.environ.items() if key != "DESTDIR"}
    if destination:
        environment["DESTDIR"] = str(destination)
    of = ("--component", component) if component else ()  # None: all of them
    done = run("cmake", "--install", BUILD, *of, "--prefix", prefix, env=environment)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tactus-install-"))
        cls.prefix = cls.folder / "opt"
        for component in COMPONENTS:
            install(component, cls.prefix)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_each_component_has_its_own_files(self):
        expected = {
            "coordinator": ["usr/bin/tactus-coordinator", "usr/lib/systemd/system/tactus-coordinator.service", "etc/tactus/coordinator.conf"],
            "agent": ["usr/bin/tactus-agent", "usr/lib/systemd/system/tactus-agent.service", "etc/tactus/agent.conf"],
            "worker": ["usr/libexec/tactus/tactus-worker"],
            "client": ["usr/bin/tactus", "usr/share/bash-completion/completions/tactus", "usr/share/zsh/vendor-completions/_tactus",
                       "usr/share/fish/vendor_completions.d/tactus.fish", "usr/share/man/man1/tactus.1.gz",
                       "usr/share/man/man1/tactus-submit.1.gz"],
            "dev": ["usr/lib/libtactus_client.a", "usr/lib/cmake/tactus/tactus-config.cmake", "usr/include/tactus/client/api/client.h",
                    "usr/share/tactus/proto/tactus/v1/jobs.proto"],
            "monitoring": ["usr/share/tactus/dashboards/tactus-fleet.json", "usr/share/tactus/dashboards/alerts.yml",
                           "usr/share/tactus/prometheus/prometheus.yml"],
            "doc": ["usr/share/doc/tactus/docs/operations.md", "usr/share/doc/tactus/examples/demo.yaml", "usr/share/doc/tactus/README.md"],
        }
        owner = {}
        for component in COMPONENTS:
            root = self.folder / f"root-{component}"
            install(component, "/usr", root)
            found = files(root)
            self.assertLessEqual(set(expected[component]), found, component)
            for name in found:
                self.assertNotIn(name, owner, f"{component} has a file of {owner.get(name)}")
                owner[name] = component
                self.assertTrue(name.startswith(("usr/", "etc/tactus/")), name)
        programs = {name for name in owner if pathlib.PurePath(name).parent.name in ("bin", "tactus") and name.startswith(("usr/bin", "usr/libexec"))}
        self.assertEqual(len(programs), 4, programs)

        install(None, "/usr", self.folder / "whole")
        self.assertEqual(files(self.folder / "whole"), set(owner))

    def test_no_program_looks_into_the_build(self):
        for path in (*self.prefix.glob("bin/*"), *self.prefix.glob("libexec/tactus/*")):
            told = run("readelf", "-d", path).stdout
            self.assertIn("(NEEDED)", told, path)
            self.assertNotRegex(told, "RPATH|RUNPATH", path)

    def test_programs_find_one_another_where_they_were_put(self):
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        done = run(self.prefix / "bin/tactus", "demo", "--seconds", 1, env=environment)

        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\nvalidation loss +\d")

    def test_the_agent_says_where_the_worker_is(self):
        done = run(self.prefix / "bin/tactus-agent", "--coordinator", "127.0.0.1:1", "config", "show")
        self.assertIn(f"worker-binary = {self.prefix}/libexec/tactus/tactus-worker ", done.stdout)

    def test_configuration_files_are_read_and_kept(self):
        for daemon, what in (("coordinator", "metrics-listen = 127.0.0.1:7071 "), ("agent", "coordinator = 127.0.0.1:7070 ")):
            path = self.prefix / f"etc/tactus/{daemon}.conf"
            done = run(self.prefix / f"bin/tactus-{daemon}", "--config", path, "config", "show")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(what, done.stdout)
            # Each line that is commented out is an option, too.
            bare = self.folder / f"{daemon}.conf"
            bare.write_text(re.sub(r"^#(\S+ = )", r"\1", path.read_text(), flags=re.M))
            done = run(self.prefix / f"bin/tactus-{daemon}", "--config", bare, "config", "show", env={"PATH": "/usr/bin:/bin"})
            self.assertNotIn("is unknown", done.stderr)
            edited = path.read_text() + "# mine\n"
            path.write_text(edited)
            install(daemon, self.prefix)
            self.assertEqual(path.read_text(), edited)

    def test_pages_are_readable(self):
        pages = sorted((self.prefix / "share/man/man1").glob("*.gz"))
        self.assertGreater(len(pages), 25)
        for page in pages:
            text = run("gzip", "-dc", page).stdout
            self.assertTrue(".SH NAME" in text, page)
            self.assertNotIn(str(BUILD), text, page)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze")
    def test_units_are_sound_and_hardened(self):
        for daemon, exposure_max in (("coordinator", 2.0), ("agent", 5.0)):
            unit = self.prefix / f"lib/systemd/system/tactus-{daemon}.service"
            done = run("systemd-analyze", "verify", "--man=no", unit)
            said = [line for line in (done.stdout + done.stderr).splitlines() if f"tactus-{daemon}" in line]
            self.assertEqual((done.returncode, said), (0, []), done.stderr)
            done = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
            exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
            self.assertTrue(exposure, done.stdout + done.stderr)
            self.assertLessEqual(float(exposure[1]), exposure_max, done.stdout)
            if daemon == "agent":  # openat2 is ENOSYS then, and no worker is started
                self.assertNotIn("\nRestrictSUIDSGID=yes", unit.read_text())

    def test_a_program_elsewhere_finds_the_client_library(self):
        outside = self.folder / "outside"
        outside.mkdir()
        (outside / "CMakeLists.txt").write_text(OUTSIDE)
        (outside / "main.cc").write_text(PROGRAM)
        done = run("cmake", "-G", "Ninja", "-S", outside, "-B", outside / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run("cmake", "--build", outside / "build")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run(outside / "build/outside")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("127.0.0.1:1", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
