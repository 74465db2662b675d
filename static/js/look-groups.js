// Grouping notes by keys and by dragging. Without this module the form with the checkboxes does the same.
import { keep } from "./site.js";

const moving = document.getElementById("moving");
const notes = [...document.querySelectorAll("[data-note]")];
let at = -1;

function visible() {
  return notes.filter((note) => note.checkVisibility());
}

function step(by) {
  const shown = visible();
  if (!shown.length) return;
  at = Math.max(0, Math.min(shown.length - 1, shown.indexOf(notes[at]) + by));
  at = notes.indexOf(shown[at]);
  notes[at].focus();
  notes[at].scrollIntoView({ block: "nearest" });
}

function box(note) {
  return note.querySelector("[name=chosen]");
}

/** Sends the selected notes, or this one alone, to a group: its id, `new`, or `0` for none. */
function put(into, note) {
  const chosen = notes.some((other) => box(other).checked);
  if (note && !(chosen && box(note).checked)) for (const other of notes) box(other).checked = other === note;
  const { into: select, name } = moving.elements;
  const act = into === "0" ? "out" : "move";
  if (into !== "0") select.value = into;
  if (into === "new" && !name.value.trim()) {
    name.focus();
    return;
  }
  moving.requestSubmit(moving.querySelector(`[name=act][value=${act}]`));
}

/** Selects all notes of a group, or of those in none; or deselects them if all are selected. */
function selectAll(section) {
  const boxes = [...section.querySelectorAll("[name=chosen]")];
  const all = boxes.every((each) => each.checked);
  for (const each of boxes) each.checked = !all;
}

function current() {
  return document.activeElement.closest("[data-note]") ?? notes[at];
}

function number(place) {
  const group = document.querySelectorAll("[data-drop]:not([data-drop='0'])")[place];
  const note = current();
  if (group && (note || notes.some((other) => box(other).checked))) put(group.dataset.drop, notes.some((other) => box(other).checked) ? null : note);
}

if (moving) {
  keep("j", () => step(1));
  keep("k", () => step(-1));
  keep("x", () => current() && box(current()).click());
  keep("a", () => {
    const section = current()?.closest("[data-drop]") ?? document.querySelector("[data-drop='0']");
    if (section) selectAll(section);
  });
  for (const button of document.querySelectorAll("[data-select]")) {
    button.hidden = false;
    button.addEventListener("click", () => selectAll(button.closest("[data-drop]")));
  }
  for (let digit = 1; digit < 10; digit++) keep(String(digit), () => number(digit - 1));
  keep("0", () => {
    const note = current();
    if (note && !notes.some((other) => box(other).checked)) box(note).checked = true;
    put("new", null);
  });
  for (const note of notes) {
    note.addEventListener("focusin", () => { at = notes.indexOf(note); });
    note.addEventListener("dragstart", (event) => {
      event.dataTransfer.setData("text/plain", note.dataset.note);
      event.dataTransfer.effectAllowed = "move";
    });
  }
  for (const target of document.querySelectorAll("[data-drop]")) {
    target.addEventListener("dragover", (event) => {
      event.preventDefault();
      event.dataTransfer.dropEffect = "move";
    });
    target.addEventListener("drop", (event) => {
      event.preventDefault();
      const note = notes.find((other) => other.dataset.note === event.dataTransfer.getData("text/plain"));
      if (note && !target.contains(note)) put(target.dataset.drop, note);
    });
  }
  // A name that is typed means a new group.
  moving.elements.name.addEventListener("input", () => { moving.elements.into.value = "new"; });
}
