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
