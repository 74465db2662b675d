// Lets users reorder and remove chosen files. Without this module the server sorts them by name.
import { bytes, showChosen } from "./drop.js";

const byName = new Intl.Collator("en", { numeric: true });

// Returns a function that lists the form's files in display order. `changed` is called after each change.
export function fileList(form, changed) {
  const input = form.querySelector("input[type=file]");
  const box = form.querySelector("[data-several-files]");
  if (!box) {
    input.addEventListener("change", changed);
    return () => [...input.files];
  }
  const list = box.querySelector("[data-files]");
  const files = () => [...list.children].map((item) => item.file);
  const refresh = () => {
    arrange(form, box, list);
    changed();
  };
  const fill = () => {
    const sorted = [...input.files].sort((one, other) => byName.compare(one.name, other.name));
    list.replaceChildren(...sorted.map((file) => item(box, file)));
    refresh();
  };
  input.addEventListener("change", fill);
  window.addEventListener("pageshow", () => { // browsers may restore the files of the last visit
    if (input.files.length && !list.children.length) fill();
  });
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const next = move(button.closest("li"), button);
    showChosen(input.closest(".drop"), files());
    refresh();
    (next.disabled ? next.parentElement.querySelector("button:not(:disabled)") : next).focus();
  });
  for (const choice of together(form)) choice.addEventListener("change", refresh);
  form.elements.order.value = "given";
  arrange(form, box, list);
  return files;
}

// Whether each of several files becomes a data set.
export function eachIsADataset(form, files) {
  return files.length > 1 && [...together(form)].some((choice) => choice.checked && choice.value === "each");
}

function together(form) {
  return form.querySelectorAll("input[name=together]");
}

function item(box, file) {
  const made = box.querySelector("[data-file]").content.firstElementChild.cloneNode(true);
  made.file = file;
  made.querySelector("[data-name]").textContent = file.name;
  made.querySelector("[data-size]").textContent = bytes(file.size);
  for (const button of made.querySelectorAll("button")) {
    button.ariaLabel = button.ariaLabel.replace("{name}", file.name);
    button.title = button.ariaLabel;
  }
  return made;
}

// Performs the button's action; returns the button to focus afterwards.
function move(moved, button) {
  if ("up" in button.dataset) moved.previousElementSibling?.before(moved);
  if ("down" in button.dataset) moved.nextElementSibling?.after(moved);
  if (!("remove" in button.dataset)) return button;
  const neighbour = moved.nextElementSibling ?? moved.previousElementSibling;
  moved.remove();
  return neighbour?.querySelector("[data-remove]") ?? button;
}

function arrange(form, box, list) {
  const items = [...list.children];
  const each = eachIsADataset(form, items);
  box.classList.toggle("on", items.length > 1);
  items.forEach((one, index) => {
    const [up, down] = [one.querySelector("[data-up]"), one.querySelector("[data-down]")];
    up.hidden = down.hidden = each;
    up.disabled = index === 0;
    down.disabled = index === items.length - 1;
  });
}
