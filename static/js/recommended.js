// A button with data-source puts a whole script into the editor's field that data-into names; undo brings the old one back.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-source]");
  const field = button && document.getElementById(button.dataset.into);
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
  // Deleted first: the editor's history joins insertions that follow each other, and the old text would be lost in one.
  document.execCommand("delete");
  // execCommand keeps the editor's undo; where it is gone the text is set directly.
  if (!document.execCommand("insertText", false, button.dataset.source)) {
    field.setRangeText(button.dataset.source, 0, field.value.length, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
});
