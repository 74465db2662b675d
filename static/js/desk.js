// The rating desk: after a verdict the next item appears at once. Without this module the page's forms do the same.
import { focusInto, keep, toast } from "./site.js";
import { VerdictForm } from "./desk/form.js";
import { attend, elapsed, foldReference, restart, show as showSide, stirredWithin, toLastQuestion, toggleDifference, toggleReasoning, toggleTogether, withLastQuestion } from "./desk/reading.js";
import { SubmissionQueue, connectionError, ownHeaders, unsentByOthers } from "./desk/submissions.js";

const LOOK_AGAIN = 30000;
const STAY_LEASED = 240000;
const DRAFT_AFTER = 800;

const items = document.getElementById("items");
const status = document.getElementById("status");
const skipping = document.getElementById("skip");
const form = new VerdictForm(document.getElementById("verdict"), toAnswer);
const dialog = document.getElementById("reading");
const understood = document.getElementById("reading-form");
const marker = form.form.querySelector("[data-marker]") && new (await import("./desk/spans.js")).SpanMarker(form);
const submissions = new SubmissionQueue(items.dataset.store, { stored, refused, waiting, empty });
const queue = []; // next articles
const submitted = []; // {article, key, values, comment}: submitted by this page, newest last
let current = null;
let fetching = null;
let fetchAgain = false; // another fetch was requested during the current one
let failure = ""; // why the server can't be reached: see connectionError
let failures = 0; // so far; a reply to an earlier request says nothing about a later failure
let state = items.dataset.state;
let open = state === "open";
let until = items.dataset.until; // latest lease end that this page knows
let drafting = 0;
let unsaved = null; // the article whose draft the server has not confirmed
let due = "due" in dialog.dataset; // the guideline is still to be read
let fetchingGuideline = false;

dialog.close(); // opened as a modal dialog instead
for (const article of items.querySelectorAll(".desk-item")) take(article, queue.length);
next();
submissions.flush();

// —— showing items

function take(article, place) {
  attend(article);
  restoreTyped(article);
  article.hidden = true;
  queue.splice(place, 0, article);
}

/** Inserts an item's HTML, replacing an older copy. */
function add(html, place) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const article = holder.content.firstElementChild;
  document.getElementById(article.id)?.remove();
  for (const old of queue.filter((one) => one.id === article.id)) queue.splice(queue.indexOf(old), 1);
  items.append(article);
  take(article, place);
}

function next() {
  show(queue.shift() ?? null);
  lookForMore();
}

function show(article, values, comment) {
  keepDraft();
  if (current) current.hidden = true;
  current = article;
  form.form.hidden = !article;
  updateStatus();
  if (!article) return;
  article.hidden = false;
  foldReference(article);
  form.fill(values ?? JSON.parse(article.dataset.values), comment ?? article.dataset.comment, article.querySelector("template"));
  marker?.open(article);
  press("difference", false);
  restart();
  article.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  toLastQuestion(article);
  readFirst();
}

/** Shows the answer that the active place of a ranking is about. */
function toAnswer(criterion) {
  const { side } = criterion.dataset;
  if (!side || !current) return;
  showSide(current, side);
  current.querySelector(`.desk-side[data-side="${side}"]`)?.scrollIntoView({ block: "nearest" });
}

/** Fetches items until none are available. The server limits how many a page may hold. */
function lookForMore() {
  fetchAgain = true;
  fetching ??= fetchAll().finally(() => {
    fetching = null;
    if (!current && queue.length) show(queue.shift());
    else updateStatus();
  });
}

async function fetchAll() {
  while (fetchAgain) {
    fetchAgain = false;
    const have = [...queue, current].filter(Boolean).map((article) => article.dataset.item);
    const given = submissions.entries.map((entry) => entry.item).filter(Boolean);
    const data = await ask(`${items.dataset.itemsUrl}?have=${have.join(",")}&given=${given.join(",")}`);
    if (!data?.items) return;
    until = data.until || until;
    if (!given.length) dropLost(have.filter((id) => !data.held.includes(id)));
    const fresh = data.items.filter((item) => !isKnown(item.id));
    for (const item of fresh) add(item.html, queue.length);
    if (!current && queue.length) show(queue.shift());
    fetchAgain ||= data.more && fresh.length > 0;
  }
}

/** Removes queued items that went to other raters; the current one stays, and its verdict is still accepted. */
function dropLost(ids) {
  for (const article of queue.filter((one) => ids.includes(one.dataset.item) && isNew(one))) {
    queue.splice(queue.indexOf(article), 1);
    article.remove();
  }
}

/** Whether it has no verdict yet. */
function isNew(article) {
  return article.dataset.attempt === "0";
}

function isKnown(id) {
  return [...queue, current].some((article) => article?.dataset.item === id) || submissions.entries.some((entry) => entry.item === id);
}

async function ask(url) {
  const before = failures;
  const response = await fetch(url, { headers: ownHeaders(), redirect: "manual" }).catch(() => null);
  const error = connectionError(response);
  if (error) return waiting(error);
  const data = await response.json().catch(() => null);
  if (data) handleResponse(data, before);
  return data;
}

function handleResponse(data, before = failures) {
  if (data.token) submissions.token = data.token;
  if (data.progress) showProgress(data.progress);
  if (submissions.entries.length || before !== failures) updateStatus();
  else recovered();
  state = data.state ?? state;
  noticeNews(data);
  if ("open" in data) openOrClose(data.open && data.code !== "closed");
}

function openOrClose(isOpen) {
  const closing = open && !isOpen;
  open = isOpen;
  if (closing) clearDesk();
}

/** Clears the desk when the evaluation is closed, and says so. */
function clearDesk() {
  for (const article of queue.splice(0)) article.remove();
  show(null);
}

// —— reading first: the guideline opens at a rater's first item and after each change, until it is understood

/** Opens the guideline if it is still to be read. Its reading is no time spent on the item below. */
function readFirst() {
  if (!due || document.querySelector("dialog[open]")) return;
  dialog.showModal();
  dialog.querySelector("button").focus();
  dialog.scrollTop = 0;
}

/** Fetches what a response has told of: a newer version, which is opened, or a new answer to a question. */
async function noticeNews({ guideline, answers }) {
  const changed = guideline > Number(understood.elements.version.value);
  const answered = answers > Number(items.dataset.answers);
  if (fetchingGuideline || !(changed || answered)) return;
  fetchingGuideline = true;
  const response = await fetch(items.dataset.guidelineUrl, { headers: ownHeaders(), redirect: "manual" }).catch(() => null);
  const data = response?.ok ? await response.json().catch(() => null) : null;
  fetchingGuideline = false;
  if (!data) return; // the next response tells again
  for (const place of document.querySelectorAll("[data-guideline-text]")) place.innerHTML = data.html;
  items.dataset.answers = data.answers;
  if (answered) toast(items.dataset.answered, "info");
  if (!changed) return;
  understood.elements.version.value = data.version;
  understood.querySelector("[data-changed]").hidden = false;
  due = data.due;
  if (!due) items.dataset.guideline = data.version; // the version under which the rater rates
  readFirst();
}

understood.addEventListener("submit", (event) => {
  event.preventDefault();
  due = false;
  items.dataset.guideline = understood.elements.version.value;
  fetch(understood.action, { method: "POST", body: new URLSearchParams(new FormData(understood)), headers: { ...ownHeaders(), "X-CSRFToken": submissions.token }, redirect: "manual", keepalive: true }).catch(() => {});
  dialog.close();
  restart();
  document.querySelector(".desk-item:not([hidden])")?.focus({ preventScroll: true });
});

// —— connection status and empty queue

function waiting(reason) {
  failure = reason;
  failures += 1;
  updateStatus();
}

function recovered() {
  if (failure) setStatus(status.dataset.sent);
  failure = "";
  updateStatus();
}

/** Shows how many submissions are pending and why; without an item also why there is none. */
function updateStatus() {
  if (failure) {
    status.dataset.tone = "warn";
    const sentences = [pendingText(failure), status.dataset[`${failure}Help`]];
    status.textContent = current ? sentences.join(status.dataset.gap) : ""; // else shown below
  }
  document.getElementById("sign-in").hidden = failure !== "signedOut";
  const done = document.getElementById("done");
  const why = failure || (submissions.entries.length && "sending");
  done.hidden = Boolean(current) || (Boolean(fetching) && !why && open);
  const quota = document.querySelector("progress[data-quota-reached]") ? "reached" : "open";
  for (const one of done.querySelectorAll("[data-quota]")) one.hidden = one.dataset.quota !== quota;
  const shown = !open ? (["paused", "not_passed", "not_ready"].includes(state) ? state : "closed") : why ? "waiting" : "nothing";
  for (const one of done.querySelectorAll("[data-case]")) one.hidden = one.dataset.case !== shown;
  done.querySelector("[data-undo-form]").hidden = !open;
  if (shown !== "waiting") return;
  done.querySelector("[data-case=waiting] > h2").textContent = pendingText(why);
  done.querySelector("[data-case=waiting] > p").textContent = status.dataset[`${why}Help`];
}

function pendingText(why) {
  const count = submissions.entries.length;
  return status.dataset[`${why}${count === 1 ? "One" : "Many"}`].replace("{n}", count);
}

/** Back online, or back from another tab, where the user may have signed in or released items. */
function recover() {
  submissions.flush();
  lookForMore();
}

window.addEventListener("online", recover);
window.addEventListener("focus", recover);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && recover());

// —— submit, skip, undo

function submit() {
  if (!current || form.form.hidden || !form.complete(status.dataset.choose)) return;
  const { verdictUrl, attempt } = current.dataset;
  submitAndAdvance(verdictUrl, { ...form.fields, attempt, seconds: elapsed(), guideline: items.dataset.guideline });
}

function skip(reason, comment) {
  if (!current) return;
  submitAndAdvance(current.dataset.skipUrl, { ...form.fields, reason, comment, seconds: elapsed() });
}

function submitAndAdvance(url, fields) {
  const { values } = form;
  const comment = form.fields.comment;
  const article = current;
  forgetDraft();
  const key = submissions.add({ url, fields, item: article.dataset.item, tokens: items.dataset.itemsUrl });
  submitted.push({ article, key, values, comment });
  clearStatus();
  if ("training" in article.dataset && fields.reason === undefined) {
    form.form.hidden = true; // the answer stays in view until the expected one was read
    return;
  }
  show(queue.shift() ?? null);
}

function undo() {
  const last = submitted.pop();
  if (!last) {
    submissions.add({ kind: "undo", url: items.dataset.undoUrl, fields: {}, tokens: items.dataset.itemsUrl });
    return;
  }
  if (!submissions.withdraw(last.key)) {
    submissions.add({ kind: "undone", url: items.dataset.undoUrl, fields: {}, tokens: items.dataset.itemsUrl });
  }
  if (current && current !== last.article) queue.unshift(current);
  show(last.article, last.values, last.comment);
  setStatus(status.dataset.undone);
}

// —— server responses

function stored(entry, data) {
  handleResponse(data);
  if (data.feedback) showFeedback(data.feedback);
  if (entry.kind === "undo") {
    if (current) queue.unshift(current);
    for (const item of data.items ?? []) add(item.html, 0);
    next();
  }
  if (data.sentence && entry.kind !== "undone") toast(data.sentence, "info");
}

function refused(entry, data) {
  handleResponse(data);
  const place = submitted.findIndex((one) => one.key === entry.key);
  const [gone] = place >= 0 ? submitted.splice(place, 1) : [];
  if (data.errors && gone) {
    if (current && current !== gone.article) queue.unshift(current);
    show(gone.article, gone.values, gone.comment);
    form.problems(data.errors);
  }
  form.form.hidden = !current;
  if (data.code === "closed") clearDesk();
  else toast(data.sentence ?? document.body.dataset.failed, "error");
}

/** Shows the expected answer of a training item; then comes the next one. */
function showFeedback(html) {
  const dialog = document.getElementById("feedback");
  document.getElementById("feedback-text").innerHTML = html;
  dialog.addEventListener("close", next, { once: true });
  dialog.showModal();
}

function empty() {
  recovered();
  lookForMore(); // items counted as held while their verdicts were being sent
}

/** Says whose ratings this browser also holds: another rater of a shared computer, whose page was left before it sent them. */
function showOthers() {
  const others = document.getElementById("others");
  const lines = [...unsentByOthers(items.dataset.rater)].map(([name, count]) => {
    const line = document.createElement("p");
    const text = others.dataset[`${name ? "named" : "unnamed"}${count === 1 ? "One" : "Many"}`];
    line.textContent = text.replace("{n}", count).replaceAll("{name}", name);
    return line;
  });
  others.replaceChildren(...lines);
  others.hidden = !lines.length;
}

showOthers();
window.addEventListener("storage", showOthers);

function setStatus(text) {
  delete status.dataset.tone;
  status.textContent = text;
}

function clearStatus() {
  if (!failure) setStatus("");
}

// —— earlier items

async function openEarlier(before = "") {
  const dialog = document.getElementById("mine");
  const list = document.getElementById("mine-list");
  if (!before) list.replaceChildren();
  if (!dialog.open) dialog.showModal();
  const response = await fetch(`${items.dataset.mineUrl}?before=${before}`, { headers: ownHeaders(), redirect: "manual" }).catch(() => null);
  const error = connectionError(response);
  if (error) {
    dialog.close(); // it would cover why
    return waiting(error);
  }
  const holder = document.createElement("div");
  holder.innerHTML = response.ok ? await response.text() : "";
  list.querySelector("[data-more]")?.parentElement.remove();
  list.append(holder);
  if (dialog.open) focusInto(holder.childElementCount ? holder : dialog);
}

async function openItem(url) {
  const data = await ask(url);
  if (!data?.items) return;
  document.getElementById("mine").close();
  if (current) queue.unshift(current);
  add(data.items[0].html, 0);
  next();
}

document.getElementById("mine").addEventListener("click", (event) => {
  const more = event.target.closest("[data-more]");
  const link = event.target.closest("[data-earlier]");
  if (more) openEarlier(more.dataset.more);
  if (link) {
    event.preventDefault();
    openItem(link.href);
  }
});

// —— drafts

function saveDraft() {
  drafting = 0;
  const article = current;
  if (!article) return;
  article.dataset.values = JSON.stringify(form.values);
  article.dataset.comment = form.fields.comment;
  const fields = { ...form.fields, attempt: article.dataset.attempt };
  unsaved = article; // the next change retries; verdicts go through the submission queue instead
  post(article.dataset.draftUrl, fields).then((response) => response?.ok && unsaved === article && (unsaved = null));
}

/** Sends without retries; works while the page is being left. */
function post(url, fields) {
  return fetch(url, {
    method: "POST",
    body: new URLSearchParams(fields),
    headers: { ...ownHeaders(), "X-CSRFToken": submissions.token },
    redirect: "manual",
    keepalive: true,
  }).catch(() => null);
}

function forgetDraft() {
  clearTimeout(drafting);
  drafting = 0;
  unsaved = null;
}

/** Saves a pending draft now, because another item is shown or the page is left. */
function keepDraft() {
  if (!drafting) return;
  forgetDraft();
  saveDraft();
}

for (const name of ["input", "change"]) {
  form.form.addEventListener(name, () => {
    forgetDraft();
    drafting = setTimeout(saveDraft, DRAFT_AFTER);
  });
}
document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && keepDraft());

/** What could not be saved on the server, because the page was offline or signed out, waits in this browser. */
function keepTyped({ item, attempt, values, comment }) {
  try {
    localStorage.setItem(typedName(), JSON.stringify({ item, attempt, values, comment }));
  } catch {} // no localStorage
}

function restoreTyped(article) {
  let typed = null;
  try {
    typed = JSON.parse(localStorage.getItem(typedName()));
  } catch {} // no localStorage
  if (typed?.item !== article.dataset.item || typed.attempt !== article.dataset.attempt) return;
  localStorage.removeItem(typedName());
  Object.assign(article.dataset, { values: typed.values, comment: typed.comment });
  unsaved = article;
}

function typedName() {
  return `typed-${items.dataset.store}`;
}

// —— leaving: release items without input at once

window.addEventListener("pagehide", () => {
  keepDraft();
  if (current) current.dataset.values = JSON.stringify(form.values);
  if (current) current.dataset.comment = form.fields.comment;
  if (unsaved) keepTyped(unsaved.dataset);
  const there = [current, ...queue].filter(Boolean);
  const untouched = there.filter((one) => isNew(one) && one.dataset.values === "{}" && !one.dataset.comment);
  const ids = untouched.map((article) => article.dataset.item).join(",");
  if (ids) post(items.dataset.giveBackUrl, { items: ids, until });
});
window.addEventListener("pageshow", (event) => event.persisted && lookForMore());

// —— user actions

form.form.addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});

const skipForm = document.getElementById("skip-form");
const ownReason = document.getElementById("skip-comment");

/** Asks for the reason: none is chosen beforehand, and "another reason" needs its text. */
function askWhy() {
  skipForm.reset();
  explain();
  skipping.showModal();
}

function explain() {
  document.getElementById("skip-missing").hidden = true;
  const other = skipForm.elements.reason.value === "other";
  document.getElementById("skip-why").hidden = !other;
  ownReason.required = other;
  if (other && !ownReason.value) ownReason.value = form.fields.comment.trim();
}

skipForm.addEventListener("change", explain);
skipForm.addEventListener("submit", (event) => {
  event.preventDefault();
  const { value } = skipForm.elements.reason;
  const missing = !value || (ownReason.required && !ownReason.value.trim());
  document.getElementById("skip-missing").hidden = !missing;
  if (missing) return;
  skipping.close();
  skip(value, ownReason.required ? ownReason.value : form.fields.comment);
});

skipping.addEventListener("keydown", (event) => {
  if (event.target === ownReason || event.ctrlKey || event.metaKey || event.altKey) return;
  const choice = skipping.querySelectorAll("input[type=radio]")[Number(event.key) - 1];
  if (!choice) return;
  event.preventDefault(); // else the digit is typed into the field that opens
  choice.checked = true;
  choice.focus();
  explain();
  if (ownReason.required) ownReason.focus();
});

const asking = document.getElementById("ask");
const question = document.getElementById("ask-text");

document.getElementById("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = question.value.trim();
  document.getElementById("ask-missing").hidden = Boolean(text);
  if (!text) return;
  submissions.add({ kind: "question", url: current.dataset.questionUrl, fields: { text }, tokens: items.dataset.itemsUrl });
  question.value = "";
  asking.close();
});

question.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) document.getElementById("ask-form").requestSubmit();
});

document.querySelector("[data-undo-form]").addEventListener("submit", (event) => {
  event.preventDefault();
  undo();
});

const actions = {
  undo,
  skip: () => current && askWhy(),
  ask: () => current && asking.showModal(),
  mine: () => openEarlier(),
  difference: async () => current && press("difference", await toggleDifference(current)),
  guideline: () => showGuideline(document.getElementById("guideline").hidden),
};

/** Shows or hides the guideline next to the answers, and moves the focus. */
function showGuideline(shown) {
  const panel = document.getElementById("guideline");
  const button = document.querySelector("[aria-controls=guideline]");
  if (panel.hidden === !shown) return;
  const leaves = panel.contains(document.activeElement);
  const change = () => (panel.hidden = !shown);
  if (current) withLastQuestion(current, change);
  else change();
  button.setAttribute("aria-expanded", String(shown));
  if (shown) panel.focus({ preventScroll: true });
  else if (leaves) button.focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do]");
  if (button) actions[button.dataset.do]();
  event.target.closest("[data-shut]")?.closest("dialog").close();
  const back = event.target.closest("[data-back]");
  if (back) {
    event.preventDefault();
    next();
  }
});

function press(name, pressed) {
  document.querySelector(`[data-do="${name}"]`)?.setAttribute("aria-pressed", String(pressed));
}

function letter(key, action) {
  keep(key, action);
  keep(key.toUpperCase(), action);
}

for (const digit of "0123456789") keep(digit, () => (marker?.active ? marker : form).digit(digit));
keep("ArrowLeft", (event) => (marker?.active ? marker.step(-1, event.shiftKey) : form.move(-1)));
keep("ArrowRight", (event) => (marker?.active ? marker.step(1, event.shiftKey) : form.move(1)));
keep("ArrowUp", () => form.select(form.at - 1));
keep("ArrowDown", () => form.select(form.at + 1));
keep("Enter", submit);
keep("?", actions.ask);
letter("h", () => document.getElementById("keys").showModal());
letter("u", undo);
letter("s", actions.skip);
letter("p", actions.mine);
letter("d", actions.difference);
letter("g", () => actions.guideline());
keep("Escape", () => (marker?.active ? marker.leave() : null, showGuideline(false)));
letter("c", () => form.form.elements.comment.focus());
letter("r", () => current && toggleReasoning(current));
letter("l", () => setStatus(toggleTogether() ? status.dataset.together : status.dataset.apart));

/** A key that only marks spans. */
function marking(key, action) {
  keep(key, () => marker.active && action());
}

if (marker) {
  for (const [place, key] of [..."qwe"].entries()) for (const either of [key, key.toUpperCase()]) marking(either, () => marker.severity(place));
  for (const [key, step] of Object.entries({ j: 1, J: 1, k: -1, K: -1 })) marking(key, () => marker.turn(step));
  for (const key of ["Delete", "Backspace"]) marking(key, () => marker.remove());
  for (const [key, start, end] of [["<", -1, 0], [">", 1, 0], [",", 0, -1], [".", 0, 1]]) marking(key, () => marker.nudge(start, end));
}

setInterval(() => (!current || failure) && lookForMore(), LOOK_AGAIN);
setInterval(() => document.visibilityState === "visible" && current && stirredWithin(STAY_LEASED) && lookForMore(), STAY_LEASED);

function showProgress(html) {
  const bar = document.getElementById("progress");
  bar.innerHTML = html;
  bar.dispatchEvent(new CustomEvent("htmx:load", { bubbles: true, detail: { elt: bar } }));  // site.js shows local times
}
