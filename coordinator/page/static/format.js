// Numbers, durations and names as a person reads them.

export const number = (value) => (value === undefined || value === null || value === "" ? NaN : Number(value));

export function figures(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2).replace("e+", "e");
  if (size >= 1000) return Math.round(value).toLocaleString("en-GB").replaceAll(",", "\u202f");
  return String(Number(value.toPrecision(digits)));
}

export function whole(value) {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en-GB").replaceAll(",", "\u202f") : "–";
}

export const counted = (count, one) => `${whole(count)} ${one}${count === 1 ? "" : "s"}`;

export const percent = (ratio) => (Number.isFinite(ratio) ? `${(100 * ratio).toFixed(1)}\u202f%` : "–");
export const signedPercent = (ratio) => (ratio > 0 ? "+" : "") + percent(ratio).replace("-", "−");

export function bytes(value) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024) return `${figures(value, 3)} ${unit}`;
    value /= 1024;
  }
  return `${figures(value, 3)} TiB`;
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const all = Math.round(seconds);
  const [days, hours, minutes, rest] = [Math.floor(all / 86400), Math.floor(all / 3600) % 24, Math.floor(all / 60) % 60, all % 60];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
}

// "12.5s", as JSON has a duration.
export const seconds = (text) => (text ? Number(String(text).replace(/s$/, "")) : NaN);

export const ago = (time) => (time ? `${duration(Math.max(0, Date.now() - Date.parse(time)) / 1000)} ago` : "–");
// As the terminal has it, in local time.
export function clock(time) {
  if (!time) return "–";
  const at = new Date(time), two = (value) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

// Only known states get a colour.
const KINDS = {RUNNING: "busy", STARTING: "busy", STOPPING: "busy", SUCCEEDED: "good", FAILED: "bad", SUSPENDING: "warn",
  PAUSED: "warn"};
export const stateOf = (job) => String(job.state || "").replace("JOB_STATE_", "");
export const stateWord = (job) => stateOf(job).toLowerCase() || "unknown";
export const stateKind = (job) => KINDS[stateOf(job)] || "";
export const isTraining = (job) => ["RUNNING", "STOPPING"].includes(stateOf(job));
export const isOver = (job) => ["SUCCEEDED", "FAILED", "CANCELLED"].includes(stateOf(job));
export const idOf = (name) => String(name || "").split("/").pop();
