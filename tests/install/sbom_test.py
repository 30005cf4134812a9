"""scripts/sbom: what it says of a package and of what that needs, as this machine's dpkg knows it."""
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TACTUS_SOURCE"])


class SbomTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "root/DEBIAN").mkdir(parents=True)
            (folder / "root").chmod(0o755)
            (folder / "root/DEBIAN/control").write_text(
                "Package: tactus-worker\nVersion: 1.2\nArchitecture: all\nMaintainer: Somebody <a@b.c>\n"
                "Depends: libnothing-of-that-name | libc6 (>= 2.34), libalso-nothing\nDescription: for a test\n")
            cls.package = folder / "tactus-worker_1.2_all.deb"
            subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder / "root", cls.package], check=True, capture_output=True)
            cls.wheel = folder / "tactus_train-1.2-py3-none-any.whl"
            cls.wheel.write_bytes(b"a wheel")
            cls.hash = hashlib.sha256(cls.package.read_bytes()).hexdigest()
            environment = {**os.environ, "SOURCE_DATE_EPOCH": "86400"}
            cls.texts = [subprocess.run(["/usr/bin/python3", "-B", SOURCE / "scripts/sbom", cls.package, cls.wheel], check=True,
                                        capture_output=True, text=True, env=environment).stdout for _ in range(2)]
        cls.document = json.loads(cls.texts[0])
        cls.packages = {package["name"]: package for package in cls.document["packages"]}
        cls.relations = {(one["spdxElementId"], one["relationshipType"], one["relatedSpdxElement"])
                         for one in cls.document["relationships"]}

    def test_it_names_the_files_with_their_hashes(self):
        self.assertEqual(self.packages["tactus-worker"]["checksums"], [{"algorithm": "SHA256", "checksumValue": self.hash}])
        self.assertEqual(self.packages["tactus-worker"]["versionInfo"], "1.2")
        self.assertEqual(self.packages["tactus-train"]["packageFileName"], self.wheel.name)
        for name in ("tactus-worker", "tactus-train"):
            self.assertIn(("SPDXRef-DOCUMENT", "DESCRIBES", f"SPDXRef-{name}"), self.relations)

    def test_it_follows_what_is_needed(self):
        version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libc6"], capture_output=True, text=True).stdout
        self.assertEqual(self.packages["libc6"]["versionInfo"], version)
        self.assertIn(("SPDXRef-tactus-worker", "DEPENDS_ON", "SPDXRef-libc6"), self.relations)
        self.assertIn(("SPDXRef-libc6", "DEPENDS_ON", "SPDXRef-libgcc-s1"), self.relations)
        self.assertNotIn("libalso-nothing", self.packages)

    def test_what_is_compiled_in_is_told_apart(self):
        self.assertIn(("SPDXRef-tactus-worker", "STATIC_LINK", "SPDXRef-nlohmann-json3-dev"), self.relations)

    def test_every_relation_is_of_packages_that_are_listed(self):
        known = {package["SPDXID"] for package in self.document["packages"]} | {"SPDXRef-DOCUMENT"}
        self.assertLessEqual({end for one, _, other in self.relations for end in (one, other)}, known)
        self.assertEqual(len(known), len(self.packages) + 1, "two packages of one identifier")

    def test_equal_packages_give_equal_documents(self):
        self.assertEqual(*self.texts)
        self.assertEqual(self.document["creationInfo"]["created"], "1970-01-02T00:00:00Z")


if __name__ == "__main__":
    unittest.main(verbosity=2)
