// Upload forms with progress. Without this module the form works as usual.
import { bytes } from "./drop.js";
import { eachIsADataset, fileList } from "./file-list.js";

// Same as files.py.
const ENDING = /(\.(jsonl?|ndjson|csv|tsv|txt|md|xlsx?|ods|docx?|odt|pptx?|rtf|pdf|png|jpe?g|gif|webp|html?|xml|ya?ml|zip|tar|rar|7z|parquet|arrow|sqlite3?|db))?(\.(gz|tgz|bz2|xz|zst))?$/i;

for (const form of document.querySelectorAll("form[data-upload]")) attend(form);

function attend(form) {
  const name = form.querySelector("input[name=name]");
  const files = fileList(form, () => {
    const chosen = files();
    tell(form, refused(form, chosen));
    if (!name) return;
    const each = eachIsADataset(form, chosen);
    name.closest(".field").hidden = name.disabled = each;
    name.placeholder = each ? "" : nameOf(chosen.map((file) => file.name.replace(ENDING, "")));
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const sentences = refused(form, files());
    if (sentences.length) tell(form, sentences);
    else send(form, files());
  });
}

// Reasons why the server would reject these files.
function refused(form, files) {
  if (files.length > Number(form.dataset.mostFiles ?? Infinity)) return [form.dataset.tooMany];
  const size = files.reduce((sum, file) => sum + file.size, 0);
  return size > Number(form.dataset.limit) ? [form.dataset.tooLarge] : [];
}

// The name of one file, or the common part of the names of several; same as core/parts.py.
function nameOf(stems) {
  const [first = ""] = stems;
  if (stems.every((stem) => stem === first)) return first;
  let length = 0;
  while (stems.every((stem) => length < stem.length && stem[length] === first[length])) length += 1;
  let common = first.slice(0, length);
  if (stems.some((stem) => /\d/.test(stem[length] ?? ""))) common = common.replace(/\d+$/, "");
  common = common.replace(/[-_. (#]+$/, "").replace(/(?<=.)[-_. (]+(part|shard|chunk|split)$/i, "");
  return common || first;
}

function send(form, files) {
  const request = new XMLHttpRequest();
  const began = performance.now();
  const leave = (event) => event.preventDefault();
  const abort = form.querySelector("[data-abort]");
  const stop = () => request.abort();
  request.upload.addEventListener("progress", (event) => show(form, event, performance.now() - began));
  request.upload.addEventListener("load", () => status(form, form.dataset.stored));
  request.addEventListener("load", () => answered(form, request));
  request.addEventListener("error", () => tell(form, [form.dataset.failed]));
  request.addEventListener("abort", () => tell(form, [form.dataset.aborted]));
  request.addEventListener("loadend", () => {
    abort.removeEventListener("click", stop);
    window.removeEventListener("beforeunload", leave);
    busy(form, false);
  });
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "application/json");
  request.responseType = "json";
  const data = new FormData(form);
  data.delete("file");
  for (const file of files) data.append("file", file, file.name);
  tell(form, []);
  busy(form, true);
  abort.addEventListener("click", stop);
  window.addEventListener("beforeunload", leave);
  request.send(data);
}

function answered(form, request) {
  if (request.status === 200 && request.response?.address) {
    // After `loadend`, which removes the warning about leaving the page.
    setTimeout(() => window.location.assign(request.response.address));
  } else {
    tell(form, request.response?.errors ?? [form.dataset.failed]);
  }
}

function show(form, event, milliseconds) {
  const progress = form.querySelector("progress");
  progress.max = event.total;
  progress.value = event.loaded;
  const parts = [form.dataset.sent.replace("{sent}", bytes(event.loaded)).replace("{all}", bytes(event.total))];
  if (milliseconds > 1500) {
    const rate = event.loaded / (milliseconds / 1000);
    parts.push(form.dataset.rate.replace("{rate}", bytes(rate)));
    parts.push(form.dataset.left.replace("{time}", duration((event.total - event.loaded) / rate)));
  }
  status(form, parts.join(" · "));
}

function duration(seconds) {
  const unit = seconds < 90 ? "second" : "minute";
  const value = Math.ceil(unit === "second" ? seconds : seconds / 60);
  return new Intl.NumberFormat(document.documentElement.lang, { style: "unit", unit, unitDisplay: "short" }).format(value);
}

function status(form, text) {
  form.querySelector("[data-status]").textContent = text;
}

function busy(form, on) {
  form.querySelector("[data-progress]").hidden = !on;
  form.querySelector("[data-send]").disabled = on;
  form.setAttribute("aria-busy", String(on));
  if (!on) status(form, "");
}

function tell(form, sentences) {
  const box = form.querySelector("[data-errors]");
  box.replaceChildren(...sentences.map((sentence) => {
    const line = document.createElement("p");
    line.textContent = sentence;
    return line;
  }));
  box.hidden = sentences.length === 0;
}
