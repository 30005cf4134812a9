"""docs/tutorial.md, typed by a machine: its files are written, its commands run, in an empty folder."""
import pathlib
import re
import socket
import subprocess
import unittest

from cluster import BIN, Folder, processes_of

TUTORIAL = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"(?P<before>[^\n]*)\n+```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.DOTALL)
NAMED = re.compile(r"[Ww]rite this to `([\w.]+)`:$")


def script():
    """The whole of it for bash: what is to be written, and what is to be typed, in order. Who types takes a moment after what
    goes on in the background, and ends that in any case."""
    lines = ["set -eux", "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT"]
    for block in BLOCK.finditer(TUTORIAL.read_text()):
        named = NAMED.search(block["before"])
        if named:
            lines += [f"cat > {named[1]} <<'END'", block["text"].rstrip("\n"), "END"]
        elif block["kind"] == "console":
            for line in block["text"].splitlines():
                lines += [line.removeprefix("$ "), *(["sleep 2"] if " & " in line else [])]
        else:
            raise AssertionError(f"a block of {block['kind']} that nobody is told to write: {block['before']!r}")
    typed = "\n".join(lines) + "\n"
    for port in ("7071", "7072"):
        typed = typed.replace(port, str(free_port()))
    return typed


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


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
