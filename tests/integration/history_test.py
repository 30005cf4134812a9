"""A real job of two unequal workers, looked at afterwards and while it runs: trace, plot, top."""
import copy
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest
import xml.etree.ElementTree

import chrome_trace
from cluster import BIN, tiny_spec
from shared_cluster import SharedCluster

SVG = "{http://www.w3.org/2000/svg}"
LEFT = r"\x1b\[\?25h\x1b\[\?1049l$"  # the cursor, and the screen as it was
READY = r"slow +(\x1b\[\d+m)?ready"


def spans(events, thread):
    """The spans of the thread with this name, by name."""
    tracks = {(event["pid"], event["tid"]) for event in events
              if event["name"] == "thread_name" and event["args"]["name"] == thread}
    return [event for event in events if event["ph"] == "X" and (event["pid"], event["tid"]) in tracks]


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command, rows=24, columns=100, environment=None):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = ""
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                        env={**os.environ, "TERM": "xterm", **(environment or {})},
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, pattern, seconds=20):
        """Reads until the pattern is in what was read since the last call; returns that."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"not within {seconds} s: {pattern!r} in {self.seen!r}")
            self.seen += os.read(self.master, 65536).decode()
        seen, self.seen = self.seen, ""
        return seen

    def ends(self, seconds=20):
        """Its exit code; what it says until then is read, so that nobody waits for who does not read."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"it does not end within {seconds} s, and said {self.drain()!r}")
            if select.select([self.master], [], [], 0.05)[0]:
                self.drain()
        return self.process.returncode

    def blocks(self):
        """Whether who shares the terminal, as a shell, waits for what it reads."""
        return not fcntl.fcntl(self.slave, fcntl.F_GETFL) & os.O_NONBLOCK

    def drain(self):
        while select.select([self.master], [], [], 0)[0]:
            self.seen += os.read(self.master, 65536).decode()
        return self.seen

    def type(self, keys):
        os.write(self.master, keys.encode())

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


class HistoryTest(SharedCluster):
    @classmethod
    def begin(cls):
        cls.cluster.start_agent("fast", 1, "1")
        cls.cluster.start_agent("slow", 1, "0.25")
        spec = tiny_spec(cls.folder.corpus(), rounds=300)
        spec["adapt"]["batch"] = {"policy": "proportional", "per_worker": 16}
        cls.job = cls.cluster.submit(spec)
        cls.cluster.wait(cls.job, {"SUCCEEDED"})

    def trace(self, *words):
        code, out, err = self.cluster.tactus("trace", self.job, *words)
        return chrome_trace.parse(out), err

    def test_trace_is_sound(self):
        trace, err = self.trace("--rounds", "100:199")
        self.assertEqual(err, "")
        self.assertEqual(chrome_trace.problems(trace), [])
        self.assertEqual(trace["distributedInfo"], {"backend": "tcp", "rank": 0, "world_size": 2})
        processes = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
        self.assertEqual(processes, {"job " + self.job, "node fast", "node slow"})

    def test_every_worker_has_every_phase_of_every_round(self):
        events = self.trace("--rounds", "100:199")[0]["traceEvents"]
        workers = [event["args"]["name"] for event in events
                   if event["name"] == "thread_name" and event["args"]["name"].startswith("cpu:")]
        self.assertEqual(len(workers), 2)
        for worker in workers:
            found = spans(events, worker)
            rounds = [event["args"]["round"] for event in found if event["name"].startswith("round ")]
            self.assertEqual(sorted(rounds), list(range(100, 200)))
            for name, least in (("compute", 90), ("transfer", 90), ("optimizer", 90)):
                self.assertGreaterEqual(len([event for event in found if event["name"] == name]), least, name)

    def test_workers_end_a_round_together(self):
        events = self.trace("--rounds", "100:199")[0]["traceEvents"]
        ends = {}
        for event in events:
            if event["ph"] == "X" and event["name"].startswith("round "):
                ends.setdefault(event["args"]["round"], set()).add(event["ts"] + event["dur"])
        self.assertEqual([len(when) for when in ends.values()], [1] * 100)

    def test_decisions_have_reasons(self):
        trace, _ = self.trace("--rounds", "0:299")
        decisions = [event for event in trace["traceEvents"] if event["ph"] == "i" and "reason" in event["args"]]
        listed = json.loads(self.cluster.tactus("get", "decisions", self.job, "-o", "json")[1])["decisions"]
        self.assertEqual(sorted(event["args"]["reason"] for event in decisions),
                         sorted(decision["reason"] for decision in listed))

    def test_without_a_range_the_last_rounds_are_shown(self):
        events = self.trace()[0]["traceEvents"]
        rounds = {event["args"]["round"] for event in events if event["name"].startswith("round ")}
        self.assertEqual(rounds, set(range(100, 300)))

    def test_ranges_that_are_none(self):
        for words, code, said in ((["--rounds", "200:100"], 2, "FIRST:LAST"),
                                  (["--rounds", "7"], 2, "FIRST:LAST"),
                                  (["--rounds", "-1:5"], 2, "FIRST:LAST"),
                                  (["--rounds", "300:310"], 3, "its last one is 299")):
            with self.subTest(words):
                found, out, err = self.cluster.tactus("trace", self.job, *words, check=False)
                self.assertEqual((found, out), (code, ""))
                self.assertIn(said, err)
        self.assertEqual(self.cluster.tactus("trace", "nobody-1", check=False)[0], 3)

    def test_the_validator_finds_what_is_broken(self):
        sound = self.trace("--rounds", "100:103")[0]

        def span(trace, name):
            return next(event for event in trace["traceEvents"] if event["ph"] == "X" and event["name"] == name)

        def broken(change):
            trace = copy.deepcopy(sound)
            change(trace)
            return chrome_trace.problems(trace)

        self.assertEqual(broken(lambda trace: None), [])
        self.assertTrue(broken(lambda trace: span(trace, "compute").update(dur=-1)))
        self.assertTrue(broken(lambda trace: span(trace, "transfer").update(dur=10**9)))
        self.assertTrue(broken(lambda trace: span(trace, "compute").pop("tid")))
        self.assertTrue(broken(lambda trace: span(trace, "compute").update(ph="Z")))
        self.assertTrue(broken(lambda trace: trace["traceEvents"].pop(0)))

    def test_plot_is_a_drawing(self):
        for over in ("time", "rounds"):
            with self.subTest(over):
                file = self.folder.path / f"{over}.svg"
                self.assertEqual(self.cluster.tactus("plot", self.job, "--over", over, "--output", file)[1], f"{file}\n")
                root = xml.etree.ElementTree.parse(file).getroot()
                self.assertEqual(root.tag, SVG + "svg")
                lines = [path for path in root.iter(SVG + "path") if "line" in path.get("class", "").split()]
                self.assertGreaterEqual(len(lines), 3)
                texts = {text.text for text in root.iter(SVG + "text")}
                self.assertTrue({self.job, "Loss", "rank 1"} <= texts, texts)
        printed = self.cluster.tactus("plot", self.job)[1]
        self.assertEqual(printed, (self.folder.path / "time.svg").read_text())

    def test_plot_of_nothing(self):
        self.assertEqual(self.cluster.tactus("plot", "nobody-1", check=False)[0], 3)

    def test_top_prints_tables_where_there_is_no_terminal(self):
        for words in (["top"], ["top", "--once"]):
            out = self.cluster.tactus(*words)[1]
            self.assertTrue(out.startswith("2 nodes, 0 of 2 devices busy; 0 jobs\n"), out)
            self.assertNotIn("\x1b", out)

    def top(self, *words, **how):
        terminal = Terminal([str(BIN / "tactus"), "--server", self.cluster.address, "top", *words], **how)
        self.addCleanup(terminal.close)
        return terminal

    def test_tables_fit_a_narrow_terminal(self):
        for noun, says in (("jobs", self.job), ("nodes", "slow")):
            command = [str(BIN / "tactus"), "--server", self.cluster.address, "get", noun]
            piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            self.assertGreater(max(len(line) for line in piped.splitlines()), 40)
            terminal = Terminal(command, columns=40)
            self.addCleanup(terminal.close)
            self.assertEqual(terminal.process.wait(20), 0)
            shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal.read_until(says) + terminal.drain())
            self.assertLessEqual(max(len(line) for line in shown.splitlines()), 40, shown)

    def test_top_leaves_the_terminal_as_it_was(self):
        for leave, code in ((lambda terminal: terminal.type("q"), 0), (lambda terminal: terminal.type("\x03"), 130),
                            (lambda terminal: terminal.process.send_signal(signal.SIGTERM), 130),
                            (lambda terminal: terminal.process.send_signal(signal.SIGQUIT), 130)):
            terminal = self.top()
            entered = terminal.read_until(READY)
            self.assertIn("\x1b[?1049h", entered)
            self.assertNotEqual(termios.tcgetattr(terminal.slave), terminal.before)
            self.assertTrue(terminal.blocks())
            leave(terminal)
            self.assertEqual(terminal.ends(), code)
            terminal.read_until(LEFT)
            self.assertTrue(terminal.blocks())
            self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)

    def test_top_gives_the_terminal_back_while_it_is_stopped(self):
        terminal = self.top()
        terminal.read_until(READY)
        terminal.type("\x1c")  # Ctrl-\ is no way out
        terminal.resize(24, 90)
        terminal.read_until(READY)  # else it may be typed into the terminal as it was before
        terminal.process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        terminal.read_until(LEFT)
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)
        terminal.seen = ""
        terminal.process.send_signal(signal.SIGCONT)
        self.assertIn("\x1b[?1049h", terminal.read_until(READY))
        self.assertNotEqual(termios.tcgetattr(terminal.slave), terminal.before)
        terminal.type("q")
        self.assertEqual(terminal.ends(), 0)

    def test_top_says_all_to_a_terminal_that_is_read_late(self):
        terminal = self.top()
        terminal.read_until(READY)
        for frame in range(60):  # more than a terminal holds
            terminal.resize(24 - frame % 2, 100)
            time.sleep(0.02)
        terminal.type("q")
        self.assertEqual(terminal.ends(), 0)
        terminal.read_until(LEFT)

    def test_top_can_be_left_while_the_coordinator_does_not_answer(self):
        terminal = self.top()
        terminal.read_until(READY)
        self.cluster.signal("coordinator", signal.SIGSTOP)
        try:
            time.sleep(1.5)  # so that a call is under way
            terminal.type("q")
            self.assertEqual(terminal.process.wait(5), 0)  # half of a call's time
        finally:
            self.cluster.signal("coordinator", signal.SIGCONT)

    def test_top_once_on_a_terminal_takes_no_screen(self):
        terminal = self.top("--once")
        self.assertEqual(terminal.process.wait(20), 0)
        self.assertNotIn("\x1b[?1049h", terminal.read_until(READY) + terminal.drain())

    def test_top_on_a_terminal_without_a_cursor_prints_once(self):
        terminal = self.top(environment={"TERM": "dumb"})
        self.assertEqual(terminal.process.wait(20), 0)
        self.assertNotIn("\x1b", terminal.read_until(READY) + terminal.drain())

    def test_what_cannot_be_written_is_an_error(self):
        tactus = [str(BIN / "tactus"), "--server", self.cluster.address]
        for words in (["trace", self.job], ["plot", self.job], ["version"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([*tactus, *words], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, done.stderr), (10, "tactus: standard output: No space left on device\n"))

    def test_a_reader_who_has_enough_is_no_error(self):
        tactus = subprocess.Popen([str(BIN / "tactus"), "--server", self.cluster.address, "trace", self.job],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        tactus.stdout.close()
        self.assertEqual(tactus.stderr.read(), b"")
        tactus.stderr.close()
        tactus.wait(20)

    def test_a_plot_may_be_read_as_any_other_file(self):
        file = self.folder.path / "mode.svg"
        self.cluster.tactus("plot", self.job, "--output", file)
        other = self.folder.path / "other"
        other.touch()
        self.assertEqual(file.stat().st_mode, other.stat().st_mode)

    def test_top_fits_a_screen_that_changes(self):
        terminal = self.top(rows=24, columns=100)
        terminal.read_until(READY)
        terminal.resize(4, 30)
        frame = terminal.read_until(r"\x1b\[J.*lines more")
        lines = frame.split("\x1b[H")[-1].replace("\r", "").split("\n")  # the terminal adds one
        self.assertEqual(len(lines), 4)
        for line in lines:
            self.assertLessEqual(len(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line)), 30)

    def test_top_shows_what_changes_and_nothing_else(self):
        terminal = self.top()
        terminal.read_until(READY)
        self.cluster.tactus("cordon", "slow")
        try:
            terminal.read_until(r"cordoned")
        finally:
            self.cluster.tactus("uncordon", "slow")
        frames = terminal.read_until(READY).count("\x1b[H")
        self.assertLessEqual(frames, 2)  # one change


if __name__ == "__main__":
    unittest.main()
