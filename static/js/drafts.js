// What is typed into a long form is kept on the server as a draft. Leaving asks only where that failed, or for secrets.
import { toast } from "./toasts.js";

const AFTER = 800; // ms after the last key
const LARGEST_WHILE_LEAVING = 60_000; // bytes: browsers send no more once a page is being left
let timer = 0;
let saving = null;
let failed = false;
let leaving = false;
let state = null;

const place = () => document.querySelector("[data-draft]");
const draftForm = () => document.getElementById(place()?.dataset.form);

function typed(form) {
  const fields = new FormData(form);
  for (const { name } of form.querySelectorAll("[data-secret], [name=csrfmiddlewaretoken]")) fields.delete(name);
  return new URLSearchParams(fields).toString();
}

async function send(address, body, keepalive = false) {
  const headers = { ...JSON.parse(document.body.getAttribute("hx-headers")), "Content-Type": "application/x-www-form-urlencoded" };
  try {
    return (await fetch(address, { method: "POST", headers, body, keepalive, redirect: "error" })).ok;
  } catch {
    return false;
  }
}

// One after the other, so that the last that is typed is the last that is kept.
function save() {
  clearTimeout(timer);
  timer = 0;
  const mine = Promise.resolve(saving).then(async () => {
    const form = draftForm();
    if (!form) return;
    const kept = await send(place().dataset.draft, typed(form));
    if (!kept && !failed) toast(place()?.dataset.failed ?? "", "error");
    failed = !kept;
    say(form, kept ? "saved" : "failed");
    if (saving === mine) saving = null;
  });
  saving = mine;
  return mine;
}

function say(form, what) {
  if (!state?.isConnected) {
    state = document.createElement("small");
    state.className = "quiet-text";
    state.setAttribute("role", "status");
    form.querySelector(".form-foot")?.append(state);
  }
  state.textContent = place()?.dataset[what] ?? "";
}

function changed({ target }) {
  if (target.form !== draftForm() || !target.form || target.matches("[data-secret]")) return;
  clearTimeout(timer);
  timer = setTimeout(save, AFTER);
  if (state?.isConnected) state.textContent = "";
}
document.addEventListener("input", changed);
document.addEventListener("change", changed);

document.addEventListener("keydown", (event) => {
  const form = draftForm();
  if (!form || event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  const button = form.querySelector("[data-save]");
  if (button) form.requestSubmit(button);
  else save().then(() => !failed && toast(place().dataset.saved, "success"));
});

// A draft that were still on its way would outlive the saving of the form.
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
  else if (body) send(place().dataset.draft, body, true);
});
addEventListener("pageshow", () => {
  leaving = false;
});

if (place()?.hasAttribute("data-unsaved")) save();
