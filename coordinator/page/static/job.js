// One job: where it is, its curves with the decisions on them, its workers and its logs.

import {follow, get, repeat} from "/api.js";
import {el, replace, setText, setTitle, table} from "/dom.js";
import {bytes, clock, counted, duration, figures, idOf, isOver, isTraining, number, percent, seconds, stateKind, stateWord, whole} from "/format.js";
import {JobCharts, decisionItem, idle, withNewest} from "/job_charts.js";

const ROUNDS_PAUSE_MS = 4000;
const DECISIONS_PAUSE_MS = 20000;  // a new one is told at once; later comes what it was good for
const LOGS_PAUSE_MS = 3000;
const OVER_PAUSE_MS = 15000;
const RETRY_PAUSE_MS = 3000;
const DECISIONS_MAX = 500;
const LOG_LINES_MAX = 1000;
const LIVE_MAX = 600;
const POINTS = 600;       // of a whole history
const POINTS_NEW = 100;   // of what came since
const POINTS_MAX = 1500;  // then the history is read anew

const WORKERS = [
  {label: "Worker", cell: (worker) => `Rank ${whole(number(worker.rank ?? 0))}`},
  {label: "Where", cell: (worker) => `${worker.node || "–"} ${worker.device || ""}`},
  {label: "Batch", number: true, cell: (worker) => whole(number(worker.batch_size ?? 0))},
  {label: "Own speed, samples/s", number: true, cell: (worker) => figures(number(worker.samples_per_second ?? 0), 3)},
  {label: "Samples", number: true, cell: (worker) => whole(number(worker.samples ?? 0))},
  {label: "Idle", number: true, cell: idle},
];

// What a plan chooses is a word of its own: "every_step". An axis that is new to this page is shown like the others.
function choicesOf(plan) {
  const steps = number(plan.period ?? 1);
  const says = ([name, value]) => name !== "reason" && /^[a-z_]+$/.test(value) && value !== "none";
  return Object.entries(plan).filter(says).map(([name, value]) => {
    const words = name.replaceAll("_", " ");
    const note = name !== "synchronization" ? "" : steps > 1 ? `${steps} steps a round` : "one step a round";
    return [words[0].toUpperCase() + words.slice(1), value.replaceAll("_", " "), note];
  });
}

function factsOf(job) {
  const progress = job.progress || {}, result = job.result || {}, plan = progress.plan || {};
  const over = isOver(job);
  const batch = (plan.batch_sizes || []).reduce((sum, one) => sum + number(one), 0);
  const epoch = number(progress.epoch ?? 0) + number(progress.epoch_fraction ?? 0);
  const list = [
    ["Loss", figures(number(over ? result.train_loss ?? progress.loss : progress.loss)), "last 20 steps, at common parameters"],
    ["Speed", isTraining(job) ? figures(number(progress.samples_per_second), 3) : "–", "samples/s, all workers"],
    ["Rounds", whole(number(progress.rounds ?? result.rounds ?? 0)), over ? "in all" : `epoch ${epoch.toFixed(2)}`],
    ["Trained", duration(seconds(over ? result.train_time || progress.elapsed : progress.elapsed)), over ? `ended ${clock(job.end_time)}` : progress.eta ? `about ${duration(seconds(progress.eta))} left` : "end not foreseen"],
    ["Batch", batch ? whole(batch) : "–", `samples a step, ${counted((plan.batch_sizes || []).length, "worker")}`],
    ...choicesOf(plan),
  ];
  const validation = result.validation || {};
  if (number(validation.samples) > 0) {
    const right = validation.accuracy === undefined || validation.accuracy < 0 ? "" : `, accuracy ${percent(number(validation.accuracy))}`;
    list.splice(1, 0, ["Validation loss", figures(number(validation.loss ?? 0)), `${whole(number(validation.samples))} samples${right}`]);
  }
  const shortfall = (name, count, one, many, why) => { if (count > 0) list.push([name, whole(count), `${count === 1 ? one : many}, ${why}`]); };
  shortfall("Skipped", number(progress.skipped_rounds ?? 0), "update", "updates", "as numbers were not finite");
  shortfall("Repeated", number(progress.repeated_passes ?? 0), "pass in pieces", "passes in pieces", "as memory was short");
  shortfall("Not on record", number(progress.unrecorded_rounds ?? 0), "round", "rounds", "as reports were lost");
  shortfall("Regrouped", number(job.regroups ?? 0), "time", "times", `last: ${job.regroup_reason}`);
  shortfall("Resized", number(job.resizes ?? 0), "time", "times", `last: ${job.resize_reason}`);
  shortfall("Rolled back", number(job.rollback_samples ?? 0), "sample passed over", "samples passed over", `as ${job.rollback_reason}`);
  if (over && result.utilisation) list.push(["Utilisation", percent(number(result.utilisation)), "of the workers' own speeds"]);
  return list;
}

// A list of terms whose values change in place.
class Facts {
  constructor() {
    this.node = el("dl", {class: "facts"});
  }

  draw(list) {
    if (this.node.children.length !== list.length) {
      this.node.replaceChildren(...list.map(() => el("div", {}, el("dt"), el("dd", {}, el("span"), el("small")))));
    }
    list.forEach(([term, value, small], i) => {
      const [dt, dd] = this.node.children[i].children;
      setText(dt, term);
      setText(dd.firstChild, value);
      setText(dd.lastChild, small);
    });
  }
}

class Logs {
  constructor(id) {
    this.id = id;
    this.token = "";
    this.box = el("pre", {class: "logs", tabindex: 0, role: "region", "aria-label": "Last lines of the logs", hidden: true});
    this.note = el("span", {class: "soft"});
    this.node = el("section", {class: "card", "aria-labelledby": "logs"}, el("header", {}, el("h2", {id: "logs"}, "Logs"), this.note), this.box);
    this.busy = false;
  }

  async load() {
    if (this.busy) return;
    this.busy = true;
    try {
      const {entries = []} = await get("/api/logs", {job: this.id, tail: this.token ? "" : 60, resume_token: this.token});
      const atEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 30;
      for (const entry of entries) this.add(entry);
      while (this.box.childNodes.length > LOG_LINES_MAX) this.box.firstChild.remove();
      if (atEnd) this.box.scrollTop = this.box.scrollHeight;
      this.box.hidden = !this.box.childNodes.length;
      setText(this.note, this.box.hidden ? "the workers have written nothing" : "");
    } catch (error) {
      setText(this.note, error.message);
    } finally {
      this.busy = false;
    }
  }

  add(entry) {
    this.token = entry.resume_token;
    for (const line of String(entry.text || "").replace(/\n$/, "").split("\n")) {
      this.box.append(el("div", {}, el("span", {class: "rank"}, `${entry.rank || 0} │ `), line));
    }
  }
}

// The list of decisions. An item stays as long as what it says, with what a reader opened in it.
class Decisions {
  constructor() {
    this.items = new Map();  // by name: {text, node}
    this.list = el("ol", {class: "decisions", tabindex: 0, "aria-label": "Decisions, newest first"});
    this.note = el("span", {class: "soft"});
    this.node = el("section", {class: "card", "aria-labelledby": "decisions"}, el("header", {}, el("h2", {id: "decisions"}, "Decisions"), this.note), this.list);
  }

  draw(decisions) {
    const before = this.items;
    this.items = new Map();
    for (const decision of [...decisions].reverse()) this.items.set(decision.name, this.item(decision, before.get(decision.name)));
    replace(this.list, [...this.items.values()].map(({node}) => node));
    const all = decisions.length < DECISIONS_MAX ? "newest first" : "the newest; tactus get decisions tells the others";
    setText(this.note, decisions.length ? `${decisions.length}, ${all}` : "none yet");
  }

  item(decision, before) {
    const text = JSON.stringify(decision);
    if (before && before.text === text) return before;
    const node = decisionItem(decision);
    const details = node.querySelector("details"), was = before && before.node.querySelector("details");
    if (details && was) details.open = was.open;
    return {text, node};
  }
}

// The files of a job that is over, and how to have them.
function resultNodes(job, id) {
  const files = (job.result && job.result.artifacts) || [], taken = job.snapshots || [];
  const known = new Set(files.map((file) => file.path));
  const others = taken.filter((file) => !known.has(file.path));
  if (!files.length && !others.length) return null;
  const item = (file) => el("li", {}, el("code", {}, file.path), ` ${bytes(number(file.size_bytes ?? 0))}`);
  const size = others.reduce((sum, file) => sum + number(file.size_bytes ?? 0), 0);
  return [el("p", {}, el("code", {}, `tactus download ${id} --to result/`)), el("ul", {class: "files"}, files.map(item),
    others.length ? el("li", {}, `${counted(others.length, "snapshot")}, ${bytes(size)}`) : null)];
}

const lastOf = (rounds) => (rounds.length ? number(rounds[rounds.length - 1].round ?? 0) : -1);

class JobView {
  constructor(main, setLink, id) {
    this.setLink = setLink;
    this.id = id;
    this.job = null;
    this.rounds = [];
    this.decisions = [];
    this.validations = [];
    this.live = [];
    this.read = false;  // the rounds, once
    this.anew = true;   // the rounds are to be read from the first
    this.ended = false;
    this.ends = [];
    this.timers = new Map();
    this.charts = new JobCharts();
    this.facts = new Facts();
    this.logs = new Logs(id);
    this.pill = el("span", {class: "pill"});
    this.left = el("span", {class: "left"});  // how long it will take
    this.reason = el("p", {class: "soft"});
    this.tags = el("div", {class: "tags", "aria-label": "Labels", role: "group"});
    this.notice = el("p", {class: "notice bad", role: "alert", hidden: true});
    this.workers = el("div");
    this.list = new Decisions();
    this.files = el("div");
    this.result = el("section", {class: "card", "aria-labelledby": "result", hidden: true}, el("header", {}, el("h2", {id: "result"}, "Result")), this.files);
    this.compare = el("a", {href: `#/compare/${encodeURIComponent(id)}`}, "Compare with another job");
    this.spec = el("pre");
    main.append(el("div", {class: "title"}, el("h1", {}, id), this.pill, this.left, this.tags, this.compare, this.reason), this.notice, this.facts.node, this.result,
      ...this.charts.nodes(),
      this.list.node,
      el("section", {class: "card", "aria-labelledby": "workers"}, el("header", {}, el("h2", {id: "workers"}, "Workers")), this.workers),
      this.logs.node,
      el("section", {class: "card", "aria-labelledby": "spec"}, el("header", {}, el("h2", {id: "spec"}, "Job file")),
        el("details", {}, el("summary", {}, "as it was submitted, with later changes"), this.spec)));
    this.below = [...main.children].slice(2);
  }

  start() {
    const end = repeat(async () => {
      if (!await this.loadJob()) return;
      end();
      if (isOver(this.job)) this.watchOver();
      else this.watchLive();
    }, RETRY_PAUSE_MS);
    this.keep(end);
  }

  watchLive() {
    this.keep(repeat(() => this.logs.load(), LOGS_PAUSE_MS));
    this.keep(repeat(() => this.loadRounds(), ROUNDS_PAUSE_MS));
    this.keep(repeat(() => this.loadDecisions(), DECISIONS_PAUSE_MS));
    this.keep(follow(this.id, {
      job: (job) => this.take(job),
      progress: (progress) => this.takeProgress(progress),
      decision: () => this.soon("decisions", () => this.loadDecisions()),
      again: () => this.soon("history", () => this.loadHistory()),
      over: () => this.watchOver(),
      gone: () => this.sayGone(),
      state: (live) => this.showLink(live ? "live" : "lost", live ? "live" : "connecting …"),
    }));
  }

  // A job that is over changes no more, but it may be deleted while its page is open. What could not be read is read
  // again.
  watchOver() {
    this.release();
    this.showLink("", "over");
    let whole = false;
    this.keep(repeat(async () => {
      if (!await this.loadJob() || whole) return;
      whole = await this.loadHistory();
      this.live = [];
      this.draw();
    }, OVER_PAUSE_MS));
    this.keep(repeat(() => this.logs.load(), OVER_PAUSE_MS));
  }

  // `end` is called when the view ends; at once when it has.
  keep(end) {
    if (this.ended) end();
    else this.ends.push(end);
  }

  // One call for all that happens within a moment.
  soon(name, task) {
    if (this.ended || this.timers.has(name)) return;
    this.timers.set(name, setTimeout(() => {
      this.timers.delete(name);
      task();
    }, 300));
  }

  showLink(state, text) {
    if (!this.ended) this.setLink(state, text);
  }

  loadJob() {
    return this.loading(async () => this.take(await get("/api/job", {job: this.id})));
  }

  // Everything, from the first round on. Whether all of it came.
  async loadHistory() {
    this.anew = true;
    return (await Promise.all([this.loadRounds(), this.loadValidations(), this.loadDecisions()])).every(Boolean);
  }

  // The rounds behind those that are here; all of them, evenly spread, when many have come together.
  loadRounds() {
    return this.loading(async () => {
      const anew = this.anew || this.rounds.length > POINTS_MAX;
      const known = anew ? [] : this.rounds;
      const question = this.question = {};
      const {rounds = []} = await get("/api/rounds", {job: this.id, first_round: lastOf(known) + 1, points: anew ? POINTS : POINTS_NEW});
      if (question !== this.question) return;  // a later one stands for it
      this.anew = false;
      this.rounds = [...known, ...rounds];
      this.read = true;
      this.live = this.live.filter(([round]) => round > lastOf(this.rounds));
      this.draw();
    });
  }

  loadValidations() {
    return this.loading(async () => {
      const {validations = []} = await get("/api/validations", {job: this.id});
      this.validations = validations;
      this.draw();
    });
  }

  loadDecisions() {
    return this.loading(async () => {
      const {decisions = []} = await get("/api/decisions", {job: this.id, newest: DECISIONS_MAX});
      this.decisions = withNewest(decisions);
      this.list.draw(this.decisions);
      this.draw();
    });
  }

  // Whether it came.
  async loading(task) {
    try {
      await task();
      this.notice.hidden = true;
      return true;
    } catch (error) {
      if (error.status === 404 || error.status === 400) this.sayGone();
      else this.say(error.message);
      return false;
    }
  }

  take(job) {
    this.job = {...job, progress: job.progress || (this.job && this.job.progress)};
    setText(this.pill, stateWord(job));
    this.pill.className = `pill ${stateKind(job)}`;
    setText(this.reason, job.state_reason || (job.result && job.result.stop_reason) || "");
    replace(this.tags, Object.entries(job.labels || {}).map(([key, value]) => el("span", {}, `${key}=${value}`)));
    setText(this.spec, JSON.stringify(job.spec || {}, null, 2));
    this.drawFacts();
  }

  takeProgress(progress) {
    const count = (some) => number(((some || {}).validation || {}).count ?? 0);
    if (count(progress) !== count((this.job || {}).progress)) this.soon("validations", () => this.loadValidations());
    this.job = {...this.job, progress};
    const round = number(progress.rounds ?? 0) - 1;
    const last = this.live[this.live.length - 1];
    if (round >= 0 && progress.loss !== undefined && (!last || round > last[0])) {
      this.live = [...this.live, [round, number(progress.loss)]].slice(-LIVE_MAX);
    }
    this.drawFacts();
    this.draw();
  }

  drawTitle() {
    if (this.ended) return;
    const eta = isTraining(this.job) ? seconds((this.job.progress || {}).eta) : NaN;
    const left = Number.isFinite(eta) ? `${duration(eta)} left` : "";
    setText(this.left, left && `about ${left}`);
    setTitle(left ? `${left} · ${this.id}` : this.id);
  }

  drawFacts() {
    this.drawTitle();
    this.facts.draw(factsOf(this.job));
    const files = isOver(this.job) && resultNodes(this.job, this.id);
    this.result.hidden = !files;
    if (files) replace(this.files, files);
    const workers = (isTraining(this.job) && this.job.progress && this.job.progress.workers) || [];
    replace(this.workers, workers.length ? table(`${counted(workers.length, "worker")}, as last reported`, WORKERS, workers)
      : el("p", {class: "soft"}, isOver(this.job) ? "The job is over; its workers have ended."
        : isTraining(this.job) ? "No worker has reported yet." : "The job has no workers now."));
  }

  draw() {
    if (this.drawing || !this.read) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.charts.draw(this);
    });
  }

  say(text) {
    this.notice.hidden = false;
    setText(this.notice, text);
  }

  sayGone() {
    if (this.ended) return;
    this.setLink("", "");
    this.end();
    const known = this.job !== null;
    replace(this.notice, known ? `The job ${this.id} was deleted. What is shown was read before. ` : `There is no job ${this.id}; it may have been deleted. `,
      el("a", {href: "#/jobs"}, "All jobs"));
    this.notice.hidden = false;
    if (!known) for (const node of this.below) node.hidden = true;
  }

  release() {
    for (const end of this.ends.splice(0)) end();
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
  }

  end() {
    this.ended = true;
    this.release();
  }
}

export function showJob(main, setLink, id) {
  const view = new JobView(main, setLink, idOf(id));
  view.start();
  return () => {
    view.end();
    view.charts.end();
  };
}
