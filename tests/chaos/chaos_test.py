"""A short campaign of the chaos suite, some faults of each kind; and that nothing of one is left when it is interrupted.
scripts/chaos makes longer ones."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import room

HERE = pathlib.Path(__file__).resolve().parent
SHORT = ["--faults", "9", "--nodes", "2", "--devices", "1", "--jobs", "1", "--plans", "every step", "--runs", "2",
         "--epochs", "1", "--corpus", "200000", "--every", "0.5", "--longest", "2", "--at-once", "2"]
START_SECONDS = 120


def mounts():
    return pathlib.Path("/proc/self/mountinfo").read_text().count("tactus-chaos-")


def cgroups():
    return [path for root in room.CGROUPS for path in root.glob("tactus-chaos-*")]


def processes_of(folder):
    """Those that have the room's folder in their words or their environment."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if folder.encode() in told:
                found.append(entry.name)
    return found


class ChaosTest(unittest.TestCase):
    def begin(self, *words):
        return subprocess.Popen([sys.executable, "-B", HERE / "campaign.py", *SHORT, *words], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def keeps_promises(self, *words):
        campaign = self.begin("--seed", os.environ.get("TACTUS_CHAOS_SEED", "1"), *words)
        out = campaign.communicate()[0]
        print(out)
        self.assertEqual(campaign.returncode, 0)

    def test_promises_are_kept(self):
        self.keeps_promises()

    def test_promises_are_kept_of_programs(self):
        self.keeps_promises("--plans", "program")

    def test_nothing_is_left_of_one_that_is_interrupted(self):
        campaign = self.begin()
        folder = campaign.stdout.readline().split()[-1]  # it says so first
        for line in campaign.stdout:
            if "without a fault" in line:
                break
        self.assertNotEqual(processes_of(folder), [])

        campaign.send_signal(signal.SIGINT)

        campaign.communicate()
        self.assertEqual(campaign.returncode, room.INTERRUPTED)
        deadline = time.monotonic() + START_SECONDS
        while processes_of(folder) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(processes_of(folder), [])
        self.assertFalse(pathlib.Path(folder).exists())
        self.assertEqual((mounts(), cgroups()), (0, []))


if __name__ == "__main__":
    if reason := room.why_none():
        print(f"chaos: {reason}")
        sys.exit(room.SKIPPED)
    unittest.main(verbosity=2)
