// Buttons that choose how the charts of a view are drawn.

import {chosen, keep} from "/address.js";
import {el} from "/dom.js";

// `options` are [value, word]; `change(value)` is called with another one.
function buttons(name, label, options, value, change) {
  const all = options.map(([one, word]) => el("button", {type: "button", [`data-${name}`]: one,
    "aria-pressed": String(one === value), onclick: () => press(one)}, word));
  const press = (one) => {
    for (const button of all) button.setAttribute("aria-pressed", String(button.dataset[name] === one));
    change(one);
  };
  return el("div", {class: "choice", role: "group", "aria-label": label}, all);
}

// What all charts are over, "round" or "time"; the browser keeps it for all views.
export function axisChoice(change) {
  let kind = "round";
  try { kind = localStorage.getItem("axis") === "time" ? "time" : "round"; } catch { /* a browser that keeps nothing */ }
  const node = buttons("axis", "What the charts are over", [["round", "Rounds"], ["time", "Time"]], kind, (value) => {
    kind = value;
    try { localStorage.setItem("axis", value); } catch { /* the same */ }
    change();
  });
  return {node, kind: () => kind};
}

// Whether the loss has a logarithmic scale; the address keeps it, as it is of the job that is looked at.
export function lossChoice(change) {
  let log = chosen("loss") === "log";
  const node = buttons("scale", "The scale of the loss", [["linear", "Linear"], ["log", "Log"]], log ? "log" : "linear", (value) => {
    log = value === "log";
    keep("loss", log ? "log" : "");
    change();
  });
  return {node, log: () => log};
}
