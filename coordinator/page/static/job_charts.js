// What a job's rounds and decisions look like as curves.

import {Chart, markShape} from "/chart.js";
import {axisChoice, lossChoice} from "/choices.js";
import {axisOver, losses, quotients, roundOf, smooth, stepsOf, withoutRests} from "/curves.js";
import {el} from "/dom.js";
import {bytes, duration, figures, idOf, number, percent, seconds, signedPercent, whole} from "/format.js";

// Of AXIS_LEARNING_RATE the class "axis-learning-rate" and the words "learning rate".
export function axisOf(decision) {
  const words = (decision.axis || "AXIS_PLAN").toLowerCase().split("_");
  return [words.join("-"), words.slice(1).join(" ")];
}

export const shiftOf = (decision) => (decision.from ? `${decision.from} → ${decision.to}` : `begins with ${decision.to}`);

export function gainOf(decision) {
  if (!decision.metric) return "";
  const predicted = number(decision.predicted_gain ?? 0);
  const unmeasured = decision.newest ? "not measured yet" : "not measured";  // what replaced it came too soon
  const measured = decision.measured_gain === undefined ? unmeasured : `${signedPercent(number(decision.measured_gain))} measured`;
  return `${signedPercent(predicted)} ${decision.metric} predicted, ${measured}`;
}

// With `newest` on the last decision of each axis; `decisions` are oldest first.
export function withNewest(decisions) {
  const last = new Map(decisions.map((one) => [one.axis, one.name]));
  return decisions.map((one) => ({...one, newest: last.get(one.axis) === one.name}));
}

function markOf(decision, at) {
  const [axis, word] = axisOf(decision);
  const round = number(decision.round ?? 0);
  return {
    x: at(round), key: idOf(decision.name), axis,
    label: `Round ${round}, ${word}: ${shiftOf(decision)}. ${decision.reason}`,
    tip: () => [
      el("div", {class: "row"}, el("b", {class: axis}, word), el("span", {class: "soft"}, `round ${whole(round)} · plan ${decision.plan_version}`)),
      el("div", {class: "mono"}, shiftOf(decision)),
      el("p", {}, decision.reason),
      gainOf(decision) ? el("p", {class: "soft"}, gainOf(decision)) : null,
    ].filter(Boolean),
  };
}

const valuesOf = (rounds, at, pick) => rounds.map((round) => [at(roundOf(round)), pick(round)]);

// One series a worker, its samples over `of(round)`, drawn as `shape` makes of them; of more workers than can be told
// apart, the least and the most.
function perWorker(rounds, at, of, shape, step) {
  const count = Math.max(0, ...rounds.map((round) => (round.worker_samples || []).length));
  const all = Array.from({length: count}, (_, rank) => ({name: `worker ${rank}`, color: rank, step,
    points: shape(rounds.map((round) => [at(roundOf(round)), number((round.worker_samples || [])[rank]), of(round)]))}));
  if (count <= 8) return all;
  const over = (name, color, choose) => ({name, color, step, points: rounds.map((round, i) =>
    [at(roundOf(round)), choose(...all.map((one) => one.points[i][1]).filter(Number.isFinite))])});
  return [over("least of the workers", 1, Math.min), over("most of the workers", 0, Math.max)];
}

function bandsOf(decisions, at, last) {
  const changes = decisions.filter((one) => one.axis === "AXIS_AGGREGATION");
  const modes = [...new Set(changes.map((one) => one.to))];
  const begin = (one) => at(number(one.round ?? 0));
  return changes.map((one, i) => ({from: begin(one), to: i + 1 < changes.length ? begin(changes[i + 1]) : last,
    label: one.to, color: modes.indexOf(one.to) * 2}));
}

// The one value that all points have; NaN: they have several, or none is known.
function constantOf(series) {
  const values = new Set(series.flatMap((one) => one.points.map(([, value]) => value)).filter(Number.isFinite));
  return values.size === 1 ? [...values][0] : NaN;
}

export class JobCharts {
  constructor() {
    this.loss = new Chart({title: "Loss", yLabel: "loss", height: 300, marksTitle: "Decisions on the loss curve", marks: true});
    this.speed = new Chart({title: "Throughput of each worker", yLabel: "samples/s, waiting included", unit: "samples/s", fromZero: true, format: (value) => figures(value, 3)});
    this.batch = new Chart({title: "Batch size of each worker", yLabel: "samples a step", unit: "samples", fromZero: true, marksTitle: "Decisions on batch sizes", marks: true});
    this.period = new Chart({title: "Steps of a round", yLabel: "steps between synchronizations", unit: "steps", fromZero: true, marksTitle: "Decisions on synchronization", marks: true});
    this.aggregation = new Chart({title: "Aggregation", flatTitle: "Orthogonality", yLabel: "orthogonality of what was combined", fromZero: true, format: (value) => figures(value, 3), marksTitle: "Decisions on aggregation", marks: true});
    this.bytes = new Chart({title: "Bytes of a round", yLabel: "payload of its collectives, one worker", fromZero: true, format: bytes, marksTitle: "Decisions on the encoding", marks: true});
    this.rate = new Chart({title: "Learning rate", yLabel: "learning rate", fromZero: true, format: (value) => figures(value, 3), marksTitle: "Decisions on the learning rate", marks: true});
    this.gain = new Chart({title: "Learning rate scale", yLabel: "factor on the base learning rate", unit: "×", fromZero: true, format: (value) => figures(value, 3)});
    this.legend = el("ul", {class: "legend"});  // the axes that were decided on, in the order of the first plan
    this.all = [this.loss, this.speed, this.batch, this.period, this.aggregation, this.bytes, this.rate, this.gain];
    this.cards = new Map();  // of charts that may turn out to be a line of text
    this.constants = el("dl", {class: "constants"});
    this.unchanged = el("section", {class: "card", "aria-label": "What did not change", hidden: true},
      el("header", {}, el("h2", {}, "What did not change")), this.constants);
    const again = () => this.view && this.draw(this.view);
    this.choice = axisChoice(again);
    this.scale = lossChoice(again);
  }

  nodes() {
    const card = (chart, ...notes) => {
      const node = el("section", {class: "card", "aria-label": chart.options.title},
        el("header", {}, el("h2", {}, chart.options.title), notes), chart.node);
      this.cards.set(chart, node);
      return node;
    };
    const loss = card(this.loss, el("span", {class: "soft"}, "of training, the mean over samples above the single rounds, and of validation; each mark is a decision"), this.scale.node, this.choice.node);
    loss.append(this.legend);
    return [loss, el("div", {class: "pair"}, card(this.speed), card(this.batch), card(this.period), card(this.aggregation), card(this.bytes), card(this.rate), card(this.gain)), this.unchanged];
  }

  // `live` has the points of progress behind the last round that was read: [round, loss].
  draw(view) {
    this.view = view;
    const {rounds, decisions, validations, live, job} = view;
    const x = axisOver(this.choice.kind(), rounds, job), at = x.at;
    const marks = decisions.map((decision) => markOf(decision, at));
    const axes = new Map(decisions.map(axisOf));
    if (this.legend.children.length !== axes.size) {
      this.legend.replaceChildren(...[...axes].map(([axis, word]) => el("li", {}, markShape(axis), ` ${word}`)));
    }
    const of = (axis) => marks.filter((mark) => mark.axis === axis);
    const width = Math.max(3, Math.round(rounds.length / 30));
    this.loss.draw({x, marks, log: this.scale.log(), series: [{name: "single rounds", faint: true, color: 0, points: valuesOf(rounds, at, (round) => number(round.loss))},
      {name: "mean loss", color: 0, points: [...smooth(losses(rounds, at), width), ...live.map(([round, loss]) => [at(round), loss])]},
      ...(validations.length ? [{name: "validation loss", color: 3, points: validations.map((one) => [at(Math.max(0, number(one.rounds ?? 0) - 1)), number(one.loss ?? 0)])}] : [])]});
    const last = rounds.length ? at(roundOf(rounds[rounds.length - 1])) : 0;
    const secondsOf = (round) => number(round.seconds);
    const smoothed = (points) => smooth(points, width);
    const total = {name: "all together", color: 7, points: smoothed(rounds.map((round) => [at(roundOf(round)), number(round.samples), secondsOf(round)]))};
    this.speed.draw({x, series: [...perWorker(rounds, at, secondsOf, smoothed), total]});
    const nothing = rounds.length ? "Not drawn for so many workers" : "";
    const regular = withoutRests(rounds);
    const line = (name, color, pick, step = false) => [{name, color, step, points: valuesOf(regular, at, pick)}];
    this.batch.draw({x, marks: of("axis-batch"), nothing, series: perWorker(regular, at, stepsOf, quotients, true)});
    this.unchanging = [];
    this.drawOrSay(this.period, {x, marks: of("axis-synchronization"), series: line("steps", 2, stepsOf, true)});
    this.drawOrSay(this.aggregation, {x, marks: of("axis-aggregation"), bands: bandsOf(decisions, at, last),
      series: line("orthogonality", 1, (round) => number(round.orthogonality ?? NaN))});
    this.drawOrSay(this.bytes, {x, marks: of("axis-encoding"), series: line("bytes", 6, (round) => number(round.bytes ?? NaN), true)});
    this.drawOrSay(this.rate, {x, marks: of("axis-learning-rate"), series: line("learning rate", 5, (round) => number(round.learning_rate ?? NaN), true)});
    this.drawOrSay(this.gain, {x, series: line("scale", 4, (round) => number(round.gain ?? NaN))});
    this.unchanged.hidden = !this.unchanging.length;
    this.constants.replaceChildren(...this.unchanging.flatMap(([title, value]) => [el("dt", {}, title), el("dd", {}, value)]));
  }

  // A curve that is flat from end to end says no more than its value does, unless what is behind it changes.
  drawOrSay(chart, data) {
    const value = data.series[0].points.length > 1 ? constantOf(data.series) : NaN;
    const kinds = new Set((data.bands ?? []).map((band) => band.label));
    const constant = Number.isFinite(value) && kinds.size < 2;
    this.cards.get(chart).hidden = constant;
    const {title, flatTitle, format, unit} = chart.options;
    if (constant) this.unchanging.push([flatTitle ?? title, `${format(value)}${unit === "×" ? " ×" : ""}`]);
    else chart.draw(data);
  }

  end() { for (const chart of this.all) chart.end(); }
}

function inputs(decision) {
  const known = (decision.inputs || []).map((one) => [one.name, `${figures(number(one.value ?? 0))} ${one.unit || ""}`]);
  const others = (decision.alternatives || []).map((one) => [`instead: ${one.value}`, `${signedPercent(number(one.predicted_gain ?? 0))} predicted`]);
  const all = [...known, ...others];
  if (!all.length) return null;
  return el("details", {}, el("summary", {"data-key": `inputs ${decision.name}`}, "from which numbers"),
    el("dl", {}, all.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
}

export function decisionItem(decision) {
  const [axis, word] = axisOf(decision);
  return el("li", {}, el("div", {class: "head"}, markShape(axis), el("span", {class: "axis"}, word),
    el("span", {class: "shift"}, shiftOf(decision)),
    el("span", {class: "soft number"}, `round ${whole(number(decision.round ?? 0))} · ${duration(seconds(decision.train_time) || 0)}`)),
    el("p", {class: "reason"}, decision.reason),
    gainOf(decision) ? el("p", {class: "gain"}, gainOf(decision)) : null, inputs(decision));
}

export const idle = (worker) => percent(number(worker.idle_ratio ?? 0));
