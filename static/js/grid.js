// The grid of items: judgements open in the side panel; j and k go to the next and the previous match
// of the filter.
import { keep } from "./site.js";

const panel = document.getElementById("panel");

function current() {
  return document.querySelector(".pill[data-on]");
}

function select(pill) {
  current()?.removeAttribute("data-on");
  pill.setAttribute("data-on", "");
  pill.scrollIntoView({ block: "nearest" });
  panel.hidden = false;
  window.htmx.ajax("GET", `${pill.pathname}panel/${pill.search}`, { target: "#panel", swap: "innerHTML" });
}

function step(by) {
  const open = current();
  const all = [...document.querySelectorAll(".pill[data-pk]")].filter((one) => one === open || !("other" in one.dataset));
  const at = all.indexOf(open);
  const next = all[at < 0 ? 0 : at + by];
  if (next) select(next);
}

function close() {
  const open = current();
  panel.hidden = true;
  open?.removeAttribute("data-on");
  open?.focus();
}

// Update the pill after a change in the panel: an override, a tag, an exclusion.
async function refresh(event) {
  const { verb, path } = event.detail.requestConfig;
  const pk = verb !== "get" && /\/judgements\/(\d+)\//.exec(path)?.[1];
  const pill = pk && document.querySelector(`.pill[data-pk="${pk}"]`);
  if (!pill) return;
  const answer = await fetch(`${pill.pathname}pill/${location.search}`);
  if (!answer.ok) return;
  const holder = document.createElement("template");
  holder.innerHTML = await answer.text();
  const fresh = holder.content.querySelector(".pill");
  fresh.toggleAttribute("data-on", pill.hasAttribute("data-on"));
  fresh.toggleAttribute("data-other", pill.hasAttribute("data-other"));
  pill.replaceWith(fresh);
}

if (panel) {
  keep("j", () => step(1));
  keep("k", () => step(-1));
  keep("Escape", close);
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-close-panel]")) return close();
    const pill = event.target.closest(".pill[data-pk]");
    if (!pill || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    select(pill);
  });
  document.body.addEventListener("htmx:afterRequest", refresh);
}
