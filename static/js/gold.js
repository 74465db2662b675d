// Marking the known spans of a gold item, or those of an item that is tried, as at the rating desk. Without this module they are typed as JSON.
import { keep } from "./site.js";
import { VerdictForm } from "./desk/form.js";
import { SpanMarker } from "./desk/spans.js";

const place = document.querySelector("[data-marking]");

/** The desk's keys of marking. */
function keepKeys(marker) {
  for (const digit of "0123456789") keep(digit, () => marker.digit(digit));
  for (const [at, key] of [..."qwe"].entries()) for (const either of [key, key.toUpperCase()]) keep(either, () => marker.severity(at));
  for (const [key, step] of Object.entries({ ArrowLeft: -1, ArrowRight: 1 })) keep(key, (event) => marker.step(step, event.shiftKey));
  for (const [key, step] of Object.entries({ j: 1, J: 1, k: -1, K: -1 })) keep(key, () => marker.turn(step));
  for (const key of ["Delete", "Backspace"]) keep(key, () => marker.remove());
}

if (place) {
  const marker = new SpanMarker(new VerdictForm(place.closest("form")));
  marker.open(place);
  if (!place.closest("details")) keepKeys(marker);
  if (place.matches("form")) keep("Enter", () => place.requestSubmit()); // an item that is tried
}
