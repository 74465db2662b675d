// Reading first: the guideline opens at a rater's first item and after each change, until it is understood.
import { toast } from "../site.js";
import { restart } from "./reading.js";
import { ownHeaders } from "./submissions.js";

const desk = document.getElementById("items");
const dialog = document.getElementById("reading");
const form = document.getElementById("reading-form");
let due = "due" in dialog.dataset;
let fetching = false;
let token = "";
dialog.close(); // opened as a modal dialog instead

/** The version under which the rater rates: the last one that was understood, or that needed no reading. */
export function guidelineVersion() {
  return desk.dataset.guideline;
}

/** Opens the guideline if it is still to be read. Its reading is no time spent on the item below. `newest`: the token against forgery. */
export function readFirst(newest) {
  token = newest;
  if (!due || document.querySelector("dialog[open]")) return;
  dialog.showModal();
  dialog.querySelector("button").focus();
  dialog.scrollTop = 0;
}

/** Fetches what a response has told of: a newer version, which is opened, or a new answer to a question. */
export async function noticeNews({ guideline, answers }) {
  const changed = guideline > Number(form.elements.version.value);
  const answered = answers > Number(desk.dataset.answers);
  if (fetching || !(changed || answered)) return;
  fetching = true;
  const response = await fetch(desk.dataset.guidelineUrl, { headers: ownHeaders(), redirect: "manual" }).catch(() => null);
  const data = response?.ok ? await response.json().catch(() => null) : null;
  fetching = false;
  if (!data) return; // the next response tells again
  for (const place of document.querySelectorAll("[data-guideline-text]")) place.innerHTML = data.html;
  desk.dataset.answers = data.answers;
  if (answered) toast(desk.dataset.answered, "info");
  if (!changed) return;
  form.elements.version.value = data.version;
  form.querySelector("[data-changed]").hidden = false;
  due = data.due;
  if (!due) desk.dataset.guideline = data.version;
  readFirst(token);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  due = false;
  desk.dataset.guideline = form.elements.version.value;
  fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { ...ownHeaders(), "X-CSRFToken": token }, redirect: "manual", keepalive: true }).catch(() => {});
  dialog.close();
  restart();
  document.querySelector(".desk-item:not([hidden])")?.focus({ preventScroll: true });
});
