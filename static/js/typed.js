// A look that typing asks for a moment later is not sent once a click has asked for a newer one with the same text:
// it would take the click's place.
let typed = 0;
let clicked = 0;

document.addEventListener("input", () => (typed = performance.now()));
document.addEventListener("htmx:confirm", (event) => {
  const { elt, target } = event.detail;
  if (target?.id !== "preview") return;
  if (elt !== target) clicked = performance.now();
  else if (clicked >= typed) event.preventDefault();
});

// A look that is under way was asked for without what is chosen now: its answer would put the older choice back.
document.addEventListener("change", (event) => {
  const preview = event.target.closest("#preview");
  if (preview) window.htmx.trigger(preview, "htmx:abort");
});

// A preview that takes long says so; one that failed leaves no older one standing, which would be taken for the new.
const state = document.getElementById("preview-state");
let slow;

function onPreview(name, act) {
  document.addEventListener(name, ({ detail }) => detail.target?.id === "preview" && act(detail));
}
onPreview("htmx:beforeRequest", () => {
  clearTimeout(slow);
  slow = setTimeout(() => (state.textContent = state.dataset.busy), 150);
});
onPreview("htmx:afterRequest", (detail) => {
  clearTimeout(slow);
  if (detail.successful || state.textContent === state.dataset.busy) state.replaceChildren();
});
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) onPreview(name, ({ target }) => fail(target));

function fail(preview) {
  for (const result of preview.querySelectorAll("[data-result]")) result.replaceChildren();
  state.replaceChildren(document.getElementById("preview-failed").content.cloneNode(true));
  state.querySelector("button").addEventListener("click", () => window.htmx.trigger("#metric-form", "input"));
  document.dispatchEvent(new Event("preview-failed"));
}
