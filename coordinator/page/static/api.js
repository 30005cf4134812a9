// The coordinator's JSON and event streams.

export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const PATIENCE_MS = 15000;

// Throws Refusal: with the server's own line, or status 0 when there is no server.
export async function get(path, query = {}) {
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined));
  let answer;
  try {
    answer = await fetch(`${path}?${parameters}`, {signal: AbortSignal.timeout(PATIENCE_MS)});
  } catch (error) {
    throw new Refusal(0, "The coordinator does not answer.");
  }
  if (!answer.ok) throw new Refusal(answer.status, (await answer.text()).trim());
  return answer.json();
}

// Calls `task` now and every `ms` after it is done, while the page is looked at; returns what ends it.
export function repeat(task, ms) {
  let ended = false;
  let timer;
  const run = async () => {
    clearTimeout(timer);
    if (ended) return;
    if (!document.hidden) await task();
    if (!ended) timer = setTimeout(run, ms);
  };
  const look = () => { if (!document.hidden) run(); };
  document.addEventListener("visibilitychange", look);
  run();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

// The events of a job while the page is looked at: a browser opens few connections to one server, and a page behind
// others needs none. `on` has a function for each event, and `state(live)`; `on.again()` when events may be missing.
export function follow(job, on) {
  let source = null;
  let ended = false;
  const close = () => { if (source) source.close(); source = null; };
  const end = () => {
    ended = true;
    close();
    document.removeEventListener("visibilitychange", look);
  };
  const open = () => {
    source = new EventSource(`/events?job=${encodeURIComponent(job)}`);
    source.onopen = () => { on.state(true); on.again(); };
    source.onerror = () => {
      on.state(false);
      // A browser gives up after an answer that is no stream; a coordinator that starts anew may give one.
      if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(look, 3000); }
    };
    for (const name of ["job", "progress", "decision"]) {
      source.addEventListener(name, (event) => on[name](JSON.parse(event.data)));
    }
    source.addEventListener("lagging", () => on.again());
    source.addEventListener("over", () => { end(); on.over(); });
    source.addEventListener("gone", () => { end(); on.gone(); });
  };
  const look = () => {
    if (ended) return;
    if (document.hidden) close();
    else if (!source) open();
  };
  document.addEventListener("visibilitychange", look);
  look();
  return end;
}
