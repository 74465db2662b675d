// The metric editor: inserts names on click, jumps to lines, and streams the reply of a trial.
import "./code-editor.js";
import { post, toast } from "./site.js";

const form = document.getElementById("metric-form");
let asking = null;

function editorOf(button) {
  return form.querySelector(`fieldset[data-judge="${button.dataset.judge}"] code-editor`);
}

function insert(button) {
  const field = editorOf(button).querySelector("textarea");
  field.focus();
  // execCommand keeps the editor's undo history; fall back to setting the text.
  if (!document.execCommand("insertText", false, button.dataset.insert)) {
    field.setRangeText(button.dataset.insert, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.insert) insert(button);
  if (button.dataset.goto && !button.dataset.script) editorOf(button).goTo?.(Number(button.dataset.goto));
  if ("stop" in button.dataset) asking?.abort();
  if ("dismiss" in button.dataset) document.getElementById("trial").replaceChildren();
  if (button.dataset.try) {
    event.preventDefault();
    tryOnRow(button.dataset.try);
  }
});

// The fields of other kinds are hidden but keep what was typed; only two ways of reading a reply need an expression or a path.
function patterns() {
  const gives = form.querySelector("input[name=gives]:checked")?.value || "script";
  for (const part of form.querySelectorAll("[data-gives]")) part.hidden = !part.dataset.gives.split(" ").includes(gives);
  form.querySelector("[data-baseline]").hidden = form.querySelector("select[name=pairs]").value !== "baseline";
  for (const judge of form.querySelectorAll("fieldset[data-judge]")) {
    const way = judge.querySelector("select[name$='-parse']").value;
    judge.querySelector("[data-pattern]").hidden = !["regex", "json_path"].includes(way);
  }
}
form.addEventListener("change", patterns);
form.addEventListener("change", ({ target }) => {
  // Only both orders tell a preference for the first side from one for an answer.
  if (target.name === "gives" && target.value === "candidates") for (const box of form.querySelectorAll("[name$='-both_orders']")) box.checked = true;
});
patterns();

// There is always a blank row for another label.
form.addEventListener("input", (event) => {
  const row = event.target.closest(".label-row");
  if (!row?.matches(":last-of-type")) return;
  const blank = row.cloneNode(true);
  for (const field of blank.querySelectorAll("input")) field.value = "";
  row.after(blank);
});
form.querySelector("[data-add-label]").hidden = true;

async function tryOnRow(address) {
  asking?.abort();
  const mine = (asking = new AbortController());
  const place = document.getElementById("trial");
  place.replaceChildren(document.getElementById("trial-live").content.cloneNode(true));
  place.scrollIntoView({ block: "nearest" });
  try {
    const answer = await post(address, () => new FormData(form), { signal: mine.signal });
    if (answer === null) return fail(mine, place, "signedOut");
    if (!answer.ok) throw new Error(String(answer.status));
    for await (const event of lines(answer.body)) show(event, place);
  } catch {
    fail(mine, place, "failed");
  }
}

function fail(mine, place, text) {
  if (asking !== mine) return;
  place.replaceChildren();
  if (!mine.signal.aborted) toast(document.body.dataset[text], "error");
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const whole = (rest + value).split("\n");
    rest = whole.pop();
    for (const line of whole) if (line) yield JSON.parse(line);
  }
}

function show(event, place) {
  if (event.kind === "end") {
    place.innerHTML = event.html; // from the server, all values escaped
    return;
  }
  const waits = place.querySelector("[data-wait]");
  waits.textContent = event.kind === "wait" ? event.text : "";
  if (event.kind === "wait") return;
  const target = place.querySelector(`[data-${event.kind}]`);
  target.append(event.text);
  target.closest("details")?.removeAttribute("hidden");
}
