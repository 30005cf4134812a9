"""What the shared library asks of the machine that it is carried to, and what it shows of itself."""
import os
import re
import subprocess
import unittest

LIBRARY = os.environ["TACTUS_SDK_LIBRARY"]

# The C library's, and Debian's Abseil, which auditwheel puts into a wheel.
ALLOWED = re.compile(r"(libc|libm|libpthread|libdl|librt|ld-linux-.*|libabsl_\w+)\.so(\.\d+)*")


class LibraryTest(unittest.TestCase):
    def ask(self, *command):
        return subprocess.run([*command, LIBRARY], check=True, capture_output=True, text=True).stdout

    def test_it_needs_the_c_library_alone(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", self.ask("readelf", "-d"))
        self.assertIn("libc.so.6", needed)
        self.assertEqual([name for name in needed if not ALLOWED.fullmatch(name)], [])

    def test_it_is_found_nowhere_by_a_path_of_the_machine_that_built_it(self):
        self.assertNotRegex(self.ask("readelf", "-d"), r"\((RUNPATH|RPATH)\)")

    def test_it_shows_its_interface_alone(self):
        shown = [line.split()[-1] for line in self.ask("nm", "-D", "--defined-only").splitlines()]
        self.assertIn("tactus_open", shown)
        self.assertEqual([name for name in shown if not name.startswith("tactus_")], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
