// The part of the address behind #: which view is shown, and behind a question mark what was chosen in it, so that a
// link or a reload shows the same: "#/jobs/demo-1?loss=log".

function parts() {
  const [path, ...rest] = location.hash.slice(1).split("?");
  return {path, choices: new URLSearchParams(rest.join("?"))};
}

export function place() {
  const {path} = parts();
  try {
    return decodeURIComponent(path) || "/";
  } catch {
    return path;  // what is wrongly written leads nowhere
  }
}

// Empty: nothing was chosen.
export const chosen = (name) => parts().choices.get(name) || "";

// The view stays, and the way back does not lead through every choice.
export function keep(name, value) {
  const {path, choices} = parts();
  if (value) choices.set(name, value);
  else choices.delete(name);
  history.replaceState(null, "", `#${path}${String(choices) && `?${choices}`}`);
}
