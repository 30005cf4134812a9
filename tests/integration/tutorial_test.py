"""docs/tutorial.md, typed by a machine: its files are written, its commands run, in an empty folder."""
import os
import pathlib
import re
import subprocess
import unittest

from cluster import BIN, Folder, processes_of

TUTORIAL = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"(?P<before>[^\n]*)\n+```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.DOTALL)
NAMED = re.compile(r"[Ww]rite this to `([\w.]+)`:$")


def script():
    """The whole of it for bash: what is to be written, and what is to be typed, in order."""
    lines = ["set -eux"]
    for block in BLOCK.finditer(TUTORIAL.read_text()):
        named = NAMED.search(block["before"])
        if named:
            lines += [f"cat > {named[1]} <<'END'", block["text"].rstrip("\n"), "END"]
        elif block["kind"] == "console":
            lines += [line.removeprefix("$ ") for line in block["text"].splitlines()]
        else:
            raise AssertionError(f"a block of {block['kind']} that nobody is told to write: {block['before']!r}")
    return "\n".join(lines) + "\n"


class TutorialTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()

    def tearDown(self):
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def test_it_can_be_typed_from_the_beginning_to_the_end(self):
        home = self.folder.path / "home"
        home.mkdir()
        environment = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(home), "OMP_NUM_THREADS": "1"}
        log = self.folder.path / "typed.log"
        with open(log, "wb") as file:
            code = subprocess.run(["bash", "-c", script()], cwd=self.folder.path, env=environment, stdout=file,
                                  stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=600).returncode
        told = log.read_text(errors="replace")
        self.assertEqual(code, 0, told[-4000:])
        self.assertIn("% of what it has not seen", told)
        self.assertIn("spirals-1 trains the TorchScript model", told)
        self.assertTrue((self.folder.path / "fetched" / "model.pt").exists())


if __name__ == "__main__":
    unittest.main()
