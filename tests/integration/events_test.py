"""The log of real daemons as JSON lines: each is an object with an event that docs/events.md lists, and how much is
logged changes while they run."""
import datetime
import json
import os
import re
import unittest

from cluster import SOURCE, Cluster, Folder, processes_of, tiny_spec, wait_until

LISTED = re.compile(r"^\| `(\w+)` \| (coordinator|agent|both) \| [a-z, ]+ \| ([a-z ]+) \| (.*) \|$", re.MULTILINE)


class EventsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.cluster = Cluster(cls.folder.path)
        os.environ["TACTUS_LOG_FORMAT"] = "json"
        try:
            cls.cluster.start_coordinator()
            cls.cluster.start_agent("n0", 2)
            cls.job = cls.cluster.submit(tiny_spec(cls.folder.corpus(), rounds=20))
            cls.cluster.wait(cls.job, {"SUCCEEDED"})
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        os.environ.pop("TACTUS_LOG_FORMAT", None)
        cls.cluster.stop()
        left = processes_of(cls.folder.path)
        cls.folder.remove()
        assert not left, f"processes are left: {left}"

    def log(self, name):
        """The whole lines so far."""
        lines = (self.folder.path / f"{name}.log").read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def test_every_line_is_an_event_that_is_listed(self):
        listed = {(program, event): (levels.split(" or "), set(re.findall(r"`(\w+)`", fields)))
                  for event, program, levels, fields in LISTED.findall((SOURCE / "docs" / "events.md").read_text())}
        for name, program in (("coordinator", "coordinator"), ("n0", "agent")):
            lines = self.log(name)
            self.assertGreater(len(lines), 3)
            for line in lines:
                self.assertEqual(list(line)[:5], ["ts", "level", "component", "event", "msg"])
                self.assertEqual(datetime.datetime.fromisoformat(line["ts"].replace("Z", "+00:00")).utcoffset(),
                                 datetime.timedelta(0))
                levels, fields = listed[program, line["event"]]
                self.assertIn(line["level"], levels)
                self.assertEqual(set(list(line)[5:]), fields, line)

    def test_a_jobs_life_is_told_with_its_id(self):
        told = [line for line in self.log("coordinator") if line.get("job") == self.job]
        states = [line["state"] for line in told if line["event"] == "job_state_changed"]
        self.assertEqual(told[0]["event"], "job_submitted")
        self.assertEqual((states[0], states[-1]), ("queued", "succeeded"))
        self.assertEqual([line["rounds"] for line in told if line.get("state") == "succeeded"], [20])

    def levels_after(self, name, count):
        return {line["level"] for line in self.log(name)[count:]}

    def test_the_coordinators_level_changes_while_it_runs(self):
        before = len(self.log("coordinator"))
        self.assertNotIn("debug", self.levels_after("coordinator", 0))
        self.cluster.tactus("admin", "log-level", "debug")
        self.cluster.submit(tiny_spec(self.folder.corpus(), rounds=2))  # an idle coordinator logs nothing
        wait_until(lambda: "debug" in self.levels_after("coordinator", before), 20, "the coordinator logs at debug")
        self.cluster.tactus("admin", "log-level", "info")
        changes = [line["log_level"] for line in self.log("coordinator") if line["event"] == "log_level_changed"]
        self.assertEqual(changes, ["debug", "info"])
        self.cluster.tactus("admin", "log-level", "error")  # which is said while it still is heard
        wait_until(lambda: self.log("coordinator")[-1].get("log_level") == "error", 20, "the change is logged")
        self.cluster.tactus("admin", "log-level", "info")

    def test_the_level_of_an_agent_changes_while_it_runs(self):
        before = len(self.log("n0"))
        self.cluster.tactus("admin", "log-level", "debug", "--node", "n0")
        wait_until(lambda: [line for line in self.log("n0")[before:] if line["event"] == "log_level_changed"], 20,
                   "the agent has another level")
        said = [line for line in self.log("coordinator") if line["event"] == "agent_log_level_changed"]
        self.assertEqual((said[-1]["node"], said[-1]["log_level"]), ("n0", "debug"))
        self.cluster.tactus("admin", "log-level", "info", "--node", "nodes/n0")

    def test_a_level_that_is_none_and_a_node_that_is_not_there(self):
        self.assertEqual(self.cluster.tactus("admin", "log-level", "loud", check=False)[0], 2)
        code, _, err = self.cluster.tactus("admin", "log-level", "info", "--node", "n9", check=False)
        self.assertEqual(code, 3)
        self.assertIn("no such node", err)


if __name__ == "__main__":
    unittest.main()
