#!/usr/bin/env python3
"""What bench/round-edge makes of a trace: here of made-up ones.

usage: edges_test.py SOURCE_ROOT
"""
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE / "bench"))
sys.dont_write_bytecode = True
from gpu_train import edges  # noqa: E402  (path set above)

GATE, STEP = "_ZN6tactus15GateRoundKernelE", "_ZN6tactus11SweepKernelE"
COMPUTE, COPIES = 7, 13


def round_at(begin, gap):
    """Two kernels of the model, a gate, an optimizer's step; `gap` ns of nothing behind it. 1,000 ns each."""
    names = ["forward", "backward", GATE, STEP]
    lines = [f"kernel\t{COMPUTE}\t{begin + 1000 * i}\t{begin + 1000 * (i + 1)}\t{name}" for i, name in enumerate(names)]
    # On another stream, at the edge: it fills no gap of the compute stream.
    lines.append(f"copy\t{COPIES}\t{begin + 4000}\t{begin + 4000 + gap}\tto device")
    lines.append(f"call\t1\t{begin + 4000}\t{begin + 4000 + gap}\tcudaEventSynchronize_v3020")
    return lines, begin + 4000 + gap


def trace(gaps):
    lines, at = [], 0
    for gap in gaps:
        added, at = round_at(at, gap)
        lines += added
    return lines


class EdgesTest(unittest.TestCase):
    def read(self, lines):
        with tempfile.NamedTemporaryFile("w", suffix=".trace") as file:
            file.write("\n".join(lines))
            file.flush()
            return edges.read(file.name)

    def test_idle_is_what_no_operation_of_the_compute_stream_fills(self):
        operations, calls = self.read(trace([300] * 10))

        found = edges.summary(operations, calls)

        self.assertAlmostEqual(found["edge_us"], 2.3)
        self.assertAlmostEqual(found["edge_idle_us"], 0.3)
        self.assertAlmostEqual(found["edge_own_us"], 2.0)
        self.assertAlmostEqual(found["step_us"], 4.3)
        self.assertAlmostEqual(found["idle_us"], 0.3)
        self.assertAlmostEqual(found["host_waits"], 1)
        self.assertAlmostEqual(found["host_wait_us"], 0.3)

    def test_the_first_and_the_last_round_and_those_to_be_skipped_do_not_count(self):
        operations, calls = self.read(trace([9000, 8000, 300, 300, 300, 300, 7000, 9000]))

        self.assertEqual([edge.idle for edge in edges.edges(edges.of_compute_stream(operations))], [8000, 300, 300, 300, 300])
        self.assertAlmostEqual(edges.summary(operations, calls, skip=1)["edge_idle_us_p90"], 0.3)

    def test_what_runs_inside_a_gap_is_counted_once_where_it_overlaps(self):
        operations = [edges.Operation("clear", 7, 100, 200, ""), edges.Operation("kernel", 7, 150, 300, "tactus")]

        self.assertEqual(edges.idle(operations, 0, 400), 200)
        self.assertEqual(edges.idle(operations, 250, 400), 100)
        self.assertEqual(edges.idle([], 0, 400), 400)

    def test_lines_that_were_cut_off_are_left_out(self):
        operations, _ = self.read(trace([300] * 5) + ["missing\t0\t0\t0\tactivity 5", "kernel\t7\t1"])

        self.assertEqual(len(operations), 5 * 5)

    def test_a_trace_without_rounds_is_refused(self):
        with self.assertRaisesRegex(ValueError, "no kernel of a model"):
            edges.summary(*self.read(["call\t1\t0\t1\tcudaFree"]))
        with self.assertRaisesRegex(ValueError, "0 rounds' edges"):
            edges.summary(*self.read([f"kernel\t7\t0\t1\t{name}" for name in ("forward", GATE)]))


if __name__ == "__main__":
    unittest.main()
