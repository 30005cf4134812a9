// Elements from plain values. Text becomes text nodes and never markup: names, reasons and log lines are written by
// others.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Sets the text of a node only when it differs, so that what has the focus or is selected stays.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Of the window or tab.
export function setTitle(words) {
  const title = `${words} · Tactus`;
  if (document.title !== title) document.title = title;
}

// A table whose rows turn into cards on a narrow screen; `columns` are {label, number, cell(row)}, the first is the row's
// head. The roles are said, as a browser forgets them where the display is another.
export function table(caption, columns, rows) {
  const head = el("tr", {role: "row"}, columns.map((column) =>
    el("th", {scope: "col", role: "columnheader", class: column.number && "number"}, column.label)));
  const body = rows.map((row) => el("tr", {role: "row"}, columns.map((column, index) => {
    const kind = column.number && "number";
    return index === 0
      ? el("th", {scope: "row", role: "rowheader", class: kind}, column.cell(row))
      : el("td", {role: "cell", class: kind, "data-label": column.label}, column.cell(row));
  })));
  return el("table", {class: "stack", role: "table"}, el("caption", {}, caption),
    el("thead", {role: "rowgroup"}, head), el("tbody", {role: "rowgroup"}, body));
}

// Puts `children` in place of what `node` has, and the focus back on what stands for what had it: the element with the
// same data-key.
export function replace(node, ...children) {
  const had = node.contains(document.activeElement) && document.activeElement.closest("[data-key]");
  const key = had && had.dataset.key;
  node.replaceChildren(...children.flat().filter(Boolean));
  if (!key) return;
  const again = [...node.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
  if (again) again.focus({preventScroll: true});
}
