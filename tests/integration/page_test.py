"""The status page in a real browser, during a real job: curves move, decisions say why, nothing is complained of."""
import json
import os
import pathlib
import re
import sys
import unittest
import urllib.error
import urllib.request

from browser import CHROMIUM, Browser
from cluster import Cluster, Folder, processes_of, tiny_spec, wait_until

PICTURES = pathlib.Path(os.environ.get("TACTUS_ARTIFACTS", "page-screenshots"))
# Of one who would write markup where a name or a reason stands.
HOSTILE = "<img src=x onerror=alert(1)>"


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        cls.cluster = Cluster(cls.folder.path)
        cls.browser = None
        try:
            cls.cluster.start_coordinator()
            cls.cluster.start_agent("fast", 1, "1")
            cls.cluster.start_agent("slow", 2, "0.3,0.3")
            corpus = cls.folder.corpus()
            spec = tiny_spec(corpus, rounds=20)
            spec["stop"] = {"rounds": 20}
            cls.short = cls.cluster.submit(spec)
            cls.cluster.wait(cls.short, ["SUCCEEDED"])
            spec = tiny_spec(corpus, time="1h")
            spec["name"] = "adaptive"
            spec["workers"] = {"min": 2, "max": 3}
            spec["adapt"] = {"batch": {"policy": "proportional", "per_worker": 16},
                             "synchronization": {"policy": "auto"}, "aggregation": {"policy": "auto"}}
            path = cls.folder.path / "adaptive.json"
            path.write_text(json.dumps(spec))
            cls.job = cls.cluster.tactus("submit", path, "--label", f"note={HOSTILE}", "-o", "name")[1].strip().rsplit("/", 1)[-1]
            cls.cluster.wait(cls.job, ["RUNNING"])
            cls.origin = f"http://{cls.cluster.metrics}"
            cls.browser = Browser()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        if cls.browser:
            cls.browser.close()
        cls.cluster.stop()
        left = processes_of(cls.folder.path)
        cls.folder.remove()
        if left:
            raise AssertionError(f"processes were left running: {left}")

    def setUp(self):
        self.browser.screen(1280)
        self.browser.open("about:blank")
        self.browser.requests.clear()
        self.browser.complaints.clear()

    def show(self, place):
        self.browser.open(f"{self.origin}/#{place}")

    def until(self, script, what, seconds=60):
        """Waits until it is true; what is not there yet makes it false."""
        guarded = f"(() => {{ try {{ return {script}; }} catch {{ return false; }} }})()"
        return wait_until(lambda: self.browser.run(guarded), seconds, what)

    def show_job(self):
        self.show(f"/jobs/{self.job}")
        self.until("document.querySelectorAll('.chart .mark').length > 1", "decisions are marked")

    def network(self, latency=0, offline=False):
        self.browser.call("Network.emulateNetworkConditions", offline=offline, latency=latency, downloadThroughput=-1,
                          uploadThroughput=-1)

    def go(self, place):
        """To another view of the page that is open."""
        self.browser.run(f"location.hash = {json.dumps('#' + place)}")

    def assert_quiet(self):
        self.assertEqual(self.browser.complaints, [])
        outside = [url for url in self.browser.requests if not url.startswith((self.origin + "/", "about:"))]
        self.assertEqual(outside, [])

    def test_fleet_shows_nodes_and_what_runs_where(self):
        self.show("/")
        self.until("document.querySelectorAll('.node').length >= 2", "the nodes are shown")

        for node, devices in (("fast", 1), ("slow", 2)):
            shown = self.browser.run(f"[...document.querySelectorAll('[aria-label=\"Node {node}\"] .devices li')].map((one) => one.innerText)")
            self.assertEqual(len(shown), devices)
            self.assertTrue(all(self.job in device or "free" in device for device in shown), shown)
        # However many jobs are over, those that are not are among what is read.
        self.assertIn("state%21%3DSUCCEEDED", " ".join(self.browser.requests))
        self.browser.picture(PICTURES / "fleet.png")
        self.assert_quiet()

    def test_a_node_that_is_lost_is_said(self):
        self.cluster.start_agent("gone", 1)
        # Else the job that grows may choose it while nobody knows yet that it is dead.
        wait_until(lambda: self.cluster.tactus("cordon", "gone", check=False)[0] == 0, 20, "the third node is known")
        self.show("/")
        self.until("document.querySelector('[aria-label=\"Node gone\"]') !== null", "the third node is shown")
        self.cluster.kill("gone")

        self.until("document.body.innerText.includes('gone is not connected')", "the loss is said")
        said = self.browser.run("[...document.querySelectorAll('.node .pill')].map((one) => one.innerText)")
        self.assertEqual(sorted(set(said)), ["gone", "ready"])
        self.browser.picture(PICTURES / "fleet-lost-node.png")
        # One that nobody awaits any more is forgotten.
        wait_until(lambda: self.cluster.tactus("delete", "node", "gone", "--yes", check=False)[0] == 0, 60, "the node is called gone")
        self.until("document.querySelector('[aria-label=\"Node gone\"]') === null", "it is shown no more")
        self.assert_quiet()

    def type_filter(self, words):
        self.browser.run(f"(() => {{ const one = document.getElementById('filter'); one.value = {json.dumps(words)}; "
                         "one.dispatchEvent(new Event('input')); })()")

    def test_nodes_are_filtered_and_the_address_keeps_it(self):
        self.show("/")
        self.until("document.querySelectorAll('.node').length >= 2", "the nodes are shown")
        names = "[...document.querySelectorAll('.node h3')].map((one) => one.innerText)"

        self.type_filter("SLO ready")

        self.assertEqual(self.browser.run(names), ["slow"])
        self.assertEqual(self.browser.run("location.hash"), "#/?nodes=SLO+ready")
        self.assertRegex(self.browser.run("document.querySelector('.tools [role=status]').innerText"), "^1 of [0-9]+ nodes$")
        self.browser.picture(PICTURES / "fleet-filtered.png")
        address = self.browser.run("location.href")
        self.browser.open("about:blank")
        self.browser.open(address)
        self.until(f"{names}.length === 1", "what was chosen is shown again")
        self.type_filter("nowhere")
        self.assertEqual(self.browser.run(names), [])
        self.assertIn("No node has that", self.browser.run("document.querySelector('.nodes').innerText"))
        self.type_filter("")
        self.assertEqual(self.browser.run("location.hash"), "#/")
        self.until("document.querySelectorAll('.node').length >= 2", "all are shown")
        self.assert_quiet()

    def test_a_filter_looks_at_names_labels_and_states(self):
        self.show("/jobs")
        node = json.dumps({"name": "nodes/gpu-17", "connected": True, "cordoned": True, "labels": {"Rack": "a3"}})
        for words, found in (("", True), ("gpu", True), ("17 rack=a3", True), ("cord", True), ("RACK", True),
                             ("gpu-18", False), ("ordoned", False), ("gpu ready", False)):
            with self.subTest(words):
                self.assertEqual(self.run_with("fleet.js", f"m.matches({node}, {json.dumps(words)})"), found)

    def test_jobs_are_listed_newest_first_and_filtered(self):
        self.show("/jobs")
        self.until("document.querySelectorAll('tbody tr').length >= 2", "the jobs are listed")

        names = self.browser.run("[...document.querySelectorAll('tbody th')].map((one) => one.innerText)")
        self.assertEqual([name for name in names if name in (self.job, self.short)], [self.job, self.short])
        self.browser.picture(PICTURES / "jobs.png")
        self.browser.run("(() => { const one = document.querySelector('select'); one.value = 'SUCCEEDED'; "
                         "one.dispatchEvent(new Event('change')); })()")
        self.until(f"!document.querySelector('tbody').innerText.includes({json.dumps(self.job)})", "the running one is left out")
        self.assertIn(self.short, self.browser.run("document.querySelector('tbody').innerText"))
        self.assert_quiet()

    def test_the_fleet_is_as_fast_as_its_jobs(self):
        self.show("/")
        fact = "[...document.querySelectorAll('.facts > div')].find((one) => one.innerText.includes('Throughput')).innerText"
        self.until(f"{fact}.includes('1 job that trains')", "the running job's speed is said")
        shown = float(self.browser.run(fact).split("\n")[1].replace("\u202f", ""))
        # What a job does, waiting for each other included; its devices alone do more together.
        job = self.cluster.job(self.job)["progress"]
        self.assertLess(shown, 1.5 * job["samples_per_second"])
        self.assertGreater(shown, job["samples_per_second"] / 1.5)
        self.browser.picture(PICTURES / "fleet-throughput.png")
        self.assert_quiet()

    def run_with(self, module, script):
        """The value of an expression with what a module of the page gives, as `m`."""
        return self.browser.run(f"import('/{module}').then((m) => {script})")

    def test_the_mean_of_losses_is_over_samples_and_follows_a_fall_at_once(self):
        self.show("/jobs")
        fall = "[5, 4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2]"
        # A mean of the points before would lie above 2 until the fall is out of its window.
        means = self.run_with("curves.js", f"m.smooth({fall}.map((y, x) => [x, y, 1]), 8).map(([, y]) => y)")
        self.assertEqual((means[0], means[1]), (5, 4))
        self.assertLess(means[4], 2.1)
        self.assertEqual(means[9], 2)
        # A short last round counts as much as its samples.
        rounds = json.dumps([{"round": i, "loss": 11 if i == 10 else 1, "samples": 10 if i == 10 else 90} for i in range(12)])
        last = self.run_with("curves.js", f"m.smooth(m.losses({rounds}, (x) => x), 4).map(([, y]) => y)")
        self.assertAlmostEqual(last[9], (4 * 90 + 110) / (4 * 90 + 10))

    def test_what_an_epoch_had_left_is_not_drawn_as_a_batch(self):
        self.show("/jobs")
        sizes = [64] * 9 + [7] + [64] * 9 + [31]
        rounds = json.dumps([{"round": i, "samples": size, "plan_version": "1"} for i, size in enumerate(sizes)])
        self.assertEqual(self.run_with("curves.js", f"m.withoutRests({rounds}).length"), 18)
        varied = json.dumps([{"round": i, "samples": 50 + i % 7, "plan_version": "1"} for i in range(20)])
        self.assertEqual(self.run_with("curves.js", f"m.withoutRests({varied}).length"), 20)

    def test_many_decisions_stand_in_few_groups(self):
        self.show("/jobs")
        self.until("document.querySelectorAll('tbody tr').length >= 2", "the view is there")
        draw = ("{ const chart = new m.Chart({title: 'x', yLabel: 'y', marks: true}); document.getElementById('main').append(chart.node); "
                "chart.draw({series: [{name: 'a', color: 0, points: Array.from({length: 500}, (_, x) => [x, x])}], "
                "marks: Array.from({length: 400}, (_, i) => ({x: i, key: String(i), axis: i % 4 ? 'axis-batch' : 'axis-synchronization', label: 'l', tip: () => []}))}); "
                "return new Promise((done) => setTimeout(() => done(chart.node.id = 'many'), 300)); }")
        self.browser.run(f"import('/chart.js').then((m) => {draw})")
        for width in (1280, 390):
            self.browser.screen(width)
            self.until("document.querySelectorAll('#many .mark').length > 0", "marks are drawn")
            counts = self.browser.run("[...document.querySelectorAll('#many .mark text')].map((one) => Number(one.textContent))")
            self.assertEqual(sum(counts), 400)
            self.assertLessEqual(len(counts), 16)
            apart = self.browser.run("(() => { const boxes = [...document.querySelectorAll('#many .mark rect')].map((one) => one.getBoundingClientRect()); "
                                     "return boxes.every((box, i) => !i || box.left >= boxes[i - 1].right); })()")
            self.assertTrue(apart, f"marks overlap at {width}")
            self.browser.picture(PICTURES / f"decisions-many-{width}.png", whole=False)

    def test_a_logarithmic_scale_has_round_numbers(self):
        self.show("/jobs")
        self.assertEqual(self.run_with("chart.js", "m.logTicks(-3, 2, 6)"), [0.001, 0.01, 0.1, 1, 10, 100])
        self.assertEqual(self.run_with("chart.js", "m.logTicks(0, 2, 7)"), [1, 2, 5, 10, 20, 50, 100])
        self.assertEqual(self.run_with("chart.js", "m.logTicks(Math.log10(1.9), Math.log10(5.2), 6)"), [2, 3, 4, 5])
        self.assertEqual(self.run_with("chart.js", "m.logTicks(-9, 3, 6).length"), 7)
        self.until("document.querySelectorAll('tbody tr').length >= 2", "the view is there")
        # What is not above 0 has no place there.
        path = self.run_with("chart.js", "{ const chart = new m.Chart({title: 'x', yLabel: 'y'}); "
                             "document.getElementById('main').append(chart.node); "
                             "chart.draw({log: true, series: [{name: 'a', color: 0, points: [[0, 1], [1, 10], [2, 0], [3, 10], [4, 100]]}]}); "
                             "return new Promise((done) => setTimeout(() => done(chart.node.querySelector('.line').getAttribute('d')), 300)); }")
        heights = [[float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", piece)] for piece in re.findall("M[^M]*", path)]
        self.assertEqual([len(piece) for piece in heights], [2, 2])
        self.assertAlmostEqual(heights[0][1], heights[1][0], 1)
        self.assertAlmostEqual(heights[0][0] - heights[0][1], heights[1][0] - heights[1][1], delta=0.2)

    def test_the_loss_may_have_a_logarithmic_scale_and_the_address_keeps_it(self):
        self.show_job()
        titles = "[...document.querySelector('.chart').querySelectorAll('text')].map((one) => one.textContent)"
        path = "document.querySelectorAll('.chart .line')[1].getAttribute('d')"
        self.assertIn("loss", self.browser.run(titles))
        before = self.browser.run(path)

        self.browser.run("document.querySelector('[data-scale=log]').click()")

        self.until(f"{titles}.includes('loss, logarithmic')", "the scale is said")
        self.assertNotEqual(self.browser.run(path), before)
        self.assertEqual(self.browser.run("location.hash"), f"#/jobs/{self.job}?loss=log")
        self.browser.picture(PICTURES / "job-log-loss.png")
        self.browser.open("about:blank")
        self.show(f"/jobs/{self.job}?loss=log")
        self.until(f"{titles}.includes('loss, logarithmic')", "the address says it")
        self.browser.run("document.querySelector('[data-scale=linear]').click()")
        self.until(f"{titles}.includes('loss')", "the scale is as it was")
        self.assertEqual(self.browser.run("location.hash"), f"#/jobs/{self.job}")
        self.assert_quiet()

    def test_the_title_says_how_long_a_job_will_take(self):
        self.show_job()

        self.until(f"/^[0-9].* left · {self.job} · Tactus$/.test(document.title)", "it is in the window's title")
        self.assertRegex(self.browser.run("document.querySelector('.title').innerText"), "about [0-9].* left")

        self.go("/jobs")
        self.until("document.title === 'Jobs · Tactus'", "the next view has its own")
        self.go(f"/jobs/{self.short}")
        self.until("document.querySelector('.pill').innerText === 'succeeded'", "the other job is shown")
        self.assertEqual(self.browser.run("document.title"), f"{self.short} · Tactus")
        self.assertNotIn("left", self.browser.run("document.querySelector('.title').innerText"))
        self.assert_quiet()

    def test_charts_stand_over_rounds_or_over_time(self):
        self.show_job()
        titles = "[...document.querySelectorAll('.card:not([hidden]) .chart text')].map((one) => one.textContent)"
        self.assertIn("round", self.browser.run(titles))

        self.browser.run("document.querySelector('[data-axis=time]').click()")

        self.until(f"{titles}.some((one) => one.startsWith('training time ['))", "the axis is time")
        self.assertNotIn("round", self.browser.run(titles))
        self.browser.picture(PICTURES / "job-over-time.png")
        self.show("/jobs")
        self.show_job()
        self.until(f"{titles}.some((one) => one.startsWith('training time ['))", "the choice is kept")
        self.browser.run("document.querySelector('[data-axis=round]').click()")
        self.assert_quiet()

    def test_two_jobs_stand_beside_each_other(self):
        self.show(f"/jobs/{self.short}")
        self.until("document.querySelector('.title a') !== null", "the job is shown")
        self.browser.run("document.querySelector('.title a').click()")
        self.until(f"[...document.querySelectorAll('.files a')].some((one) => one.innerText === {json.dumps(self.job)})", "others are offered")
        self.browser.run(f"[...document.querySelectorAll('.files a')].find((one) => one.innerText === {json.dumps(self.job)}).click()")

        self.until("document.querySelectorAll('.chart .line').length === 4", "both curves are in both charts")

        self.assertEqual(self.browser.run("[...document.querySelectorAll('.chart .legend')][0].innerText").split(), [self.short, self.job])
        self.assertEqual(self.browser.run("[...document.querySelectorAll('thead th')].map((one) => one.innerText)"), ["", self.short, self.job])
        for width in (1280, 390):
            self.browser.screen(width)
            self.until(f"document.documentElement.scrollWidth <= {width}", "nothing scrolls sideways")
            self.browser.picture(PICTURES / f"compare-{width}.png")
        self.assert_quiet()

    def test_the_curve_moves_by_events_alone(self):
        self.show_job()
        self.until("document.querySelector('#link').innerText === 'live'", "the stream is open")
        rounds = "document.querySelectorAll('.facts dd span')[2].innerText"
        path = "document.querySelectorAll('.chart .line')[1].getAttribute('d')"

        before = self.browser.run(f"[{rounds}, {path}]")
        self.until(f"{rounds} !== {json.dumps(before[0])} && {path} !== {json.dumps(before[1])}", "the curve grows")

        self.assertIn(f"/events?job={self.job}", " ".join(self.browser.requests))
        self.assert_quiet()

    def test_a_decision_says_why_on_focus_and_on_hover(self):
        self.show_job()
        decisions = json.loads(self.cluster.tactus("get", "decisions", self.job, "-o", "json")[1])["decisions"]
        reasons = {one["reason"] for one in decisions}

        # By the keyboard alone: from the curve, the next stop of the tab key is the newest row of marks.
        self.browser.run("document.querySelector('.chart rect[tabindex]').focus()")
        self.browser.press("Tab")
        self.assertEqual(self.browser.run("document.activeElement.getAttribute('class').split(' ')[0]"), "mark")
        tip = self.browser.run("document.querySelector('.chart .tip:not([hidden])').innerText")
        self.assertTrue(any(reason in tip for reason in reasons), tip)
        self.browser.picture(PICTURES / "job-decision.png", whole=False)
        first = self.browser.run("document.activeElement.dataset.key")
        self.browser.press("ArrowRight")
        self.assertNotEqual(self.browser.run("document.activeElement.dataset.key"), first)
        # The focus stays where it is while the curve moves.
        second = self.browser.run("document.activeElement.dataset.key")
        rounds = self.browser.run("document.querySelectorAll('.facts dd span')[2].innerText")
        self.until(f"document.querySelectorAll('.facts dd span')[2].innerText !== {json.dumps(rounds)}", "rounds go on")
        self.assertEqual(self.browser.run("document.activeElement.dataset.key"), second)
        self.assertEqual(self.browser.run("document.querySelectorAll('.chart .tip:not([hidden])').length"), 1)

        self.browser.run("document.activeElement.blur()")
        self.assertEqual(self.browser.run("document.querySelectorAll('.chart .tip:not([hidden])').length"), 0)
        x, y = self.browser.run("(() => { const box = document.querySelector('.chart .mark rect').getBoundingClientRect(); "
                                "return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        self.browser.point(x, y)
        self.assertTrue(any(reason in self.browser.run("document.querySelector('.chart .tip').innerText") for reason in reasons))
        self.assert_quiet()

    def test_values_are_read_with_the_arrow_keys(self):
        self.show_job()
        self.browser.run("document.querySelector('.chart rect[tabindex]').focus()")

        self.browser.press("ArrowLeft")

        tip = self.browser.run("document.querySelector('.chart .tip').innerText")
        self.assertIn("mean loss", tip)
        said = self.browser.run("document.querySelector('.chart [aria-live]').textContent")
        self.assertIn("round", said)
        self.assert_quiet()

    def test_every_decision_is_in_the_list_with_its_reason(self):
        self.show_job()

        for decision in json.loads(self.cluster.tactus("get", "decisions", self.job, "-o", "json")[1])["decisions"][:3]:
            self.until(f"document.querySelector('.decisions').innerText.includes({json.dumps(decision['reason'])})",
                       f"the reason is listed: {decision['reason']}")
        self.assert_quiet()

    def test_what_a_reader_opened_in_the_list_stays_open(self):
        self.show_job()
        opened = "[...document.querySelectorAll('.decisions details')].pop().open"
        text = "document.querySelector('.decisions').textContent"
        self.until(f"{opened} === false", "a decision has its numbers")

        self.browser.run(f"{opened} = true")
        before = self.browser.run(text)
        # Another policy has another first plan, with its decisions; the planner's own may be long in coming.
        self.cluster.tactus("update", self.job, "--set", "spec.adapt.aggregation.policy=adasum")
        self.until(f"{text} !== {json.dumps(before)}", "the list changes")

        self.assertTrue(self.browser.run(opened))
        self.assert_quiet()

    def test_a_job_is_shown_when_the_coordinator_answers_again(self):
        self.show("/")
        self.until("document.querySelectorAll('.node').length >= 2", "the nodes are shown")
        self.network(offline=True)
        try:
            self.go(f"/jobs/{self.short}")
            self.until("document.querySelector('.notice').innerText === 'The coordinator does not answer.'", "it is said")
        finally:
            self.network()

        self.until("document.querySelectorAll('.chart .line').length > 3", "the curves are drawn")
        self.assertTrue(self.browser.run("document.querySelector('.notice').hidden"))

    def test_a_view_that_is_left_while_it_loads_ends(self):
        self.show("/jobs")
        self.until("document.querySelectorAll('tbody tr').length >= 2", "the jobs are listed")
        self.network(latency=400)
        try:
            self.go(f"/jobs/{self.job}")
            self.until("document.querySelector('h1').innerText !== 'Jobs'", "the job's view is there")
            self.go("/jobs")
            self.until("document.querySelectorAll('tbody tr').length >= 2", "the jobs are listed")
        finally:
            self.network()
        self.browser.requests.clear()
        self.until(f"performance.now() > {self.browser.run('performance.now()') + 6000}", "some time passes")

        self.assertIn("/api/jobs", " ".join(self.browser.requests))
        self.assertNotIn(f"job={self.job}", " ".join(self.browser.requests))
        self.assert_quiet()

    def test_skipping_to_the_content_keeps_the_view(self):
        self.show_job()

        self.browser.run("document.querySelector('.skip').click()")

        self.assertEqual(self.browser.run("[location.hash, document.activeElement.id]"), [f"#/jobs/{self.job}", "main"])
        self.assert_quiet()

    def test_an_address_that_is_none_leads_nowhere(self):
        for place, said in (("/jobs/%E0%A4%A", "There is no job"), ("/jobs/Nope", "There is no job"), ("/x%", "Nothing is here")):
            with self.subTest(place):
                self.browser.open("about:blank")
                self.show(place)
                self.until(f"document.body.innerText.includes({json.dumps(said)})", "it is said")

    def test_no_width_scrolls_sideways_and_every_theme_draws(self):
        for dark in (False, True):
            for width in (360, 768, 1440):
                self.browser.screen(width, dark=dark)
                for name, place, drawn in (("fleet", "/", ".node"), ("jobs", "/jobs", "tbody tr"),
                                           ("job", f"/jobs/{self.job}", ".chart .mark")):
                    self.show(place)
                    self.until(f"document.querySelectorAll('{drawn}').length > 0", f"{place} is drawn")
                    wide = self.browser.run("document.documentElement.scrollWidth")
                    self.assertLessEqual(wide, width, f"{place} at {width}")
                    ground = self.browser.run("getComputedStyle(document.documentElement).backgroundColor")
                    self.assertEqual(ground, "rgb(18, 20, 23)" if dark else "rgb(246, 245, 242)")
                    self.browser.picture(PICTURES / f"{name}-{width}-{'dark' if dark else 'light'}.png")
        self.assert_quiet()

    def test_a_job_that_is_over_shows_its_history(self):
        self.show(f"/jobs/{self.short}")
        self.until("document.querySelector('.pill').innerText === 'succeeded'", "the state is said")

        self.until("document.querySelectorAll('.chart .line').length > 3", "the curves are drawn")
        self.assertNotIn("/events", " ".join(self.browser.requests))
        result = "document.querySelector('[aria-labelledby=result]').innerText"
        self.until(f"{result}.includes('tactus download {self.short} --to result/')", "it is said how the files are had")
        self.assertIn("model.pt", self.browser.run(result))
        self.assertIn("Validation loss", self.browser.run("document.querySelector('.facts').innerText"))
        # What never changed is a line of text and no chart.
        said = self.browser.run("document.querySelector('.constants').innerText").split("\n")
        self.assertEqual(said[said.index("Learning rate") + 1], "0.1")
        self.assertTrue(self.browser.run("document.querySelector('[aria-label=\"Learning rate\"]').hidden"))
        self.browser.picture(PICTURES / "job-over.png")
        self.assert_quiet()

    def test_an_unknown_job_is_said(self):
        self.show("/jobs/none-77")
        self.until("document.body.innerText.includes('There is no job none-77')", "it is said")

        self.assertEqual(self.browser.run("[...document.querySelectorAll('.chart')].filter((one) => one.offsetParent).length"), 0)

    def test_a_job_that_is_deleted_meanwhile_is_said(self):
        spec = tiny_spec(self.folder.path / "corpus.txt", rounds=5)
        spec["name"] = "brief"
        spec["workers"] = {"min": 1, "max": 1}
        job = self.cluster.submit(spec)
        self.cluster.tactus("cancel", job, check=False)
        self.cluster.wait(job, ["CANCELLED", "SUCCEEDED"])
        self.show(f"/jobs/{job}")
        self.until("document.querySelector('#link').innerText === 'over'", "the job is shown")

        self.cluster.tactus("delete", job, "--yes")

        self.until("document.body.innerText.includes('was deleted')", "it is said")

    def test_text_of_others_is_text(self):
        self.show_job()

        self.assertEqual(self.browser.run("document.querySelector('.title .tags').innerText"), f"note={HOSTILE}")
        self.assertEqual(self.browser.run("document.querySelectorAll('main img, main script, main iframe').length"), 0)
        self.assert_quiet()

    def test_landmarks_and_names(self):
        self.show_job()

        nameless = self.browser.run(
            "[...document.querySelectorAll('a, button, select, [tabindex=\"0\"], [role=img]')].filter((one) => "
            "!(one.innerText || one.textContent || '').trim() && !one.getAttribute('aria-label') && "
            "!(one.labels && one.labels.length) && one.getClientRects().length).map((one) => one.outerHTML)")
        self.assertEqual(nameless, [])
        self.assertEqual(self.browser.run("['header', 'nav', 'main', 'footer'].map((one) => document.querySelectorAll(`body > ${one}, body > header > ${one}`).length)"), [1, 1, 1, 1])
        self.assertEqual(self.browser.run("document.querySelectorAll('h1').length"), 1)

    def test_nothing_can_be_changed(self):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            request = urllib.request.Request(f"{self.origin}/api/job?job={self.job}", method=method)
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=20)
            self.assertEqual(refused.exception.code, 405)


if __name__ == "__main__":
    if not CHROMIUM:
        print("skipped: chromium is not installed")
        sys.exit(77)
    unittest.main(verbosity=2)
