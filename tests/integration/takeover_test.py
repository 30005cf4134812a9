"""Two coordinators over one PostgreSQL: whoever leads is killed or paused under load, and the other goes on. bench/takeover
does the same fifty times each."""
import signal
import subprocess
import sys
import time
import unittest

from cluster import BIN, Folder, wait_until
from sharing import Postgres, Takeovers, missing


class TakeoverTest(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.remove)
        self.database = Postgres().start()
        self.addCleanup(self.database.remove)
        self.takeovers = Takeovers(self.folder, self.database)
        self.addCleanup(self.takeovers.stop)
        self.takeovers.begin()

    def test_whoever_leads_may_be_killed_or_paused(self):
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGKILL, signal.SIGSTOP):
            led, acknowledged, decided = self.takeovers.take(number)
            print(f"{number.name}: leads after {led:.1f} s, calls after {acknowledged:.1f} s, "
                  f"rounds after {decided:.1f} s", flush=True)
            self.assertLess(led, 10)
        figures = self.takeovers.check()
        print(figures, flush=True)
        self.assertGreater(figures["acknowledged"], 10)

    def test_one_that_stands_by_says_who_leads_and_one_that_stops_gives_way_at_once(self):
        cluster = self.takeovers.cluster
        former = cluster.leader()
        other = next(name for name in cluster.addresses if name != former)

        done = subprocess.run([BIN / "tactus", "--server", cluster.addresses[other], "get", "jobs"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn(f"stands by; {cluster.addresses[former]} leads", done.stderr)

        cluster.signal(former, signal.SIGTERM)
        wait_until(lambda: cluster.leader() == other, 5, "the other leads")
        self.assertEqual(cluster.processes.pop(former).wait(20), 0)
        self.takeovers.check()

    def test_a_database_that_restarts_is_waited_for(self):
        self.database.stop()
        time.sleep(5)  # longer than a lease
        self.assertEqual(self.takeovers.rounds(), -1)
        self.database.start()
        moment = time.monotonic()

        wait_until(lambda: self.takeovers.load.since(moment), 60, "calls are acknowledged")
        before = wait_until(lambda: max(0, self.takeovers.rounds()), 60, "rounds are told")
        wait_until(lambda: self.takeovers.rounds() > before, 60, "rounds are reported")
        self.takeovers.check()


if __name__ == "__main__":
    if missing():
        print(f"skipped: {missing()}")
        sys.exit(77)
    unittest.main(verbosity=2)
