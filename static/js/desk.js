// The rating desk: after a verdict the next item appears at once. Without this module the page's forms do the same.
import { keep, toast } from "./site.js";
import { VerdictForm } from "./desk/form.js";
import { Outbox, whyNot } from "./desk/outbox.js";
import { attend, elapsed, restart, stirredWithin, toLastQuestion, toggleDifference, toggleReasoning, toggleTogether, withLastQuestion } from "./desk/reading.js";

const LOOK_AGAIN = 30000;
const STAY_LEASED = 240000;
const DRAFT_AFTER = 800;

const items = document.getElementById("items");
const status = document.getElementById("status");
const skipping = document.getElementById("skip");
const form = new VerdictForm(document.getElementById("verdict"));
const outbox = new Outbox(items.dataset.store, { stored, refused, waiting, empty });
const queue = []; // next articles
const past = []; // {article, key, values, comment}: submitted by this page, newest last
let current = null;
let fetching = null;
let again = false; // another fetch was requested during the current one
let trouble = ""; // why the server can't be reached: see whyNot
let open = items.dataset.state === "open";
let until = items.dataset.until; // latest lease end that this page knows
let drafting = 0;

for (const article of items.querySelectorAll(".desk-item")) take(article, queue.length);
next();
outbox.flush();

// —— showing items

function take(article, place) {
  attend(article);
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
  report();
  if (!article) return;
  article.hidden = false;
  form.fill(values ?? JSON.parse(article.dataset.values), comment ?? article.dataset.comment);
  press("difference", false);
  restart();
  article.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  toLastQuestion(article);
}

/** Fetches items until none are available. The server limits how many a page may hold. */
function lookForMore() {
  again = true;
  fetching ??= fetchAll().finally(() => {
    fetching = null;
    if (!current && queue.length) show(queue.shift());
    else report();
  });
}

async function fetchAll() {
  while (again) {
    again = false;
    const have = [...queue, current].filter(Boolean).map((article) => article.dataset.item);
    const given = outbox.entries.map((entry) => entry.item).filter(Boolean);
    const said = await ask(`${items.dataset.itemsUrl}?have=${have.join(",")}&given=${given.join(",")}`);
    if (!said?.items) return;
    until = said.until || until;
    if (!given.length) dropLost(have.filter((id) => !said.held.includes(Number(id))));
    const fresh = said.items.filter((item) => !isKnown(String(item.id)));
    for (const item of fresh) add(item.html, queue.length);
    if (!current && queue.length) show(queue.shift());
    again ||= said.more && fresh.length > 0;
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
  return [...queue, current].some((article) => article?.dataset.item === id) || outbox.entries.some((entry) => entry.item === id);
}

async function ask(url) {
  const response = await fetch(url, { headers: { Accept: "application/json" }, redirect: "manual" }).catch(() => null);
  const why = whyNot(response);
  if (why) return waiting(why);
  const said = await response.json().catch(() => null);
  if (said) heard(said);
  return said;
}

function heard(said) {
  if (said.token) outbox.token = said.token;
  if (said.progress) document.getElementById("progress").innerHTML = said.progress;
  if (outbox.entries.length) report();
  else recovered();
  if ("open" in said) openOrClose(said.open && said.code !== "closed");
}

function openOrClose(isOpen) {
  const closing = open && !isOpen;
  open = isOpen;
  if (closing) putAway();
}

/** Clears the desk when the evaluation is closed, and says so. */
function putAway() {
  for (const article of queue.splice(0)) article.remove();
  show(null);
}

// —— connection status and empty queue

function waiting(why) {
  trouble = why;
  report();
}

function recovered() {
  if (trouble) say(status.dataset.sent);
  trouble = "";
  report();
}

/** Shows how many submissions are pending and why; without an item also why there is none. */
function report() {
  if (trouble) {
    status.dataset.tone = "warn";
    status.textContent = current ? `${counted(trouble)} ${status.dataset[`${trouble}Help`]}` : ""; // else shown below
  }
  const done = document.getElementById("done");
  const why = trouble || (outbox.entries.length && "sending");
  done.hidden = Boolean(current) || (Boolean(fetching) && !why && open);
  const shown = !open ? "closed" : why ? "waiting" : "nothing";
  for (const one of done.querySelectorAll("[data-case]")) one.hidden = one.dataset.case !== shown;
  done.querySelector("[data-undo-form]").hidden = !open;
  if (shown !== "waiting") return;
  done.querySelector("[data-case=waiting] > h2").textContent = counted(why);
  done.querySelector("[data-case=waiting] > p").textContent = status.dataset[`${why}Help`];
}

function counted(why) {
  const count = outbox.entries.length;
  return status.dataset[`${why}${count === 1 ? "One" : "Many"}`].replace("{n}", count);
}

/** Back online, or back from another tab, where the user may have signed in or released items. */
function recover() {
  outbox.flush();
  lookForMore();
}

window.addEventListener("online", recover);
window.addEventListener("focus", recover);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && recover());

// —— submit, skip, undo

function submit() {
  if (!current || !form.complete(status.dataset.choose)) return;
  const { verdictUrl, shown, attempt } = current.dataset;
  leave(verdictUrl, { ...form.fields, shown, attempt, seconds: elapsed() });
}

function skip(reason) {
  if (!current) return;
  leave(current.dataset.skipUrl, { reason, comment: form.fields.comment, seconds: elapsed() });
}

function leave(url, fields) {
  const { values } = form;
  const comment = form.fields.comment;
  const article = current;
  forgetDraft();
  const key = outbox.add({ url, fields, item: article.dataset.item, tokens: items.dataset.itemsUrl });
  past.push({ article, key, values, comment });
  quiet();
  show(queue.shift() ?? null);
}

function undo() {
  const last = past.pop();
  if (!last) {
    outbox.add({ kind: "undo", url: items.dataset.undoUrl, fields: {}, tokens: items.dataset.itemsUrl });
    return;
  }
  if (!outbox.takeBack(last.key)) {
    outbox.add({ kind: "undone", url: items.dataset.undoUrl, fields: {}, tokens: items.dataset.itemsUrl });
  }
  if (current) queue.unshift(current);
  show(last.article, last.values, last.comment);
  say(status.dataset.undone);
}

// —— server responses

function stored(entry, said) {
  heard(said);
  if (entry.kind === "undo") {
    if (current) queue.unshift(current);
    for (const item of said.items ?? []) add(item.html, 0);
    next();
  }
  if (said.sentence && entry.kind !== "undone") toast(said.sentence, "info");
}

function refused(entry, said) {
  heard(said);
  const place = past.findIndex((one) => one.key === entry.key);
  const [gone] = place >= 0 ? past.splice(place, 1) : [];
  if (said.errors && gone) {
    if (current) queue.unshift(current);
    show(gone.article, gone.values, gone.comment);
    form.problems(said.errors);
  }
  if (said.code === "closed") putAway();
  else toast(said.sentence ?? document.body.dataset.failed, "error");
}

function empty() {
  recovered();
  lookForMore(); // items counted as held while their verdicts were being sent
}

function say(text) {
  delete status.dataset.tone;
  status.textContent = text;
}

function quiet() {
  if (!trouble) say("");
}

// —— earlier items

async function openEarlier(before = "") {
  const dialog = document.getElementById("mine");
  const list = document.getElementById("mine-list");
  if (!dialog.open) dialog.showModal();
  const response = await fetch(`${items.dataset.mineUrl}?before=${before}`).catch(() => null);
  const html = response?.ok ? await response.text() : "";
  list.querySelector("[data-more]")?.remove();
  if (before) list.insertAdjacentHTML("beforeend", html);
  else list.innerHTML = html;
}

async function openItem(url) {
  const said = await ask(url);
  if (!said?.items) return;
  document.getElementById("mine").close();
  if (current) queue.unshift(current);
  add(said.items[0].html, 0);
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
  if (!article || article.dataset.attempt !== "0") return;
  article.dataset.values = JSON.stringify(form.values);
  article.dataset.comment = form.fields.comment;
  post(article.dataset.draftUrl, form.fields); // the next change retries; verdicts go through the outbox instead
}

/** Sends without retries; works while the page is being left. */
function post(url, fields) {
  fetch(url, {
    method: "POST",
    body: new URLSearchParams(fields),
    headers: { Accept: "application/json", "X-CSRFToken": outbox.token },
    redirect: "manual",
    keepalive: true,
  }).catch(() => {});
}

function forgetDraft() {
  clearTimeout(drafting);
  drafting = 0;
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

// —— leaving: release items without input at once

window.addEventListener("pagehide", () => {
  keepDraft();
  if (current) current.dataset.values = JSON.stringify(form.values);
  if (current) current.dataset.comment = form.fields.comment;
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

document.getElementById("skip-form").addEventListener("submit", (event) => {
  event.preventDefault();
  skipping.close();
  skip(new FormData(event.target).get("reason"));
});

skipping.addEventListener("keydown", (event) => {
  const choice = skipping.querySelectorAll("input[type=radio]")[Number(event.key) - 1];
  if (choice) choice.checked = true;
});

document.querySelector("[data-undo-form]").addEventListener("submit", (event) => {
  event.preventDefault();
  undo();
});

const doing = {
  undo,
  skip: () => current && skipping.showModal(),
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
  if (button) doing[button.dataset.do]();
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

for (const digit of "0123456789") keep(digit, () => form.digit(digit));
keep("ArrowLeft", () => form.move(-1));
keep("ArrowRight", () => form.move(1));
keep("ArrowUp", () => form.select(form.at - 1));
keep("ArrowDown", () => form.select(form.at + 1));
keep("Enter", submit);
letter("u", undo);
letter("s", doing.skip);
letter("p", doing.mine);
letter("d", doing.difference);
letter("g", () => doing.guideline());
keep("Escape", () => showGuideline(false));
letter("c", () => form.form.elements.comment.focus());
letter("r", () => current && toggleReasoning(current));
letter("l", () => say(toggleTogether() ? status.dataset.together : status.dataset.apart));

setInterval(() => (!current || trouble) && lookForMore(), LOOK_AGAIN);
setInterval(() => document.visibilityState === "visible" && current && stirredWithin(STAY_LEASED) && lookForMore(), STAY_LEASED);
