// All jobs on record, newest first.

import {get, repeat} from "/api.js";
import {el, replace, setText, table} from "/dom.js";
import {ago, clock, counted, duration, figures, idOf, isTraining, number, seconds, stateKind, stateWord, whole} from "/format.js";

const PAUSE_MS = 3000;
const STATES = ["QUEUED", "STARTING", "RUNNING", "STOPPING", "SUSPENDING", "PAUSED", "SUCCEEDED", "FAILED", "CANCELLED"];

const progressOf = (job) => job.progress || {};
const lossOf = (job) => number(progressOf(job).loss ?? (job.result && job.result.train_loss));

const COLUMNS = [
  {label: "Job", cell: (job) => el("a", {href: `#/jobs/${encodeURIComponent(idOf(job.name))}`, "data-key": job.name}, idOf(job.name))},
  {label: "State", cell: (job) => el("span", {class: `pill ${stateKind(job)}`, title: job.state_reason}, stateWord(job))},
  {label: "Rounds", number: true, cell: (job) => whole(number(progressOf(job).rounds ?? (job.result && job.result.rounds) ?? 0))},
  {label: "Loss", number: true, cell: (job) => figures(lossOf(job))},
  {label: "Samples/s", number: true, cell: (job) => {
    const rate = number(progressOf(job).samples_per_second);
    return rate > 0 && isTraining(job) ? figures(rate, 3) : "–";
  }},
  {label: "Workers", number: true, cell: (job) => (isTraining(job) ? whole((progressOf(job).workers || []).length) : "–")},
  {label: "Trained", number: true, cell: (job) => duration(seconds((job.result && job.result.train_time) || progressOf(job).elapsed))},
  {label: "Left", number: true, cell: (job) => (job.end_time ? "–" : duration(seconds(progressOf(job).eta)))},
  {label: "Submitted", number: true, cell: (job) => el("span", {title: clock(job.create_time)}, ago(job.create_time))},
];

export function showJobs(main, setLink) {
  const problem = el("p", {class: "notice bad", role: "alert", hidden: true});
  const list = el("div");
  let pages = [""];
  let end = () => {};
  const again = () => { end(); end = repeat(load, PAUSE_MS); };
  const state = el("select", {id: "state", onchange: () => { pages = [""]; again(); }},
    el("option", {value: ""}, "all"), STATES.map((one) => el("option", {value: one}, one.toLowerCase())));
  const newer = el("button", {type: "button", onclick: () => { pages.pop(); again(); }}, "Newer");
  const older = el("button", {type: "button", onclick: () => { pages.push(older.dataset.token); again(); }}, "Older");
  main.append(el("div", {class: "title"}, el("h1", {}, "Jobs")), problem,
    el("section", {class: "card", "aria-label": "Jobs"},
      el("header", {class: "tools"}, el("label", {for: "state"}, "State"), state, el("span", {class: "tools"}, newer, older)), list));

  async function load() {
    const page = pages[pages.length - 1];
    try {
      const {jobs = [], next_page_token = ""} = await get("/api/jobs", {page_size: 50, page_token: page,
        filter: state.value && `state=${state.value}`});
      if (page !== pages[pages.length - 1]) return;
      problem.hidden = true;
      setLink("live", "live");
      older.dataset.token = next_page_token;
      older.hidden = !next_page_token;
      newer.hidden = pages.length < 2;
      replace(list, jobs.length ? table(`${counted(jobs.length, "job")}${next_page_token || pages.length > 1 ? " on this page" : ""}, newest first`, COLUMNS, jobs)
        : el("p", {class: "empty"}, state.value ? `No job is ${state.value.toLowerCase()}.` : "No job was submitted yet. Try tactus submit FILE."));
    } catch (error) {
      setLink("lost", "no connection");
      problem.hidden = false;
      setText(problem, error.message);
    }
  }

  again();
  return () => end();
}
