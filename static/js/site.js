// Behaviour of all pages beyond links and forms. Pages work without it.

// Delegated click handlers for the whole site: they also cover elements that htmx inserts later.
document.addEventListener("click", async (event) => {
  const close = event.target.closest("[data-close]");
  if (close && close !== document.body) close.closest(".notice, dialog")?.remove();
  const opener = event.target.closest("[data-open]");
  if (opener) document.querySelector(opener.dataset.open)?.showModal();
  const filler = event.target.closest("[data-fill]");
  if (filler?.dataset.choose) document.querySelector(filler.dataset.choose).value = filler.dataset.choice;
  if (filler) fill(document.querySelector(filler.dataset.fill), filler.dataset.with);
  const copier = event.target.closest("[data-copy]");
  if (copier) await copy(copier);
  if (event.target.closest("[data-print]")) window.print();
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

// On a phone, scroll navigation rows to the current entry.
for (const here of document.querySelectorAll(":is(.site-nav, .tabs) [aria-current]")) {
  const row = here.parentElement;
  row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.clientWidth) / 2;
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

// The server would reject it unread; here the input is still in the form. Upload forms have their own limits.
function tooLarge(form) {
  if (form.method !== "post" || form.enctype === "multipart/form-data") return false;
  const sent = new URLSearchParams(new FormData(form)).toString();
  return sent.length > (Number(document.body.dataset.formLimit) || Infinity);
}

// <form data-confirm="Remove Rita?"> asks in a dialog before it is sent; data-look="primary": nothing is lost by it.
function ask(form, submitter) {
  const dialog = document.createElement("dialog");
  const question = document.createElement("p");
  question.textContent = form.dataset.confirm;
  const answers = document.createElement("form");
  answers.method = "dialog";
  answers.className = "row";
  for (const [value, text, look] of [["yes", submitter?.textContent.trim() || "OK", form.dataset.look || "danger"], ["", form.dataset.keep || document.body.dataset.close, "quiet"]]) {
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
  document.cookie = `evalsite_theme=${theme};path=${root.dataset.basePath ?? "/"};max-age=${theme ? 31536000 : 0};samesite=lax`;
  for (const button of form.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
}

// Keyboard shortcuts of the whole page. Ignored in text fields, with a modifier, during composition, and while a dialog
// is open: they would act on what it covers. A dialog has its own keys.
const actions = new Map();
let entered = null; // the field focused by a shortcut
const TYPING = "textarea, select, [contenteditable], input:not([type=radio], [type=checkbox], [type=button], [type=submit])";
const FIELD = "input:not([type=hidden]), textarea, select";
const PRESSED = "a, button, summary"; // they handle Enter and space

export function openDialog() {
  return document.querySelector("dialog[open]");
}

/** Moves the focus into `part`, which replaced what had it: to its first control, or to the first of the dialog around it. */
export function focusInto(part) {
  const control = (where) => where?.querySelector(`a[href], button, ${FIELD}`);
  (control(part) ?? control(part.closest("dialog")))?.focus();
}

/** Calls `action` when `key` (KeyboardEvent.key) is pressed; page modules add their shortcuts with this. */
export function keep(key, action) {
  actions.set(key, action);
}

function press(event) {
  if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
  if (event.ctrlKey || event.metaKey || event.altKey || openDialog()) return;
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

/** Focuses a field, or clicks the target and focuses the first field that it opens. Escape leaves the field. */
function activate(target) {
  const field = target.matches(FIELD) ? target : target.closest("summary")?.parentElement.querySelector(FIELD);
  if (field !== target) target.click();
  if (!field || field.closest("details:not([open])")) return;
  field.focus();
  entered = field;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !openDialog()) {
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

// Ctrl+K: go to anything by name. Arrow keys move between the field and the links; Enter in the field follows the first.
const palette = document.getElementById("palette");
const wanted = palette?.querySelector("input[type=search]");
const hits = document.getElementById("palette-hits");

function openPalette() {
  if (!palette || openDialog()) return;
  palette.showModal();
  wanted.select();
  if (!hits.childElementCount) wanted.dispatchEvent(new Event("search")); // list pages and actions before the first word
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

// Short notices in a corner of the window where they cover no visible submit button.
const SUBMITS = "button[type=submit], button:not([type]), input[type=submit]";
const GAP = 16;
const LOOK_AGAIN = 200; // ms; there is no event for changes of the page's size
const holder = document.getElementById("toasts");
let looking = 0;

export function toast(text, kind = "success") {
  if ([...holder.querySelectorAll("p")].some((line) => line.textContent === text)) return; // already shown
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.dataset.kind = kind;
  const line = document.createElement("p");
  line.textContent = text;
  notice.append(line, closeButton());
  holder.append(notice);
  placeToasts();
  looking ||= setInterval(placeToasts, LOOK_AGAIN);
  if (kind !== "error") setTimeout(() => notice.remove(), 6000);
}

function closeButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "close";
  button.dataset.close = "";
  button.setAttribute("aria-label", document.body.dataset.close);
  button.textContent = "×";
  return button;
}

/** Moves the notices to the lowest free position at the right, else at the left, else at the top. */
function placeToasts() {
  if (!holder.children.length) {
    clearInterval(looking);
    looking = 0;
    return;
  }
  const { width, height } = holder.getBoundingClientRect();
  const page = document.documentElement.clientWidth;
  const submits = [...document.querySelectorAll(SUBMITS)].filter((one) => one.checkVisibility()).map(area);
  const left = [page - width - GAP, GAP].find((start) => lowest(submits, start, width, height) !== null);
  const top = left === undefined ? GAP : lowest(submits, left, width, height);
  holder.style.insetInlineStart = `${left ?? page - width - GAP}px`;
  holder.style.insetBlockStart = `${top}px`;
}

/** A submit button's rectangle in the window, or its form's if the form is pinned to the window's edge. */
function area(button) {
  const pinned = button.form && getComputedStyle(button.form).position === "sticky";
  return (pinned ? button.form : button).getBoundingClientRect();
}

/** The lowest top position in the window that covers nothing in `taken`; null if there is none. */
function lowest(taken, left, width, height) {
  let bottom = window.innerHeight - GAP;
  const across = taken.filter((one) => one.left < left + width + GAP && one.right > left - GAP);
  for (const one of across.sort((a, b) => b.bottom - a.bottom)) {
    if (one.top < bottom && one.bottom + GAP > bottom - height) bottom = Math.min(bottom, one.top - GAP);
  }
  return bottom - height >= GAP ? bottom - height : null;
}

for (const name of ["scroll", "resize"]) window.addEventListener(name, placeToasts, { capture: true, passive: true });

// htmx: server messages arrive as the event "toast"; after a failure, input stays in the form.
document.addEventListener("toast", (event) => toast(event.detail.text ?? event.detail.value, event.detail.kind));
document.addEventListener("htmx:responseError", async ({ detail: { xhr } }) => {
  if (xhr.getResponseHeader("HX-Trigger")) return;
  const signedOut = xhr.status === 403 && !(await renewToken());
  toast(document.body.dataset[signedOut ? "signedOut" : "failed"], "error");
});
// The redirect of a signed-out user would put the sign-in page into a part of this one.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (!new URL(detail.xhr.responseURL, location).pathname.endsWith("/sign-in/")) return;
  detail.shouldSwap = false;
  toast(document.body.dataset.signedOut, "error");
});
document.addEventListener("htmx:sendError", () => toast(document.body.dataset[navigator.onLine ? "failed" : "offline"], "error"));

/** Sends a POST with what `body()` returns, again if the user has signed in anew meanwhile; null if signed out. */
export async function post(address, body, options = {}) {
  const send = () => fetch(address, { method: "POST", redirect: "manual", body: body(), ...options, headers: { ...ownToken(), ...options.headers } });
  const response = await send();
  if (response.type !== "opaqueredirect" && response.status !== 403) return response;
  return (await renewToken()) ? send() : null;
}

const ownToken = () => JSON.parse(document.body.getAttribute("hx-headers"));

// Signing in, also in another tab, changes the CSRF token: takes the current one from this page's address. Returns
// whether the user is signed in.
async function renewToken() {
  const response = await fetch(location.href, { redirect: "manual" });
  if (!response.ok) return false;
  const { body } = new DOMParser().parseFromString(await response.text(), "text/html");
  document.body.setAttribute("hx-headers", body.getAttribute("hx-headers"));
  for (const field of document.querySelectorAll("[name=csrfmiddlewaretoken]")) field.value = ownToken()["X-CSRFToken"];
  return true;
}

// Converts the server's UTC times to the user's time zone: 2026-11-22 03:16; seconds and zone on hover.
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

const ownZone = document.querySelector("input[data-time-zone]");
if (ownZone && !ownZone.value) ownZone.value = new Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";

document.addEventListener("htmx:load", (event) => localise(event.detail.elt));
localise(document);

// Keeps open details, scroll positions and focus when htmx replaces that part of the page. Elements are
// matched by id, or by tag, text (without numbers) and position among equal ones.

const came = new WeakMap(); // details element → whether the server sent it open
const kept = new WeakMap(); // request, or target of an out-of-band swap → state to restore
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

// The elements below `root`, by the keys they are matched with.
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

// A click that loads other rows starts at their top; after typing or polling, scroll positions are kept.
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
  const dialog = openDialog();
  if (dialog && document.activeElement === document.body) focusInto(dialog);
}

note(document);
document.addEventListener("htmx:load", ({ detail }) => note(detail.elt.parentElement ?? detail.elt));
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.shouldSwap) kept.set(detail.xhr, remember(detail.target, detail.requestConfig.triggeringEvent));
});
document.addEventListener("htmx:afterSwap", ({ detail }) => again(detail.xhr));
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => kept.set(detail.target, remember(detail.target)));
document.addEventListener("htmx:oobAfterSwap", ({ detail }) => again(detail.target));

// Saves long forms on the server as drafts. Warns on leaving only if that failed, or for secrets.

const AFTER = 800; // ms after the last input
const LARGEST_WHILE_LEAVING = 60_000; // bytes: browsers send no more while a page is being left
let timer = 0;
let saving = null;
let failed = false;
let leaving = false;
let draftState = null;

const draft = () => document.querySelector("[data-draft]");
const draftForm = () => document.getElementById(draft()?.dataset.form);

function typed(form) {
  const fields = new FormData(form);
  for (const { name } of form.querySelectorAll("[data-secret], [name=csrfmiddlewaretoken]")) fields.delete(name);
  return new URLSearchParams(fields).toString();
}

async function send(address, body, keepalive = false) {
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  try {
    return (await post(address, () => body, { headers, keepalive }))?.ok ?? false;
  } catch {
    return false;
  }
}

// One request after another, so that the newest draft is stored last.
function save() {
  clearTimeout(timer);
  timer = 0;
  const mine = Promise.resolve(saving).then(async () => {
    const form = draftForm();
    if (!form) return;
    const stored = await send(draft().dataset.draft, typed(form));
    if (!stored && !failed) toast(draft()?.dataset.failed ?? "", "error");
    failed = !stored;
    say(form, stored ? "saved" : "failed");
    if (saving === mine) saving = null;
  });
  saving = mine;
  return mine;
}

function say(form, what) {
  if (!draftState?.isConnected) {
    draftState = document.createElement("small");
    draftState.className = "quiet-text";
    draftState.setAttribute("role", "status");
    form.querySelector(".form-foot")?.append(draftState);
  }
  draftState.textContent = draft()?.dataset[what] ?? "";
}

function changed({ target }) {
  if (target.form !== draftForm() || !target.form || target.matches("[data-secret]")) return;
  clearTimeout(timer);
  timer = setTimeout(save, AFTER);
  if (draftState?.isConnected) draftState.textContent = "";
}
document.addEventListener("input", changed);
document.addEventListener("change", changed);

document.addEventListener("keydown", (event) => {
  const form = draftForm();
  if (!form || event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  if (openDialog()) return;
  const button = form.querySelector("[data-save]");
  if (button) form.requestSubmit(button);
  else save().then(() => !failed && toast(draft().dataset.saved, "success"));
});

// A draft request that is still pending would arrive after the form is saved.
document.addEventListener("submit", async (event) => {
  const discards = event.target.closest("[data-draft]");
  if (event.defaultPrevented || (event.target !== draftForm() && !discards)) return;
  clearTimeout(timer);
  timer = 0;
  leaving = true;
  if (!saving) return;
  event.preventDefault();
  await saving;
  event.target.requestSubmit(event.submitter);
});

addEventListener("beforeunload", (event) => {
  const form = draftForm();
  if (leaving || !form) return;
  const body = timer ? typed(form) : "";
  const secrets = [...form.querySelectorAll("[data-secret]")].some((field) => field.value);
  if (failed || secrets || body.length > LARGEST_WHILE_LEAVING) event.preventDefault();
  else if (body) send(draft().dataset.draft, body, true);
});
addEventListener("pageshow", () => {
  leaving = false;
});

if (draft()?.hasAttribute("data-unsaved")) save();

// The browser would replace the page, and what was typed, by its own error. Scripts that keep what they send come first.
addEventListener("submit", (event) => {
  if (navigator.onLine || event.defaultPrevented) return;
  event.preventDefault();
  leaving = false;
  toast(document.body.dataset.offline, "error");
});

// Browsers send nothing for a number field with other characters: say so in the page's own words.
document.addEventListener("submit", (event) => {
  const field = [...event.target.elements].find((control) => control.validity?.badInput);
  if (!field) return;
  event.preventDefault();
  event.stopPropagation();
  field.parentElement.querySelector("[data-not-a-number]")?.remove();
  field.setAttribute("aria-invalid", "true");
  field.insertAdjacentHTML("afterend", '<ul class="errorlist" role="alert" data-not-a-number><li></li></ul>');
  field.nextElementSibling.firstChild.textContent = document.body.dataset.notANumber;
  field.focus();
}, true);
