// The rating desk: an item, its verdict, and the next one is there. Without this module the page's forms do the same.
import { keep } from "./keys.js";
import { toast } from "./toasts.js";
import * as clock from "./desk/clock.js";
import { VerdictForm } from "./desk/form.js";
import { Outbox } from "./desk/outbox.js";
import { attend, toggleDifference, toggleReasoning, toggleTogether } from "./desk/reading.js";

const AHEAD = 2; // items that are there before they are wanted
const LOOK_AGAIN = 30000;
const STAY_LEASED = 240000;
const DRAFT_AFTER = 800;

const items = document.getElementById("items");
const status = document.getElementById("status");
const skipping = document.getElementById("skip");
const form = new VerdictForm(document.getElementById("verdict"));
const outbox = new Outbox(items.dataset.store, { stored, refused, waiting, empty });
const queue = []; // articles to come
const past = []; // {article, key, values, comment}: what this page gave, newest last
let current = null;
let fetching = null;
let asked = false; // for more, while an answer to an older question was on its way
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

/** Puts an item that came as HTML into the page, in place of an older copy. */
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
  if (queue.length < AHEAD) lookForMore();
}

function show(article, values, comment) {
  keepDraft();
  if (current) current.hidden = true;
  current = article;
  form.form.hidden = !article;
  document.getElementById("done").hidden = Boolean(article) || Boolean(fetching);
  if (!article) return;
  article.hidden = false;
  form.fill(values ?? JSON.parse(article.dataset.values), comment ?? article.dataset.comment);
  press("difference", false);
  clock.restart();
  article.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function lookForMore() {
  asked = Boolean(fetching);
  fetching ??= fetchMore().finally(() => {
    fetching = null;
    if (!current && queue.length) next();
    else if (!current && asked) lookForMore();
    else if (!current) show(null);
  });
  return fetching;
}

async function fetchMore() {
  const known = [...queue, current].filter(Boolean).map((article) => article.dataset.item);
  const sent = outbox.entries.map((entry) => entry.item).filter(Boolean);
  const said = await ask(`${items.dataset.itemsUrl}?have=${[...known, ...sent].join(",")}`);
  for (const item of said?.items ?? []) {
    if (!isKnown(String(item.id))) add(item.html, queue.length);
  }
}

function isKnown(id) {
  return [...queue, current].some((article) => article?.dataset.item === id) || outbox.entries.some((entry) => entry.item === id);
}

async function ask(url) {
  const response = await fetch(url, { headers: { Accept: "application/json" }, redirect: "manual" }).catch(() => null);
  if (response?.type === "opaqueredirect") waiting("signedOut", outbox.entries.length);
  if (!response?.ok) return null;
  const said = await response.json();
  heard(said);
  return said;
}

function heard(said) {
  if (said.token) outbox.token = said.token;
  if (said.progress) document.getElementById("progress").innerHTML = said.progress;
}

// —— giving, skipping, taking back

function submit() {
  if (!current || !form.complete(status.dataset.choose)) return;
  const { verdictUrl, shown, attempt } = current.dataset;
  leave(verdictUrl, { ...form.fields, shown, attempt, seconds: clock.elapsed() });
}

function skip(reason) {
  if (!current) return;
  leave(current.dataset.skipUrl, { reason, comment: form.fields.comment, seconds: clock.elapsed() });
}

function leave(url, fields) {
  const { values } = form;
  const comment = form.fields.comment;
  const article = current;
  forgetDraft();
  const key = outbox.add({ url, fields, item: article.dataset.item, tokens: items.dataset.itemsUrl });
  past.push({ article, key, values, comment });
  quiet();
  next();
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

// —— what the server says

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
  toast(said.sentence ?? document.body.dataset.failed, "error");
}

function waiting(why, count) {
  status.dataset.tone = "warn";
  status.textContent = `${status.dataset[why]} ${count || ""}`;
}

function empty() {
  if (!current) lookForMore(); // the server gives no more items while many verdicts are still on their way
  if (status.dataset.tone === "warn") say(status.dataset.sent);
}

function say(text) {
  delete status.dataset.tone;
  status.textContent = text;
}

function quiet() {
  if (status.dataset.tone !== "warn") say("");
}

// —— earlier ones

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

// —— drafts: what is typed and not given yet

function saveDraft() {
  drafting = 0;
  const article = current;
  if (!article || article.dataset.attempt !== "0") return;
  article.dataset.values = JSON.stringify(form.values);
  article.dataset.comment = form.fields.comment;
  fetch(article.dataset.draftUrl, {
    method: "POST",
    body: new URLSearchParams(form.fields),
    headers: { Accept: "application/json", "X-CSRFToken": outbox.token },
    redirect: "manual",
    keepalive: true,
  }).catch(() => {}); // the next change tries again; the verdict itself waits in the outbox
}

function forgetDraft() {
  clearTimeout(drafting);
  drafting = 0;
}

/** Saves at once what would be saved shortly: another item is shown, or the page is left. */
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
window.addEventListener("pagehide", keepDraft);
document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && keepDraft());

// —— hands

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
};

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
letter("g", () => document.getElementById("guideline").showModal());
letter("c", () => form.form.elements.comment.focus());
letter("r", () => current && toggleReasoning(current));
letter("l", () => say(toggleTogether() ? status.dataset.together : status.dataset.apart));

setInterval(() => !current && lookForMore(), LOOK_AGAIN);
setInterval(() => document.visibilityState === "visible" && current && lookForMore(), STAY_LEASED);
