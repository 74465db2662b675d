// Looking at an answer: keys as on the rating desk, and a note that is saved while it is written. Without this module
// the form works as usual.
import { keep } from "./site.js";
import { VerdictForm } from "./desk/form.js";
import { attend, toLastQuestion, toggleReasoning } from "./desk/reading.js";

const PAUSE = 600; // ms after the last change
const AGAIN = 5000;
const note = document.getElementById("note");
const status = document.getElementById("status");
const item = document.querySelector(".desk-item");
const { text, new_kind: newKind, seen, page } = note.elements;
const form = new VerdictForm(note);
let timer = 0;
let leaving = false;
let sending = false;
let submitting = false; // as soon as what is being sent has arrived: it must not arrive after the form

attend(item);
toLastQuestion(item);

for (const digit of "12") keep(digit, () => form.digit(digit));
keep("ArrowLeft", () => form.move(-1));
keep("ArrowRight", () => form.move(1));
for (const key of "cC") keep(key, () => text.focus());
for (const key of "kK") keep(key, () => newKind.click());
for (const key of "rR") keep(key, () => toggleReasoning(item));
keep("Enter", () => note.requestSubmit());
for (const [key, lower] of [["N", "n"], ["P", "p"]]) keep(key, () => document.querySelector(`[data-key="${lower}"]`)?.click());

/** What is in the form, as it is sent. */
function typed() {
  return new URLSearchParams(new FormData(note)).toString();
}

function store(value) {
  try {
    if (value === null) localStorage.removeItem(note.dataset.store);
    else localStorage.setItem(note.dataset.store, value);
  } catch {} // no localStorage: the page still tries again
}

function say(sentence, tone = "") {
  status.textContent = sentence;
  status.dataset.tone = tone;
}

async function save() {
  clearTimeout(timer);
  if (sending || leaving) return;
  sending = true;
  const body = typed();
  try {
    const reply = await fetch(note.dataset.noteUrl, { method: "POST", body: new URLSearchParams(body), headers: { Accept: "application/json" }, keepalive: true });
    if (!reply.headers.get("Content-Type")?.startsWith("application/json")) throw new Error(String(reply.status));
    const { seen: edits, sentence } = await reply.json();
    if (edits !== undefined) seen.value = edits;
    say(sentence ?? "", sentence ? "warn" : "");
    sending = false;
    if (reply.ok && content(typed()) === content(body)) store(null);
    if (submitting) note.requestSubmit();
    else if (reply.ok && content(typed()) !== content(body)) save();
  } catch {
    sending = false;
    submitting = false;
    say(status.dataset.offline, "warn");
    timer = setTimeout(save, AGAIN);
  }
}

/** What of a form's input is the note. */
function content(query) {
  const values = new URLSearchParams(query);
  return JSON.stringify(["text", "passed", "new_kind"].map((name) => values.get(name)));
}

function changed() {
  store(typed());
  clearTimeout(timer);
  timer = setTimeout(save, PAUSE);
}

/** Keeps the name of a form that is being submitted; the page that follows knows that it has arrived. */
function sent(name) {
  try {
    sessionStorage.setItem("look-sent", name);
  } catch {} // the note stays in localStorage, and is compared when its page is opened again
}

function forgetSent() {
  try {
    const name = sessionStorage.getItem("look-sent");
    sessionStorage.removeItem("look-sent");
    if (name && name !== note.dataset.store) localStorage.removeItem(name);
  } catch {}
}

/** What an earlier page could not save. */
function restore() {
  let query = null;
  try {
    query = localStorage.getItem(note.dataset.store);
  } catch {}
  if (query === null) return;
  if (content(query) === content(typed())) {
    store(null);
    return;
  }
  const values = new URLSearchParams(query);
  seen.value = values.get("seen") ?? seen.value; // so that a note that was changed elsewhere meanwhile is not replaced
  page.value = values.get("page") ?? page.value;
  text.value = values.get("text") ?? "";
  newKind.checked = values.has("new_kind");
  for (const radio of note.querySelectorAll("[name=passed]")) radio.checked = radio.value === values.get("passed");
  say(status.dataset.restored);
  save();
}

note.addEventListener("input", changed);
note.addEventListener("change", changed);
newKind.addEventListener("change", () => {
  const fail = note.querySelector("[name=passed][value='0']");
  if (newKind.checked && !fail.checked) form.choose(fail); // a new kind of failure is a failure
});
note.addEventListener("submit", (event) => {
  if (!form.complete(note.dataset.choose)) {
    event.preventDefault();
    return;
  }
  clearTimeout(timer);
  if (sending) {
    event.preventDefault();
    submitting = true;
    return;
  }
  leaving = navigator.onLine;
  if (leaving) {
    sent(note.dataset.store);
    return;
  }
  event.preventDefault();
  say(status.dataset.offline, "warn");
  timer = setTimeout(save, AGAIN);
});
window.addEventListener("pagehide", () => {
  if (timer && !leaving) save();
});
form.select(0, false);
forgetSent();
restore();
