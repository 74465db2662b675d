// What every page does beyond links and forms. Pages work without it.
import { keep, press } from "./keys.js";
import "./stay.js";
import { toast } from "./toasts.js";

// Clicks that stand for the whole site, by delegation: they also reach what htmx brings later.
document.addEventListener("click", async (event) => {
  const close = event.target.closest("[data-close]");
  if (close && close !== document.body) close.closest(".notice, dialog")?.remove();
  const opener = event.target.closest("[data-open]");
  if (opener) document.querySelector(opener.dataset.open)?.showModal();
  const copier = event.target.closest("[data-copy]");
  if (copier) await copy(copier);
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

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

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
});
keep("?", () => document.getElementById("keys")?.showModal());
keep("/", () => document.querySelector("input[type=search]")?.focus());
document.addEventListener("keydown", press);

// htmx: a server's word to the reader comes as the event "toast"; a failure never loses what was typed.
document.addEventListener("toast", (event) => toast(event.detail.text ?? event.detail.value, event.detail.kind));
document.addEventListener("htmx:responseError", (event) => {
  if (!event.detail.xhr.getResponseHeader("HX-Trigger")) toast(document.body.dataset.failed, "error");
});
document.addEventListener("htmx:sendError", () => toast(document.body.dataset.failed, "error"));

// The server's UTC times, put into the reader's zone and language.
const language = document.documentElement.lang;
const short = new Intl.DateTimeFormat(language, { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hour12: false });
const long = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long" });

function localise(root) {
  for (const time of root.querySelectorAll("time[data-local], time[data-since]")) {
    const when = new Date(time.dateTime);
    if (Number.isNaN(when.valueOf())) continue;
    if ("local" in time.dataset) time.textContent = short.format(when);
    time.title = long.format(when);
  }
}

document.addEventListener("htmx:load", (event) => localise(event.detail.elt));
localise(document);
