// All nodes and their devices: what they are, how they are, and what runs where.

import {chosen, keep} from "/address.js";
import {get, repeat} from "/api.js";
import {el, replace, setText} from "/dom.js";
import {ago, bytes, counted, figures, idOf, isTraining, number, stateOf, whole} from "/format.js";

const PAUSE_MS = 3000;
const NODES_MAX = 1000;
const NOT_OVER = ["SUCCEEDED", "FAILED", "CANCELLED"].map((state) => `state!=${state}`).join(" AND ");

const jobLink = (name, key) => el("a", {href: `#/jobs/${encodeURIComponent(idOf(name))}`, "data-key": key}, idOf(name));
const nodeId = (node) => idOf(node.name);

// As tactus get nodes has it.
function condition(node) {
  if (!node.connected) return ["bad", "gone"];
  if (node.leaving) return ["warn", "leaving"];
  if (node.draining) return ["warn", (node.devices || []).some((device) => device.job) ? "draining" : "drained"];
  return node.cordoned ? ["warn", "cordoned"] : ["good", "ready"];
}

const labelsOf = (node) => Object.entries(node.labels || {}).map(([key, value]) => `${key}=${value}`);

// Whether each of the words is in the node's name, in one of its labels, or begins its state.
export function matches(node, words) {
  const texts = [nodeId(node), ...labelsOf(node)].map((text) => text.toLowerCase());
  const [, state] = condition(node);
  return words.toLowerCase().split(/\s+/).every((word) => state.startsWith(word) || texts.some((text) => text.includes(word)));
}

// Several where they train in one process.
function jobLinks(node, device) {
  return (device.jobs || [device.job]).flatMap((job, at) => [at ? ", " : "", jobLink(job, `${node.name}/${device.name}`)]);
}

function deviceItem(node, device) {
  const rate = number(device.samples_per_second);
  const what = [device.model, device.memory_bytes && bytes(number(device.memory_bytes)),
    device.emulated_speed && `emulated at ${figures(device.emulated_speed)}×`].filter(Boolean).join(" · ");
  return el("li", {class: device.fault ? "bad" : device.job ? "busy" : ""},
    el("b", {}, device.name),
    el("span", {class: "job"}, device.job ? jobLinks(node, device) : el("span", {class: "soft"}, device.fault ? "kept free" : "free")),
    el("span", {class: "number soft", title: "by itself, without waiting for others"}, rate > 0 ? `${figures(rate, 3)} samples/s` : ""),
    what ? el("span", {class: "what"}, what) : null,
    device.fault ? el("span", {class: "fault"}, `Fault: ${device.fault}`) : null);
}

function nodeCard(node) {
  const [kind, word] = condition(node);
  const tags = [...labelsOf(node), ...(node.taints || []).map((taint) => `taint ${taint}`)];
  return el("article", {class: "card node", "aria-label": `Node ${nodeId(node)}`},
    el("header", {}, el("h3", {}, nodeId(node)), el("span", {class: `pill ${kind}`}, word),
      el("span", {class: "soft"}, [node.leaving, node.agent_version && `agent ${node.agent_version}`, node.connected ? "" : `last heard ${ago(node.last_seen_time)}`].filter(Boolean).join(" · "))),
    el("ul", {class: "devices", "aria-label": `Devices of ${nodeId(node)}`}, (node.devices || []).map((device) => deviceItem(node, device))),
    (node.devices || []).length ? null : el("p", {class: "soft"}, "No devices."),
    tags.length ? el("div", {class: "tags"}, tags.map((tag) => el("span", {}, tag))) : null);
}

async function allNodes() {
  let nodes = [], token = "";
  do {
    const page = await get("/api/nodes", {page_size: 200, page_token: token});
    nodes = [...nodes, ...(page.nodes || [])];
    token = page.next_page_token || "";
  } while (token && nodes.length < NODES_MAX);
  return {nodes, more: Boolean(token)};
}

// `more` says of what there is more than was read.
function facts(nodes, jobs, more) {
  const devices = nodes.flatMap((node) => (node.devices || []).map((device) => ({node, device})));
  const busy = devices.filter(({device}) => device.job).length;
  const faulty = devices.filter(({device}) => device.fault).length;
  const free = devices.filter(({node, device}) => !device.job && !device.fault && node.connected && !node.cordoned && !node.leaving).length;
  const states = jobs.map(stateOf);
  const count = (...wanted) => states.filter((state) => wanted.includes(state)).length;
  const fact = (term, value, small) => el("div", {}, el("dt", {}, term), el("dd", {}, value, el("small", {}, small)));
  const training = jobs.filter(isTraining);
  const rate = training.reduce((sum, job) => sum + (number((job.progress || {}).samples_per_second) || 0), 0);
  return el("dl", {class: "facts"},
    fact("Nodes", `${nodes.filter((node) => node.connected).length} of ${nodes.length}${more.nodes ? "+" : ""}`, "connected"),
    fact("Devices", `${whole(devices.length)}${more.nodes ? "+" : ""}`, `${busy} busy, ${free} free`),
    fact("Faults", whole(faulty), faulty ? "devices kept free" : "all devices are well"),
    fact("Jobs", `${whole(count("RUNNING", "STARTING", "STOPPING"))}${more.jobs ? "+" : ""}`, "active"),
    fact("Waiting", `${whole(count("QUEUED", "PAUSED", "SUSPENDING"))}${more.jobs ? "+" : ""}`, "queued or paused"),
    fact("Throughput", rate > 0 ? `${figures(rate, 3)}${more.jobs ? "+" : ""}` : "–", `samples/s, ${counted(training.length, "job")} that train${training.length === 1 ? "s" : ""}`));
}

function troubles(nodes) {
  const found = [];
  for (const node of nodes) {
    if (!node.connected) found.push(`${nodeId(node)} is not connected; last heard ${ago(node.last_seen_time)}.`);
    for (const device of node.devices || []) if (device.fault) found.push(`${nodeId(node)} ${device.name}: ${device.fault}`);
  }
  return found;
}

function running(jobs) {
  const shown = jobs.filter((job) => ["RUNNING", "STARTING", "STOPPING"].includes(stateOf(job)));
  if (!shown.length) return el("p", {class: "soft"}, "No job is running.");
  return el("ul", {class: "devices", "aria-label": "Running jobs"}, shown.map((job) => {
    const progress = job.progress || {};
    const places = (progress.workers || []).map((worker) => `${worker.node} ${worker.device}`);
    return el("li", {class: "busy"}, jobLink(job.name, job.name),
      el("span", {class: "soft"}, progress.loss === undefined ? "starting" : `loss ${figures(progress.loss)} · ${figures(number(progress.samples_per_second), 3)} samples/s`),
      el("span", {class: "number soft"}, counted(places.length, "worker")),
      el("span", {class: "what"}, places.slice(0, 8).join(", ") + (places.length > 8 ? ` and ${places.length - 8} more` : "")));
  }));
}

export function showFleet(main, setLink) {
  const problem = el("p", {class: "notice bad", role: "alert", hidden: true});
  const summary = el("div"), attention = el("div"), active = el("div"), list = el("div", {class: "nodes"});
  const count = el("span", {class: "soft", role: "status"});
  const filter = el("input", {id: "filter", type: "search", placeholder: "name, label or state", value: chosen("nodes"),
    autocomplete: "off", oninput: () => { keep("nodes", filter.value.trim()); draw(); }});
  let known = null;
  const worst = (node) => (node.connected ? 1 : 0) + ((node.devices || []).some((device) => device.fault) ? 0 : 2);
  const draw = () => {
    if (!known) return;
    const shown = known.filter((node) => matches(node, filter.value.trim()));
    setText(count, shown.length < known.length ? `${whole(shown.length)} of ${counted(known.length, "node")}` : "");
    replace(list, !known.length ? el("p", {class: "empty"}, "No agent has dialled in yet. Start one with tactus-agent --coordinator ADDRESS.")
      : shown.length ? shown.sort((a, b) => worst(a) - worst(b) || a.name.localeCompare(b.name)).map(nodeCard)
        : el("p", {class: "empty"}, "No node has that in its name, its labels or its state."));
  };
  main.append(el("div", {class: "title"}, el("h1", {}, "Fleet")), problem, summary, attention,
    el("section", {class: "card", "aria-labelledby": "running"}, el("header", {}, el("h2", {id: "running"}, "Running now")), active),
    el("section", {class: "stacked", "aria-labelledby": "nodes"}, el("h2", {id: "nodes", class: "hidden"}, "Nodes"),
      el("div", {class: "tools"}, el("label", {for: "filter"}, "Nodes"), filter, count), list));
  return repeat(async () => {
    try {
      const [{nodes, more}, {jobs = [], next_page_token}] = await Promise.all([allNodes(),
        get("/api/jobs", {page_size: 200, filter: NOT_OVER})]);
      problem.hidden = true;
      setLink("live", "live");
      replace(summary, facts(nodes, jobs, {nodes: more, jobs: Boolean(next_page_token)}));
      const found = troubles(nodes);
      replace(attention, found.length ? el("section", {class: "notice", "aria-label": "Needs attention"},
        found.slice(0, 20).map((text) => el("p", {}, text)), found.length > 20 ? el("p", {}, `and ${found.length - 20} more`) : null) : null);
      replace(active, running(jobs));
      known = nodes;
      draw();
    } catch (error) {
      setLink("lost", "no connection");
      problem.hidden = false;
      setText(problem, error.message);
    }
  }, PAUSE_MS);
}
