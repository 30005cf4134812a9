// Two jobs beside each other: what they came to, and their curves in one chart.

import {get, repeat} from "/api.js";
import {Chart} from "/chart.js";
import {axisChoice, lossChoice} from "/choices.js";
import {axisOver, losses, roundOf, smooth} from "/curves.js";
import {el, replace, setText, table} from "/dom.js";
import {duration, figures, idOf, isTraining, number, percent, seconds, stateKind, stateWord, whole} from "/format.js";

const PAUSE_MS = 5000;
const POINTS = 600;
const COLORS = [0, 1];

const progressOf = (job) => job.progress || {};
const resultOf = (job) => job.result || {};
const validationOf = (job) => (number((resultOf(job).validation || {}).samples) > 0 ? resultOf(job).validation : {});

const ROWS = [
  ["State", (job) => el("span", {class: `pill ${stateKind(job)}`}, stateWord(job))],
  ["Loss", (job) => figures(number(resultOf(job).train_loss ?? progressOf(job).loss))],
  ["Validation loss", (job) => figures(number(validationOf(job).loss))],
  ["Accuracy", (job) => (number(validationOf(job).accuracy) >= 0 ? percent(number(validationOf(job).accuracy)) : "–")],
  ["Trained", (job) => duration(seconds(resultOf(job).train_time || progressOf(job).elapsed))],
  ["Rounds", (job) => whole(number(progressOf(job).rounds ?? resultOf(job).rounds ?? 0))],
  ["Samples", (job) => whole(number(resultOf(job).samples ?? progressOf(job).samples ?? 0))],
  ["Samples/s now", (job) => (isTraining(job) ? figures(number(progressOf(job).samples_per_second), 3) : "–")],
  ["Utilisation", (job) => percent(number(resultOf(job).utilisation))],
  ["Workers", (job) => whole((progressOf(job).workers || []).length)],
  ["Skipped updates", (job) => whole(number(progressOf(job).skipped_rounds ?? 0))],
];

async function load(id) {
  const [job, {rounds = []}] = await Promise.all([get("/api/job", {job: id}), get("/api/rounds", {job: id, points: POINTS})]);
  return {id, job, rounds};
}

class Comparison {
  constructor(main, setLink, ids) {
    this.setLink = setLink;
    this.ids = ids;
    this.sides = [];
    this.loss = new Chart({title: "Training loss", yLabel: "mean loss over samples", height: 320});
    this.speed = new Chart({title: "Throughput", yLabel: "samples a second, all workers", unit: "samples/s", fromZero: true, format: (value) => figures(value, 3)});
    this.problem = el("p", {class: "notice bad", role: "alert", hidden: true});
    this.facts = el("div");
    this.choice = axisChoice(() => this.draw());
    this.scale = lossChoice(() => this.draw());
    const card = (chart, ...more) => el("section", {class: "card", "aria-label": chart.options.title},
      el("header", {}, el("h2", {}, chart.options.title), more), chart.node);
    main.append(el("div", {class: "title"}, el("h1", {}, ids.join(" and "))), this.problem,
      card(this.loss, this.scale.node, this.choice.node), card(this.speed),
      el("section", {class: "card", "aria-label": "What they came to"}, el("header", {}, el("h2", {}, "What they came to")), this.facts));
    this.stop = repeat(() => this.read(), PAUSE_MS);
  }

  async read() {
    try {
      this.sides = await Promise.all(this.ids.map(load));
      this.problem.hidden = true;
      this.setLink("live", "live");
      this.draw();
    } catch (error) {
      this.setLink("lost", "no connection");
      this.problem.hidden = false;
      setText(this.problem, error.message);
    }
  }

  draw() {
    // One axis for both: that of the longer one.
    const kind = this.choice.kind();
    const axes = this.sides.map(({rounds, job}) => axisOver(kind, rounds, job));
    const units = axes.map(({unit = 1}) => unit), unit = Math.max(1, ...units);
    const x = axes[units.indexOf(unit)] || axes[0];
    const at = axes.map((axis, i) => (round) => axis.at(round) * units[i] / unit);
    const curve = (make) => this.sides.map(({id, rounds}, i) => ({name: id, color: COLORS[i],
      points: smooth(make(rounds, at[i]), Math.max(3, Math.round(rounds.length / 30)))}));
    this.loss.draw({x, log: this.scale.log(), series: curve(losses)});
    this.speed.draw({x, series: curve((rounds, place) => rounds.map((round) => [place(roundOf(round)), number(round.samples), number(round.seconds)]))});
    const columns = [{label: "", cell: ([name]) => name}, ...this.sides.map(({id, job}) => ({label: id, number: true, cell: ([, cell]) => cell(job)}))];
    replace(this.facts, table("as last read", columns, ROWS));
  }

  end() {
    this.stop();
    this.loss.end();
    this.speed.end();
  }
}

// Which job to compare the first one with.
function choose(main, setLink, first) {
  const list = el("ul", {class: "files"});
  main.append(el("div", {class: "title"}, el("h1", {}, `Compare ${first}`)),
    el("section", {class: "card", "aria-label": "Other jobs"}, el("header", {}, el("h2", {}, "with")), list));
  return repeat(async () => {
    try {
      const {jobs = []} = await get("/api/jobs", {page_size: 50});
      setLink("live", "live");
      const others = jobs.map(({name}) => idOf(name)).filter((id) => id !== first);
      replace(list, others.length ? others.map((id) => el("li", {}, el("a", {"data-key": id,
        href: `#/compare/${encodeURIComponent(first)}/${encodeURIComponent(id)}`}, id))) : el("li", {class: "soft"}, "There is no other job."));
    } catch {
      setLink("lost", "no connection");
    }
  }, PAUSE_MS);
}

export function showCompare(main, setLink, first, second) {
  if (!second) return choose(main, setLink, first);
  const comparison = new Comparison(main, setLink, [first, second].map(idOf));
  return () => comparison.end();
}
