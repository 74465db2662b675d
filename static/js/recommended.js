// A button with data-source puts a whole script into the editor's field that data-into names; undo brings the old one back.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-source]");
  const field = button && document.getElementById(button.dataset.into);
  if (!field) return;
  event.preventDefault();
  field.focus();
  // The editor's history learns of a change by these two events.
  const change = { inputType: "insertReplacementText", data: button.dataset.source, bubbles: true };
  field.dispatchEvent(new InputEvent("beforeinput", change));
  field.setRangeText(button.dataset.source, 0, field.value.length, "end");
  field.dispatchEvent(new InputEvent("input", change));
});
