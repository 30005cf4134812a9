// Line charts in SVG: axes, values under the pointer or the arrow keys, and marks for decisions.

import {el, replace, setText, svg} from "/dom.js";
import {figures, whole} from "/format.js";

const LEFT = 52, RIGHT = 14, BOTTOM = 36;
const MARK_GAP = 13;       // closer marks are one
const MARKS_APART = 30;    // of more marks only so many groups are told apart, and their lines are left out
const GROUPS_MAX = 16;
const TICKS_APART = 74;

// Round numbers from low to high, about `count` of them.
export function ticks(low, high, count) {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) found.push(Number((i * step).toPrecision(12)));
  return found;
}

// Those of a logarithmic axis from 10^low to 10^high: powers of ten, and what lies between where there is room.
export function logTicks(low, high, count) {
  const decades = high - low;
  if (decades < 1) return ticks(10 ** low, 10 ** high, count).filter((value) => value > 0);
  const apart = Math.ceil(decades / count), between = 3 * decades <= count ? [1, 2, 5] : [1];
  const found = [];
  for (let power = Math.floor(low); power <= high; power += apart) {
    for (const one of between) found.push(Number(`${one}e${power}`));
  }
  return found.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
}

function extent(series, pick) {
  let low = Infinity, high = -Infinity;
  for (const one of series) {
    for (const point of one.points) {
      const value = pick(point);
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}

function nearest(points, x) {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && Math.abs(points[low - 1][0] - x) <= Math.abs(points[low][0] - x) ? low - 1 : low;
}

const SHAPES = {
  "axis-batch": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
  "axis-synchronization": "M-4.6-4.6h9.2v9.2h-9.2z",
  "axis-aggregation": "M0-6L5.6 4.4h-11.2z",
  "axis-learning-rate": "M0-6.4L6.4 0L0 6.4L-6.4 0z",
  "axis-encoding": "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
  "axis-several": "M-6.5 0a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0-13 0",
};

const shapeOf = (axis) => SHAPES[axis] || SHAPES["axis-batch"];

// The mark of an axis by itself, for legends.
export const markShape = (axis) => svg("svg", {viewBox: "-8 -8 16 16", width: 14, height: 14, "aria-hidden": "true"},
  svg("path", {d: shapeOf(axis), class: axis}));

// options: title, xLabel, yLabel, height, format(value), fromZero, marksTitle.
// draw({series: [{name, points: [[x, y]], faint, step, color}], marks: [{x, key, axis, label, tip() -> nodes}],
// x: {label, format(value)}, log}). With `log`, not together with fromZero, the vertical axis is logarithmic, and what
// is not above 0 is not drawn.
export class Chart {
  constructor(options) {
    this.options = {height: 190, xLabel: "round", format: figures, ...options};
    this.data = {series: [], marks: [], reading: true};
    this.marks = new Map();  // key -> element, kept so that the focus stays while the curve moves
    this.at = null;          // the x that is read off
    this.active = null;      // the mark that the tab key comes to
    this.svg = svg("svg", {role: "group", "aria-label": this.options.title, height: this.options.height});
    this.back = svg("g", {"aria-hidden": "true"});
    this.plot = svg("rect", {tabindex: 0, role: "img", fill: "transparent"});
    this.lines = svg("g", {"aria-hidden": "true"});
    this.cross = svg("line", {class: "cross", visibility: "hidden"});
    this.pins = svg("g", {role: "group", "aria-label": this.options.marksTitle || "Decisions"});
    this.svg.append(this.back, this.lines, this.cross, this.plot, this.pins);
    this.tip = el("div", {class: "tip", hidden: true});
    this.legend = el("ul", {class: "legend"});
    this.said = el("p", {class: "hidden", "aria-live": "polite"});
    this.node = el("div", {class: "chart"}, this.svg, this.tip, this.legend, this.said);
    this.plot.addEventListener("pointermove", (event) => this.read(this.xOf(event)));
    this.plot.addEventListener("pointerleave", () => this.read(null));
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("blur", () => this.read(null));
    this.pins.addEventListener("keydown", (event) => this.pinKey(event));
    this.width = 0;
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.node);
  }

  end() { this.sizes.disconnect(); }

  resize() {
    const width = Math.floor(this.node.clientWidth);
    if (width === this.width || width < 80) return;
    this.width = width;
    this.render();
  }

  draw(data) {
    this.data = {marks: [], ...data};
    if (this.width) this.render();
  }

  top() { return this.options.marks ? 26 : 10; }

  // How the horizontal axis is called and written.
  axis() { return this.data.x || {label: this.options.xLabel, format: whole}; }

  crowded() { return this.data.marks.length > MARKS_APART; }

  scales() {
    const {series, marks, log} = this.data;
    const height = log ? Math.log10 : (value) => value;
    let [x0, x1] = extent(series, (point) => point[0]);
    let [y0, y1] = extent(series, (point) => height(point[1]));
    if (!Number.isFinite(x0) || !Number.isFinite(y0)) return null;
    for (const mark of marks) if (mark.x > x1) x1 = mark.x;
    if (x1 === x0) x1 = x0 + 1;
    if (this.options.fromZero) y0 = Math.min(0, y0);
    if (y1 === y0) { y1 += Math.abs(y1) * 0.1 || 1; if (!this.options.fromZero) y0 -= Math.abs(y0) * 0.1 || 1; }
    const pad = (y1 - y0) * 0.06;
    if (!this.options.fromZero) y0 -= pad;
    y1 += pad;
    const right = this.width - RIGHT, bottom = this.options.height - BOTTOM, top = this.top();
    return {x0, x1, y0, y1, top, bottom, right, log,
      x: (value) => LEFT + (value - x0) / (x1 - x0) * (right - LEFT),
      y: (value) => bottom - (height(value) - y0) / (y1 - y0) * (bottom - top)};
  }

  render() {
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.options.height}`);
    const scale = this.scale = this.scales();
    this.renderAxes(scale);
    this.lines.replaceChildren(...(scale ? this.data.series.map((one) => this.path(one, scale)) : []));
    this.renderMarks(scale);
    this.renderLegend();
    if (scale) {
      for (const [name, value] of Object.entries({x: LEFT, y: scale.top, width: scale.right - LEFT, height: scale.bottom - scale.top})) {
        this.plot.setAttribute(name, value);
      }
    }
    this.plot.setAttribute("aria-label", this.summary());
    if (this.at !== null) this.read(this.at);
  }

  renderAxes(scale) {
    const {height, yLabel, format} = this.options;
    const axis = this.axis();
    if (!scale) {
      return this.back.replaceChildren(svg("text", {x: this.width / 2, y: height / 2, "text-anchor": "middle"}, this.nothing()));
    }
    const parts = (this.data.bands || []).flatMap((band) => this.band(band, scale));
    for (const value of (scale.log ? logTicks : ticks)(scale.y0, scale.y1, (scale.bottom - scale.top) / 36)) {
      const y = scale.y(value);
      parts.push(svg("line", {class: "gridline", x1: LEFT, x2: scale.right, y1: y, y2: y}),
        svg("text", {x: LEFT - 7, y: y + 4, "text-anchor": "end"}, format(value)));
    }
    parts.push(svg("line", {class: "base", x1: LEFT, x2: scale.right, y1: scale.bottom, y2: scale.bottom}));
    for (const value of ticks(scale.x0, scale.x1, (scale.right - LEFT) / TICKS_APART)) {
      parts.push(svg("text", {x: scale.x(value), y: scale.bottom + 16, "text-anchor": "middle"}, axis.format(value)));
    }
    parts.push(svg("text", {x: scale.right, y: height - 4, "text-anchor": "end"}, axis.label),
      svg("text", {x: 0, y: height - 4}, `${yLabel}${scale.log ? ", logarithmic" : ""}`));
    this.back.replaceChildren(...parts.filter(Boolean));
  }

  // A stretch of rounds behind the curve, with its name where there is room.
  band({from, to, label, color}, scale) {
    const [x, end] = [from, to].map((one) => scale.x(Math.max(scale.x0, Math.min(scale.x1, one))));
    const wide = end - x;
    if (wide <= 0) return [];
    return [svg("rect", {class: `band f${color % 8}`, x, y: scale.top, width: wide, height: scale.bottom - scale.top}),
      wide > 7 * label.length + 8 ? svg("text", {class: "in", x: x + 6, y: scale.bottom - 7}, label) : ""];
  }

  path(one, scale) {
    let d = "", open = false, before = 0;
    for (const [x, y] of one.points) {
      if (!Number.isFinite(scale.y(y))) { open = false; continue; }
      const [px, py] = [scale.x(x).toFixed(1), scale.y(y).toFixed(1)];
      d += open ? (one.step ? `H${px}V${py}` : `L${px} ${py}`) : `M${px} ${py}`;
      if (!open) before = px;
      open = true;
    }
    // A single point would be no line.
    if (one.points.length === 1 && d) d += `h0.1M${before - 3} ${d.split(" ")[1].replace("h0.1", "")}h6`;
    return svg("path", {d, class: `line c${one.color % 8}${one.faint ? " faint" : ""}`});
  }

  // Marks that would overlap stand together; many in few groups, each a stretch of the axis, in its middle.
  groups(scale) {
    const gap = this.crowded() ? Math.max(3 * MARK_GAP, (scale.right - LEFT) / GROUPS_MAX) : MARK_GAP;
    const found = [];
    for (const mark of this.data.marks) {
      const x = scale.x(Math.max(scale.x0, Math.min(scale.x1, mark.x)));
      const last = found[found.length - 1];
      if (last && x - last.begin < gap) {
        last.marks.push(mark);
        if (this.crowded()) last.x = (last.begin + x) / 2;
      } else {
        found.push({x, begin: x, marks: [mark]});
      }
    }
    return found;
  }

  renderMarks(scale) {
    const groups = scale ? this.groups(scale) : [];
    const before = this.marks;
    this.marks = new Map();
    for (const group of groups) {
      // Under the key of the first, but that the one which may have the focus keeps it as curves grow closer.
      const key = (group.marks.find((mark) => mark.key === this.active) || group.marks[0]).key;
      const pin = before.get(key) || this.pin(key);
      before.delete(key);
      this.marks.set(key, pin);
      pin.group = group;
      this.place(pin, group, scale);
      if (pin.parentNode !== this.pins) this.pins.append(pin);
    }
    for (const gone of before.values()) gone.remove();
    if (!this.marks.has(this.active)) this.active = this.marks.keys().next().value ?? null;
    for (const [key, pin] of this.marks) pin.setAttribute("tabindex", key === this.active ? 0 : -1);
    this.pins.setAttribute("aria-label", groups.length ? `${this.options.marksTitle || "Decisions"}, move with the arrow keys` : "");
  }

  pin(key) {
    const pin = svg("g", {class: "mark", role: "img", "data-key": key});
    const show = () => { this.active = pin.dataset.key; this.explain(pin); };
    pin.addEventListener("focus", show);
    pin.addEventListener("pointerenter", show);
    pin.addEventListener("blur", () => this.hide());
    pin.addEventListener("pointerleave", () => { if (document.activeElement !== pin) this.hide(); });
    return pin;
  }

  place(pin, group, scale) {
    const axes = new Set(group.marks.map((mark) => mark.axis));
    const axis = axes.size === 1 ? group.marks[0].axis : "axis-several";
    const count = group.marks.length;
    pin.setAttribute("class", `mark ${axis === "axis-several" ? group.marks[0].axis : axis}`);
    pin.setAttribute("transform", `translate(${group.x.toFixed(1)} 10)`);
    pin.setAttribute("aria-label", count > 4 ? `${count} decisions: ${this.tally(group.marks)}` : group.marks.map((mark) => mark.label).join(". "));
    const half = count > 9 ? 3 + 3.2 * String(count).length : 6.5;  // of the badge, which is as wide as its number
    const badge = `M${6.5 - half}-6.5H${half - 6.5}a6.5 6.5 0 0 1 0 13H${6.5 - half}a6.5 6.5 0 0 1 0-13z`;
    pin.replaceChildren(svg("line", {y1: 8, y2: this.crowded() ? 13 : scale.bottom - 10}),
      svg("path", {d: count > 9 ? badge : shapeOf(count > 1 ? "axis-several" : axis)}),
      svg("rect", {x: -half - 1.5, y: -10, width: 2 * half + 3, height: 22, fill: "transparent", stroke: "none"}),
      count > 1 ? svg("text", {y: 3.2, stroke: "none"}, count) : "");
  }

  explain(pin) {
    const marks = pin.group.marks, many = marks.length > 4;
    const shown = many ? marks.slice(-2) : marks;
    replace(this.tip, many ? el("p", {class: "soft"}, `${marks.length} decisions: ${this.tally(marks)}. The last of them:`) : null,
      shown.map((mark) => el("div", {class: "one"}, mark.tip())));
    this.show(pin.group.x, 24);
  }

  // "batch 30, synchronization 7".
  tally(marks) {
    const counts = new Map();
    for (const {axis} of marks) counts.set(axis, (counts.get(axis) || 0) + 1);
    return [...counts].map(([axis, count]) => `${axis.replace("axis-", "").replaceAll("-", " ")} ${count}`).join(", ");
  }

  show(x, y) {
    this.tip.hidden = false;
    const room = this.node.clientWidth, wide = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room - wide, x + 12 + wide > room ? x - wide - 12 : x + 12))}px`;
    this.tip.style.top = `${y}px`;
  }

  hide() { this.tip.hidden = true; }

  xOf(event) {
    const box = this.svg.getBoundingClientRect();
    const scale = this.scale;
    if (!scale || !box.width) return null;
    const px = (event.clientX - box.left) * this.width / box.width;
    return scale.x0 + (px - LEFT) / (scale.right - LEFT) * (scale.x1 - scale.x0);
  }

  // Shows the values at the point nearest to x.
  read(x) {
    const scale = this.scale;
    const series = this.data.series.filter((one) => one.points.length && !one.faint);
    this.cross.setAttribute("visibility", x === null || !scale ? "hidden" : "visible");
    if (x === null || !scale || !series.length) { this.at = null; return this.hide(); }
    const lead = series[0].points;
    const at = this.at = lead[nearest(lead, x)][0];
    const px = scale.x(at);
    for (const [name, value] of Object.entries({x1: px, x2: px, y1: scale.top, y2: scale.bottom})) this.cross.setAttribute(name, value);
    replace(this.tip, el("div", {class: "soft"}, `${this.axis().label} ${this.axis().format(at)}`), series.slice(0, 10).map((one) => {
      const value = one.points[nearest(one.points, at)][1];
      return el("div", {class: "row"}, el("span", {}, el("span", {class: `key k${one.color % 8}`}), one.name),
        el("b", {}, `${this.options.format(value)}${this.options.unit ? ` ${this.options.unit}` : ""}`));
    }), series.length > 10 ? el("div", {class: "soft"}, `and ${series.length - 10} more`) : null);
    this.show(px, scale.top + 6);
  }

  key(event) {
    const lead = this.data.series.find((one) => one.points.length && !one.faint);
    if (!lead) return;
    const last = lead.points.length - 1;
    const now = this.at === null ? last : nearest(lead.points, this.at);
    const leap = Math.max(1, Math.round(last / 20));
    const to = {ArrowLeft: now - 1, ArrowRight: now + 1, PageDown: now - leap, PageUp: now + leap, Home: 0, End: last}[event.key];
    if (event.key === "Escape") return this.read(null);
    if (to === undefined) return;
    event.preventDefault();
    this.read(lead.points[Math.max(0, Math.min(last, to))][0]);
    setText(this.said, this.tip.innerText.replaceAll("\n", " "));
  }

  pinKey(event) {
    const keys = [...this.marks.keys()];
    const now = keys.indexOf(this.active);
    if (event.key === "Escape") return this.hide();
    const to = {ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: keys.length - 1}[event.key];
    if (to === undefined || !keys[to]) return;
    event.preventDefault();
    this.marks.get(this.active).setAttribute("tabindex", -1);
    this.active = keys[to];
    this.marks.get(this.active).setAttribute("tabindex", 0);
    this.marks.get(this.active).focus();
  }

  renderLegend() {
    const named = this.data.series.filter((one) => !one.faint && one.name);
    const items = named.length < 2 ? [] : named.slice(0, 16).map((one) => el("li", {}, el("span", {class: `key k${one.color % 8}`}), one.name));
    if (named.length > 16) items.push(el("li", {}, `and ${named.length - 16} more`));
    if (this.legend.children.length !== items.length || [...this.legend.children].some((one, i) => one.textContent !== items[i].textContent)) {
      this.legend.replaceChildren(...items);
    }
  }

  nothing() {
    if (this.data.reading) return "Reading …";
    const below = this.data.log && this.data.series.some((one) => one.points.length);
    return below ? "Nothing above 0 for a logarithmic scale" : this.data.nothing || "No rounds yet";
  }

  summary() {
    const {title, format, unit} = this.options;
    const axis = this.axis();
    const lines = this.data.series.filter((one) => !one.faint && one.points.length);
    if (!lines.length) return `${title}: ${this.nothing()}`;
    const words = lines.slice(0, 4).map((one) => {
      const [first, last] = [one.points[0], one.points[one.points.length - 1]];
      return `${one.name}: ${format(first[1])} at ${axis.label} ${axis.format(first[0])}, ${format(last[1])} at ${axis.label} ${axis.format(last[0])}`;
    });
    return `${title}${unit ? ` in ${unit}` : ""}. ${words.join("; ")}. Read values with the arrow keys.`;
  }
}
