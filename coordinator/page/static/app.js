// Which view is shown, by the part of the address behind #.

import {place as placeNow} from "/address.js";
import {el, replace, setText, setTitle} from "/dom.js";
import {showCompare} from "/compare.js";
import {showFleet} from "/fleet.js";
import {showJob} from "/job.js";
import {showJobs} from "/jobs.js";

const main = document.getElementById("main");
const link = document.getElementById("link");
let endView = () => {};

// `state` is live, lost, or empty.
export function setLink(state, text) {
  link.className = `link ${state}`;
  setText(link, text);
}

function showUnknown(place) {
  main.append(el("h1", {}, "Nothing is here"), el("p", {}, `There is no view "${place}". `, el("a", {href: "#/"}, "The fleet")));
  return () => {};
}

function route(first) {
  const place = placeNow();
  const job = place.match(/^\/jobs\/([^/]+)$/);
  const compare = place.match(/^\/compare\/([^/]+)(?:\/([^/]+))?$/);
  endView();
  replace(main);
  setLink("", "");
  const isJobs = place === "/jobs" || Boolean(job) || Boolean(compare);
  document.getElementById("nav-fleet").toggleAttribute("aria-current", place === "/");
  document.getElementById("nav-jobs").toggleAttribute("aria-current", isJobs);
  for (const one of document.querySelectorAll("nav [aria-current]")) one.setAttribute("aria-current", "page");
  if (place === "/") endView = showFleet(main, setLink);
  else if (place === "/jobs") endView = showJobs(main, setLink);
  else if (compare) endView = showCompare(main, setLink, compare[1], compare[2] || "");
  else if (job) endView = showJob(main, setLink, job[1]);
  else endView = showUnknown(place);
  const heading = main.querySelector("h1");
  setTitle(heading ? heading.textContent : "Tactus");
  // As after the load of a page, so that a screen reader begins with the new view.
  if (!first) { main.focus({preventScroll: true}); scrollTo(0, 0); }
}

// The address says which view is shown, so skipping to the content must not change it.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => route(false));
route(true);
