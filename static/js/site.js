// What every page does beyond links and forms. Pages work without it.
import { toast } from "./toasts.js";

// Clicks that stand for the whole site, by delegation: they also reach what htmx brings later.
document.addEventListener("click", async (event) => {
  const close = event.target.closest("[data-close]");
  if (close && close !== document.body) close.closest(".notice, dialog")?.remove();
  const opener = event.target.closest("[data-open]");
  if (opener) document.querySelector(opener.dataset.open)?.showModal();
  const filler = event.target.closest("[data-fill]");
  if (filler) fill(document.querySelector(filler.dataset.fill), filler.dataset.with);
  const copier = event.target.closest("[data-copy]");
  if (copier) await copy(copier);
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

function fill(field, text) {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
}

async function copy(button) {
  const source = document.querySelector(button.dataset.copy);
  await navigator.clipboard.writeText(source.value ?? source.textContent);
  if (button.dataset.copied) toast(button.dataset.copied);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (tooLarge(form)) {
    event.preventDefault();
    event.stopPropagation();
    toast(document.body.dataset.tooLarge, "error");
  } else if (form.matches("[data-theme-choice]")) {
    event.preventDefault();
    chooseTheme(form, event.submitter.value);
  } else if (form.dataset.confirm && !form.dataset.confirmed) {
    event.preventDefault();
    ask(form, event.submitter);
  }
});

// The server refuses it before it is read; here it is still in the form. Upload forms have limits of their own.
function tooLarge(form) {
  if (form.method !== "post" || form.enctype === "multipart/form-data") return false;
  const sent = new URLSearchParams(new FormData(form)).toString();
  return sent.length > (Number(document.body.dataset.formLimit) || Infinity);
}

// <form data-confirm="Remove Rita?"> asks in a dialog before it is sent.
function ask(form, submitter) {
  const dialog = document.createElement("dialog");
  const question = document.createElement("p");
  question.textContent = form.dataset.confirm;
  const answers = document.createElement("form");
  answers.method = "dialog";
  answers.className = "row";
  for (const [value, text, look] of [["yes", submitter?.textContent.trim() || "OK", "danger"], ["", form.dataset.keep || document.body.dataset.close, "quiet"]]) {
    const button = document.createElement("button");
    button.value = value;
    button.className = `button ${look}`;
    button.textContent = text;
    answers.append(button);
  }
  dialog.append(question, answers);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (dialog.returnValue !== "yes") return;
    form.dataset.confirmed = "yes";
    form.requestSubmit(submitter);
    delete form.dataset.confirmed;
  });
  document.body.append(dialog);
  dialog.showModal();
}

function chooseTheme(form, theme) {
  const root = document.documentElement;
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  document.cookie = `evalsite_theme=${theme};path=/;max-age=${theme ? 31536000 : 0};samesite=lax`;
  for (const button of form.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
}

// One list of keys for the whole page. Silent in text fields, under a modifier, and while an input method composes.
const actions = new Map();
let entered = null; // the field that a key led to
const TYPING = "textarea, select, [contenteditable], dialog[open], input:not([type=radio], [type=checkbox], [type=button], [type=submit])";
const FIELD = "input:not([type=hidden]), textarea, select";
const PRESSED = "a, button, summary"; // Enter and space are theirs

/** Calls `action` when `key` (KeyboardEvent.key) is pressed; a page's modules use this for theirs. */
export function keep(key, action) {
  actions.set(key, action);
}

function press(event) {
  if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest(TYPING)) {
    if (event.key === "Escape" && event.target === entered) entered.blur();
    return;
  }
  if ((event.key === "Enter" || event.key === " ") && event.target.closest(PRESSED)) return;
  const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  const action = actions.get(event.key);
  if (!link && !action) return;
  event.preventDefault();
  if (link) activate(link);
  else action(event);
}

/** A field is entered; what opens is entered too, at its first field. Escape leaves it. */
function activate(target) {
  const field = target.matches(FIELD) ? target : target.closest("summary")?.parentElement.querySelector(FIELD);
  if (field !== target) target.click();
  if (!field || field.closest("details:not([open])")) return;
  field.focus();
  entered = field;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
});
keep("?", () => document.getElementById("keys")?.showModal());
keep("/", () => {
  const field = document.querySelector("main input[type=search]");
  if (field) field.focus();
  else document.querySelector("[data-palette]")?.click();
});
document.addEventListener("keydown", press);

// Ctrl+K: go anywhere by name. Arrow keys walk from the field through the links; Enter in the field follows the first.
const palette = document.getElementById("palette");
const wanted = palette?.querySelector("input[type=search]");
const hits = document.getElementById("palette-hits");

function openPalette() {
  if (!palette || palette.open) return;
  palette.showModal();
  wanted.select();
  if (!hits.childElementCount) wanted.dispatchEvent(new Event("search")); // pages and actions, before a word is typed
}

palette?.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return;
  const stops = [wanted, ...hits.querySelectorAll("a")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    stops[(stops.indexOf(document.activeElement) + step + stops.length) % stops.length].focus();
  } else if (event.key === "Enter" && event.target === wanted && stops[1] && wanted.value === hits.dataset.shown) {
    event.preventDefault();
    stops[1].click();
  }
});
palette?.addEventListener("click", (event) => {
  if (event.target === palette) palette.close();
});
document.addEventListener("htmx:afterSwap", ({ target, detail }) => {
  if (target === hits) hits.dataset.shown = new URL(detail.xhr.responseURL).searchParams.get("q") ?? "";
});
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || !palette) return;
  event.preventDefault();
  openPalette();
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-palette]") || !palette || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openPalette();
});

// htmx: a server's word to the reader comes as the event "toast"; a failure never loses what was typed.
document.addEventListener("toast", (event) => toast(event.detail.text ?? event.detail.value, event.detail.kind));
document.addEventListener("htmx:responseError", (event) => {
  if (!event.detail.xhr.getResponseHeader("HX-Trigger")) toast(document.body.dataset.failed, "error");
});
document.addEventListener("htmx:sendError", () => toast(document.body.dataset.failed, "error"));

// The server's UTC times, put into the reader's zone: 2026-11-22 03:16, the second and the zone on hover.
const two = (number) => String(number).padStart(2, "0");
const day = (when) => `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
const minute = (when) => `${two(when.getHours())}:${two(when.getMinutes())}`;
const zone = new Intl.DateTimeFormat(document.documentElement.lang, { timeZoneName: "short" });
const short = (when) => `${day(when)} ${minute(when)}`;
const long = (when) => `${short(when)}:${two(when.getSeconds())} ${zone.formatToParts(when).find((part) => part.type === "timeZoneName").value}`;

function localise(root) {
  for (const time of root.querySelectorAll("time[data-local], time[data-since]")) {
    const when = new Date(time.dateTime);
    if (Number.isNaN(when.valueOf())) continue;
    if ("local" in time.dataset) time.textContent = short(when);
    time.title = long(when);
  }
}

document.addEventListener("htmx:load", (event) => localise(event.detail.elt));
localise(document);

// What somebody opened, scrolled to or stands on stays so when htmx brings that part of the page anew.
// An element is known again by its id, or by its kind, its words (without numbers) and its place among equals.

const came = new WeakMap(); // a details element: whether the server sent it open
const kept = new WeakMap(); // a request, or the target of a part out of band: what to put back once the new is there
const FOCUSED = "a[href], button, input, select, textarea, summary, [tabindex]";

function words(element) {
  if (element.matches("a, button, summary")) return element.textContent;
  return element.matches("details") ? element.querySelector("summary")?.textContent : "";
}

function byWords(element) {
  const said = `${words(element) ?? ""} ${element.getAttribute("aria-label") ?? ""}`.replaceAll(/[\d\s.,]+/g, " ");
  return ["name", "value"].map((name) => element.getAttribute(name)).join("|") + said;
}

const byLook = (element) => element.className;

// The elements below `root` by names under which they are found again.
function named(root, selector, by) {
  const names = new Map();
  const seen = new Map();
  for (const element of root.querySelectorAll(selector)) {
    const name = element.id ? `#${element.id}` : `${element.localName}|${by(element)}`;
    const place = seen.get(name) ?? 0;
    seen.set(name, place + 1);
    names.set(`${name}|${place}`, element);
  }
  return names;
}

function note(root) {
  for (const details of root.querySelectorAll("details")) {
    if (!came.has(details)) came.set(details, details.open);
  }
}

// Who asks for another row by a click starts at its top; who typed or only waited stays where they were.
function remember(target, asked) {
  const root = target.parentElement ?? target;
  const clicked = ["click", "submit"].includes(asked?.type);
  const turned = [...named(root, "details", byWords)].filter(([, one]) => one.open !== (came.get(one) ?? one.open));
  const scrolled = clicked ? [] : [...named(root, "*", byLook)].filter(([, one]) => one.scrollTop || one.scrollLeft);
  const [focused] = [...named(root, FOCUSED, byWords)].find(([, one]) => one === document.activeElement) ?? [];
  return {
    root,
    focused,
    turned: turned.map(([name, one]) => [name, one.open]),
    scrolled: scrolled.map(([name, one]) => [name, one.scrollTop, one.scrollLeft]),
  };
}

function putBack({ root, turned, scrolled, focused }) {
  note(root);
  const details = turned.length ? named(root, "details", byWords) : null;
  for (const [name, open] of turned) {
    if (details.has(name)) details.get(name).open = open;
  }
  const all = scrolled.length ? named(root, "*", byLook) : null;
  for (const [name, top, left] of scrolled) all.get(name)?.scrollTo({ top, left, behavior: "instant" });
  if (focused && document.activeElement === document.body) {
    named(root, FOCUSED, byWords).get(focused)?.focus({ preventScroll: true });
  }
}

function again(key) {
  const held = kept.get(key);
  kept.delete(key);
  if (held) putBack(held);
}

note(document);
document.addEventListener("htmx:load", ({ detail }) => note(detail.elt.parentElement ?? detail.elt));
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.shouldSwap) kept.set(detail.xhr, remember(detail.target, detail.requestConfig.triggeringEvent));
});
document.addEventListener("htmx:afterSwap", ({ detail }) => again(detail.xhr));
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => kept.set(detail.target, remember(detail.target)));
document.addEventListener("htmx:oobAfterSwap", ({ detail }) => again(detail.target));
