// Keyboard shortcuts for adjudication and for trying an item, which needs no reason, as on the rating desk. Without this module the form works as usual.
import { keep } from "./site.js";
import { VerdictForm } from "./desk/form.js";
import { attend, show } from "./desk/reading.js";

const decision = document.getElementById("decision");
const tried = document.querySelector(".desk-item");
const form = new VerdictForm(decision, ({ dataset }) => tried && dataset.side && show(tried, dataset.side));
if (tried) attend(tried);
const { reason } = decision.elements;

for (const digit of "0123456789") keep(digit, () => form.digit(digit));
keep("ArrowLeft", () => form.move(-1));
keep("ArrowRight", () => form.move(1));
keep("ArrowUp", () => form.select(form.at - 1));
keep("ArrowDown", () => form.select(form.at + 1));
for (const key of "cC") keep(key, () => reason?.focus());
keep("Enter", () => decision.requestSubmit());

/** Says what the decision lacks, each at its place, and moves the focus to the first. */
function complete() {
  const reasoned = !reason || Boolean(reason.value.trim());
  if (reason) document.getElementById("reason-error").textContent = reasoned ? "" : decision.dataset.write;
  const chosen = form.complete(decision.dataset.choose);
  if (chosen && !reasoned) reason.focus();
  return chosen && reasoned;
}

decision.addEventListener("submit", (event) => {
  if (!complete()) event.preventDefault();
});
form.select(0, false);
