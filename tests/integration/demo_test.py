"""`tactus demo`: a first job without any file, of which nothing is left."""
import os
import signal
import subprocess
import unittest

from cluster import BIN, Folder, processes_of


class DemoTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.temporary = self.folder.path / "tmp"
        self.temporary.mkdir()
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.folder.path / "state"), "TMPDIR": str(self.temporary)}

    def tearDown(self):
        left = processes_of(self.folder.path)
        self.folder.remove()
        self.assertEqual(left, [], "processes were left running")

    def start(self, *words):
        return subprocess.Popen([str(BIN / "tactus"), "demo", *map(str, words)], env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)

    def files(self):
        return [path for path in self.folder.path.rglob("*") if path.is_file()]

    def test_two_runs_are_compared_and_nothing_is_left(self):
        process = self.start("--seconds", 2)
        out, err = process.communicate(timeout=120)

        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(out.count("\n$ tactus run "), 2, out)
        self.assertRegex(out, r"\n +EQUAL +BY SPEED\nrounds +\d[\d,]* +\d[\d,]*\nsamples/s +\S+ +\S+\n"
                              r"training loss +\d\.\d{4} +\d\.\d{4}\nvalidation loss +\d\.\d{4} +\d\.\d{4}\n")
        self.assertEqual(self.files(), [])

    def test_what_was_trained_is_kept_where_that_is_asked_for(self):
        kept = self.folder.path / "kept"
        process = self.start("--seconds", 1, "--output", kept)
        out, err = process.communicate(timeout=120)

        self.assertEqual(process.returncode, 0, out + err)
        names = {str(path.relative_to(kept)) for path in self.files()}
        self.assertLessEqual({"demo.yaml", "sums.txt", "fixed/model.pt", "proportional/model.pt", "proportional/summary.json"}, names)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_an_interrupt_ends_it_without_a_trace(self):
        process = self.start("--seconds", 600)
        while "elapsed" not in (line := process.stdout.readline()):
            self.assertTrue(line, "it ended by itself")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

        self.assertEqual(process.returncode, 130, out + err)
        self.assertNotIn("Batches by speed", out)
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
