// What is made of a job's rounds before they are drawn: means, and the axis that they stand on.

import {figures, number, seconds, whole} from "/format.js";

export const roundOf = (round) => number(round.round ?? 0);
export const stepsOf = (round) => number(round.steps) || 1;
const samplesOf = (round) => number(round.samples) || 0;
const perStep = (round) => samplesOf(round) / stepsOf(round);

// Points are [x, value] or [x, value, of], a quotient: samples of seconds, losses of samples.
export const quotients = (points) => points.map(([x, value, of = 1]) => [x, value / of]);

// Each point the mean of its neighbours on both sides, all values over all that they are of, as a mean of quotients is
// ruled by the shortest. Towards the first point there are fewer, as many on one side as on the other: what comes after
// a steep fall must not wait until the fall is far behind, nor be lifted by it.
export function smooth(points, width) {
  const sums = [0], counts = [0];
  for (const [, value, of = 1] of points) {
    const known = Number.isFinite(value) && Number.isFinite(of);
    sums.push(sums[sums.length - 1] + (known ? value : 0));
    counts.push(counts[counts.length - 1] + (known ? of : 0));
  }
  return points.map(([x], i) => {
    const reach = Math.min(Math.floor(i / 4), Math.floor(width / 2)), end = Math.min(points.length, i + reach + 1);
    const of = counts[end] - counts[i - reach];
    return [x, of > 0 ? (sums[end] - sums[i - reach]) / of : NaN];
  });
}

// The losses of rounds, each with the samples that it is a mean over.
export const losses = (rounds, at) => rounds.map((round) => {
  const samples = samplesOf(round) - (number(round.local_samples) || 0) || 1;
  return [at(roundOf(round)), number(round.loss) * samples, samples];
});

// Without the short last rounds of epochs. Where most rounds of a plan have one size, smaller ones are what an epoch had
// left; where sizes vary by themselves all stay.
export function withoutRests(rounds) {
  const plans = new Map();
  for (const round of rounds) {
    const plan = plans.get(round.plan_version) || new Map();
    plans.set(round.plan_version, plan.set(perStep(round), (plan.get(perStep(round)) || 0) + 1));
  }
  const usual = new Map([...plans].map(([version, sizes]) => {
    const [size, count] = [...sizes].reduce((most, one) => (one[1] > most[1] ? one : most));
    const all = [...sizes.values()].reduce((sum, one) => sum + one, 0);
    return [version, count > 0.6 * all ? size : 0];
  }));
  return rounds.filter((round) => perStep(round) >= usual.get(round.plan_version));
}

const UNITS = [[2 * 3600, 3600, "h"], [300, 60, "min"], [0, 1, "s"]];

// Training time of a round's end, from rounds that are not all here: those between two have their mean length. What is
// known of the whole time sets the scale.
function timeline(rounds, job) {
  const progress = (job && job.progress) || {}, result = (job && job.result) || {};
  const numbers = [], times = [];
  let time = 0, before = null;
  for (const round of rounds) {
    const length = Math.max(0, number(round.seconds) || 0);
    if (before === null) time = (roundOf(round) + 1) * length;
    else time += (roundOf(round) - numbers[numbers.length - 1]) * (length + before) / 2;
    numbers.push(roundOf(round));
    times.push(time);
    before = length;
  }
  const known = seconds(result.train_time || progress.elapsed), last = number(progress.rounds ?? result.rounds) - 1;
  const estimate = numbers.length ? time + Math.max(0, last - numbers[numbers.length - 1]) * before : 0;
  const scale = known > 0 && estimate > 0 ? known / estimate : 1;
  return (round) => {
    if (!numbers.length) return 0;
    let low = 0, high = numbers.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[middle] < round) low = middle + 1; else high = middle;
    }
    const after = numbers[low], previous = low > 0 ? low - 1 : -1;
    if (round >= after || previous < 0) return scale * Math.max(0, times[low] + (round - after) * (before || 0));
    const share = (round - numbers[previous]) / (after - numbers[previous]);
    return scale * (times[previous] + share * (times[low] - times[previous]));
  };
}

// Of "time" or "round": where a round stands, and how the axis is called.
export function axisOver(kind, rounds, job) {
  if (kind !== "time") return {label: "round", format: whole, unit: 1, at: (round) => round};
  const at = timeline(rounds, job);
  const end = rounds.length ? at(roundOf(rounds[rounds.length - 1])) : 0;
  const [, unit, name] = UNITS.find(([least]) => end >= least);
  return {label: `training time [${name}]`, format: (value) => figures(value, 3), unit, at: (round) => at(round) / unit};
}
