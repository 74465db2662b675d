// The grid of items: a judgement opens in the panel beside it; j and k go to the next and the previous one.
import { keep } from "./keys.js";

const panel = document.getElementById("panel");

function current() {
  return document.querySelector(".pill[data-on]");
}

function select(pill) {
  current()?.removeAttribute("data-on");
  pill.setAttribute("data-on", "");
  pill.scrollIntoView({ block: "nearest" });
  panel.hidden = false;
  window.htmx.ajax("GET", pill.dataset.panel, { target: "#panel", swap: "innerHTML" });
}

function step(by) {
  const all = [...document.querySelectorAll(".pill[data-panel]")];
  const at = all.indexOf(current());
  const next = all[at < 0 ? 0 : at + by];
  if (next) select(next);
}

function close() {
  const open = current();
  panel.hidden = true;
  open?.removeAttribute("data-on");
  open?.focus();
}

// After an override the panel knows the value in force; the pill's colour would be the old one's.
function refresh(event) {
  const pill = document.querySelector(`.pill[data-pk="${Number(event.detail.pk)}"]`);
  const value = panel.querySelector(".score")?.textContent;
  if (!pill || !value) return;
  const number = pill.querySelector("strong") ?? pill.insertBefore(document.createElement("strong"), pill.firstChild);
  number.textContent = value;
  pill.removeAttribute("data-level");
}

if (panel) {
  keep("j", () => step(1));
  keep("k", () => step(-1));
  keep("Escape", close);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close-panel]")) return close();
    const pill = event.target.closest(".pill[data-panel]");
    if (!pill || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    select(pill);
  });
  document.body.addEventListener("judgement-changed", refresh);
}
