#!/usr/bin/env python3
"""bench/regret: its figures, its matrix, and a part of that run and held to the aims.

usage: regret_test.py SOURCE_ROOT, with TACTUS_BIN naming the folder of `tactus`
"""
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "bench"))
sys.dont_write_bytecode = True

import regret_figures  # noqa: E402  (path set above)
import regret_matrix  # noqa: E402

# Of the matrix, what takes a few seconds each.
CELLS = ["fast-pair",
         "10gbit-1_1-8w-low-adamw-cosine-60s-2.5M",
         "100mbit-8_4_2_1-2w-middling-adamw-warmup-60s-0.25M",
         "10gbit-1_1_0.5_0.25-2w-huge-sgd-warmup-120s-0.25M",
         "20mbit-8_4_2_1-2w-middling-sgd0.9-cosine-1800s-2.5M"]


def straight(first, last, points=101, seconds=100.0):
    """A loss that falls evenly."""
    return [(seconds * i / (points - 1), first + (last - first) * i / (points - 1)) for i in range(points)]


class FiguresTest(unittest.TestCase):
    @staticmethod
    def with_auto(curve):
        return regret_figures.figures({"every_step": straight(2, 1.5), "periodic 8": straight(2, 1), "auto": curve}, 100)

    def test_a_loss_is_averaged_over_its_surroundings(self):
        points = [(0, 4.0), (1, 2.0), (2, 6.0), (10, 8.0)]

        self.assertEqual(regret_figures.smoothed(points, 1), [(0, 3.0), (1, 4.0), (2, 4.0), (10, 8.0)])

    def test_a_loss_that_is_no_number_is_above_all_others(self):
        curve = regret_figures.smoothed([(0, 2.0), (5, None), (10, math.nan)], 1)

        self.assertEqual(regret_figures.lowest(curve), 2.0)
        self.assertEqual(curve[1][1], curve[2][1])
        self.assertGreater(curve[1][1], 1e6)

    def test_a_loss_between_two_points_is_between_theirs(self):
        points = [(0, 4.0), (10, 2.0), (20, 1.0)]

        self.assertEqual([regret_figures.at(points, x) for x in (0, 5, 10, 12, 20, 30)], [4, 3, 2, 1.8, 1, 1])

    def test_a_curve_is_the_mean_of_its_runs_up_to_the_budget(self):
        curve = regret_figures.mean_curve([straight(4, 2, points=11), straight(2, 0, points=6, seconds=120)], 100)

        self.assertEqual(curve[0], (0, 3))
        self.assertEqual(curve[-1][0], 100)
        self.assertAlmostEqual(curve[-1][1], (2 + (2 - 2 * 100 / 120)) / 2)

    def test_the_target_is_what_the_best_plan_has_shortly_before_the_end(self):
        found = self.with_auto(straight(2, 1.2))

        self.assertAlmostEqual(found.target, 1.1 * 1.01)
        self.assertEqual(found.best, "periodic 8")
        self.assertAlmostEqual(found.times["periodic 8"], 88.9, places=1)
        self.assertEqual(found.best_regrets["periodic 8"], regret_figures.Regret(1.0, True))
        self.assertIsNone(found.times["every_step"])

    def test_a_row_that_never_had_the_loss_is_judged_by_the_loss_that_it_had(self):
        found = self.with_auto(straight(2, 1.2))

        # The best plan is at 1.2 after 80 s and at 1.5 after 50 s.
        self.assertFalse(found.best_regrets["auto"].reached)
        self.assertAlmostEqual(found.best_regrets["auto"].ratio, 100 / 80)
        self.assertAlmostEqual(found.best_regrets["every_step"].ratio, 2)

    def test_against_every_step_the_target_is_its_own(self):
        found = self.with_auto(straight(2, 1.25))

        self.assertTrue(found.every_step.reached)
        self.assertAlmostEqual(found.every_step.ratio, 0.5 / 0.75)

    def test_a_loss_that_hardly_falls_is_not_reached_before_it_falls(self):
        slow = straight(2, 1.99)

        found = regret_figures.figures({"every_step": slow, "periodic 8": straight(2, 1), "auto": slow}, 100)

        self.assertEqual(found.every_step, regret_figures.Regret(1.0, True))
        self.assertAlmostEqual(regret_figures.target_of([slow], 100), 2 - 0.009 + 0.0009)

    def test_the_way_is_told_in_tenths_of_the_losss_logarithm(self):
        curve = [(float(x), 10.0 ** -(x / 4)) for x in range(9)]  # a power of ten in 4 s

        seconds = regret_figures.tenths(curve, 1, 0.1)

        for tenth, found in enumerate(seconds, 1):
            self.assertAlmostEqual(found, 0.4 * tenth, delta=0.2)  # curves are straight between their points
        self.assertEqual(regret_figures.tenths(curve, 1, 1e-4)[5:], [None] * 5)

    def test_where_nothing_is_learned_nobody_is_late(self):
        flat = straight(2, 2)

        found = regret_figures.figures({"every_step": flat, "auto": flat}, 100)

        self.assertEqual(found.every_step, regret_figures.Regret(1.0, True))

    def test_a_row_that_learned_nothing_is_infinitely_late(self):
        found = regret_figures.figures({"every_step": straight(2, 1), "auto": straight(2, 3)}, 100)

        self.assertEqual(found.best_regrets["auto"], regret_figures.Regret(math.inf, False))
        self.assertEqual(found.every_step.ratio, math.inf)

    def test_what_stands_apart_is_measured_by_the_others(self):
        curves = {"every_step": straight(2, 1.5), "periodic 8": straight(2, 1), "lsgd 4": straight(2, 1.2),
                  "lsgd 16": straight(2, 0), "auto": straight(2, 1)}

        found = regret_figures.figures(curves, 100, ["lsgd 4", "lsgd 16"])

        self.assertEqual(found.best, "periodic 8")
        self.assertEqual(found.best_regrets["auto"], regret_figures.Regret(1.0, True))
        self.assertEqual(found.best_apart, "lsgd 16")
        self.assertAlmostEqual(found.best_regrets["lsgd 16"].ratio, 0.5)
        self.assertFalse(found.best_regrets["lsgd 4"].reached)
        self.assertAlmostEqual(found.best_regrets["lsgd 4"].ratio, 100 / 80)


class MatrixTest(unittest.TestCase):
    def test_every_pair_of_levels_that_can_be_had_is_in_it(self):
        cells = [cell for cell in regret_matrix.matrix() if not cell.title]

        for (one, levels), (other, others) in itertools.combinations(regret_matrix.FACTORS.items(), 2):
            there = {(getattr(cell, one), getattr(cell, other)) for cell in cells}
            for pair in set(itertools.product(levels, others)) - there:
                self.assertFalse(self.possible(one, other, pair), f"{one} and {other}: {pair}")

    def possible(self, one, other, pair):
        """Whether any cell has the two levels."""
        levels = {**regret_matrix.FACTORS, one: [pair[0]], other: [pair[1]]}
        return any(regret_matrix.Cell(*each).feasible() for each in itertools.product(*levels.values()))

    def test_names_are_of_one_cell_each(self):
        names = [cell.name for cell in regret_matrix.matrix()]

        self.assertEqual(len(names), len(set(names)))

    def test_no_fixed_plan_has_rounds_that_a_group_is_given_up_for(self):
        for cell in regret_matrix.matrix():
            rows = regret_matrix.rows_of(cell).values()
            periods = [row["synchronization"].get("period", 1) for row in rows]
            self.assertLessEqual(max(periods) * cell.step_seconds, 300, cell.name)

    def test_a_plan_that_bears_less_momentum_takes_as_long_steps(self):
        for cell in regret_matrix.matrix():
            rows = regret_matrix.rows_of(cell)
            if "decentlam ring" not in rows:
                self.assertEqual(cell.optimizer, "adamw")
                continue
            usual, less = (regret_matrix.job_of(cell, None, rows[f"decentlam {graph}"], 1)
                           for graph in ("ring", "one_peer_exponential"))
            self.assertLessEqual(less["optimizer"]["sgd"]["momentum"], 0.45)
            lengths = [job["optimizer"]["sgd"]["learning_rate"] / (1 - job["optimizer"]["sgd"]["momentum"])
                       for job in (usual, less)]
            self.assertAlmostEqual(lengths[1] / lengths[0], 1)
            self.assertNotIn("momentum_max", less["adapt"])

    def test_leaders_are_chosen_by_losses_that_have_noise(self):
        cell = next(cell for cell in regret_matrix.matrix() if cell.learner == "huge")
        noises = {label: regret_matrix.cluster_of(cell, None, how)["loss"]["noisy_quadratic"].get("loss_noise", 0)
                  for label, how in regret_matrix.rows_of(cell).items()}

        self.assertGreater(noises["lsgd 16"], 0)
        self.assertEqual({noise for label, noise in noises.items() if not label.startswith("lsgd")}, {0})

    def test_all_workers_together_are_as_fast_whatever_their_speeds(self):
        for cell in regret_matrix.matrix():
            self.assertAlmostEqual(sum(regret_matrix.speeds_of(cell)), cell.workers)


class RefusalsTest(unittest.TestCase):
    def refused(self, *words, tactus=None):
        """What it says; `tactus`: a program in the place of the real one."""
        with tempfile.TemporaryDirectory() as folder:
            surroundings = dict(os.environ)
            if tactus:
                (pathlib.Path(folder) / "tactus").write_text(tactus)
                (pathlib.Path(folder) / "tactus").chmod(0o755)
                surroundings["TACTUS_BIN"] = folder
            done = subprocess.run([SOURCE / "bench/regret", *words], capture_output=True, text=True, env=surroundings)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_an_unknown_cell_is_refused(self):
        self.assertIn("found no cell none; --list names them", self.refused("--cell", "none"))

    def test_a_broken_promise_is_no_figure(self):
        said = self.refused("--cell", "fast-pair", tactus="#!/bin/sh\necho 'a promise was broken' >&2\nexit 9\n")

        self.assertIn("tactus simulate ended with 9: a promise was broken", said)

    def test_a_job_that_fails_but_by_its_loss_is_no_figure(self):
        job = {"state": "failed", "reason": "a file is missing", "validation": []}
        said = self.refused("--cell", "fast-pair",
                            tactus=f"#!/bin/sh\necho '{json.dumps({'jobs': [job]})}'\nexit 8\n")

        self.assertIn("the job is failed: a file is missing", said)


class TodayTest(unittest.TestCase):
    """A part of the matrix. Its times are virtual: equal on every machine."""

    @classmethod
    def setUpClass(cls):
        cls.found = {each["cell"]: each for each in cls.run_cells(CELLS)}

    @staticmethod
    def run_cells(names):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "figures.json"
            which = "^(" + "|".join(map(re.escape, names)) + ")$"
            subprocess.run([SOURCE / "bench/regret", "--only", which, "--jobs", "1", "--seeds", "1", "--out", out], check=True,
                           stdout=subprocess.DEVNULL)
            return json.loads(out.read_text())

    def test_all_were_run(self):
        self.assertEqual(sorted(self.found), sorted(CELLS))

    def test_the_best_fixed_plan_is_its_own_measure(self):
        for name, found in self.found.items():
            self.assertEqual(found["to_best"][found["best"]], 1, name)
            self.assertTrue(all(ratio >= 1 for label, ratio in found["to_best"].items()
                                if label != "auto" and not regret_matrix.apart(label)), found["to_best"])
            self.assertTrue(regret_matrix.apart(found["best_apart"]), name)
            self.assertNotEqual(found["best"], "auto")

    def test_every_figure_is_finite(self):
        for name, found in self.found.items():
            self.assertTrue(math.isfinite(found["target"]), name)
            self.assertTrue(math.isfinite(found["to_best"]["auto"]), name)
            self.assertTrue(math.isfinite(found["to_every_step"]), name)

    def test_auto_is_within_the_aim_of_the_best_fixed_plan(self):
        for name, found in self.found.items():
            self.assertLessEqual(found["to_best"]["auto"], regret_figures.AIM_BEST, name)

    def test_auto_is_within_the_aim_of_every_step(self):
        for name, found in self.found.items():
            self.assertLessEqual(found["to_every_step"], regret_figures.AIM_EVERY_STEP, name)

    def test_equal_arguments_give_equal_figures(self):
        name = CELLS[0]

        self.assertEqual(self.run_cells([name]), [self.found[name]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
