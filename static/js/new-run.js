// A new run: fields for models appear one at a time. Without scripts all of them are there, folded.
function fold(root) {
  const models = [...root.querySelectorAll("details")];
  for (const one of models) one.hidden = !one.open;
  root.querySelector("[data-add-model]").hidden = models.every((one) => !one.hidden);
}

function foldAll() {
  document.querySelectorAll("[data-models]:not([data-folded])").forEach((root) => {
    root.dataset.folded = "";
    fold(root);
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-add-model]");
  if (!button) return;
  const models = [...button.closest("[data-models]").querySelectorAll("details")];
  const next = models.find((one) => one.hidden);
  next.hidden = false;
  next.open = true;
  next.querySelector("select").focus();
  button.hidden = models.every((one) => !one.hidden);
});
document.addEventListener("htmx:load", foldAll);
foldAll();

// The proposed name follows the chosen metrics until another one is typed.
let proposed = document.querySelector("[data-proposed-name]")?.dataset.proposedName;

document.addEventListener("htmx:afterSwap", () => {
  const name = document.querySelector("[data-proposed-name]")?.dataset.proposedName;
  const field = document.getElementById("id_name");
  if (name && field?.value === proposed) field.value = name;
  proposed = name ?? proposed;
});
