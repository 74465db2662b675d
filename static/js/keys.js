// One list of keys for the whole page. Silent in text fields, under a modifier, and while an input method composes.
const actions = new Map();
const TYPING = "textarea, select, [contenteditable], dialog[open], input:not([type=radio], [type=checkbox], [type=button], [type=submit])";
const PRESSED = "a, button, summary"; // Enter and space are theirs

/** Calls `action` when `key` (KeyboardEvent.key) is pressed; a page's modules use this for theirs. */
export function keep(key, action) {
  actions.set(key, action);
}

export function press(event) {
  if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest(TYPING)) return;
  if ((event.key === "Enter" || event.key === " ") && event.target.closest(PRESSED)) return;
  const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  const action = actions.get(event.key);
  if (!link && !action) return;
  event.preventDefault();
  if (link) link.click();
  else action(event);
}
