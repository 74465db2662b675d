// <code-editor language="jinja"><textarea name="…">…</textarea></code-editor>: highlighting and line numbers for a text area.
import { createEditor, defaultCommands, editHistory, highlightBracketPairs, languages, matchBrackets } from "../vendor/prism-code-editor/editor.js";

// Highlighting of the rule language: headers, and blocks that contain Python or a rule's text.

languages.rules = {
  comment: { pattern: /^\s*# DSL\s*$/m },
  python: {
    pattern: /(^[ \t]*<((?:代码|code)[^<>\n]*)>[ \t]*\n)[\s\S]*?(?=\n[ \t]*<\/\2>)/m,
    lookbehind: true,
    greedy: true,
    inside: languages.python,
  },
  "rule-text": {
    pattern: /(^[ \t]*<((?:规则|rule)[^<>\n]*)>[ \t]*\n)[\s\S]*?(?=\n[ \t]*<\/\2>)/m,
    lookbehind: true,
    greedy: true,
    alias: "string",
  },
  tag: { pattern: /^[ \t]*<\/?[^<>\n]+>[ \t]*$/m },
  keyword: { pattern: /^[ \t]*@(?:全部字段|单个字段|聚合方式|格式限制|all|whole|aggregate|format)(?=[ \t]*[:：])/m },
  line: {
    pattern: /^[^:：\n]*[:：].*$/m,
    inside: {
      // First, while the line is not tokenized yet: the second part, even if the third one contains colons.
      function: { pattern: /(^[^:：]+[:：]\s*)[^:：\s][^:：]*/, lookbehind: true },
      property: { pattern: /^[^:：]+(?=[:：])/, alias: "variable" },
      punctuation: /^[:：]/,
      string: /\S[\s\S]*/,
    },
  },
};

let lastKey = "";
addEventListener("keydown", ({ key }) => (lastKey = key), true);
addEventListener("pointerdown", () => (lastKey = ""), true);

const known = new Set(["jinja", "python", "json", "rules"]);

class CodeEditor extends HTMLElement {
  connectedCallback() {
    const written = this.querySelector("textarea");
    if (!written || this.editor) return;
    const language = this.getAttribute("language");
    this.editor = createEditor(this, {
      language: known.has(language) ? language : "plain",
      value: written.value,
      lineNumbers: true,
      wordWrap: language !== "python",
      tabSize: 4,
      readOnly: written.readOnly,
    }, matchBrackets(), highlightBracketPairs(), defaultCommands(), editHistory());
    takePlace(written, this.editor.textarea);
    this.sayHowToLeave();
    this.letTabPass();
  }

  disconnectedCallback() {
    this.editor?.remove();
    this.editor = undefined;
  }

  get value() {
    return (this.editor?.textarea ?? this.querySelector("textarea")).value;
  }

  set value(text) {
    this.editor.setOptions({ value: text });
    this.editor.textarea.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Shows below how to leave by keyboard: Tab indents here; after Esc, Tab moves to the next field. */
  sayHowToLeave() {
    const hint = document.createElement("small");
    hint.className = "editor-hint";
    hint.setAttribute("role", "status");
    let escaped = false;
    const say = (left) => {
      hint.toggleAttribute("data-left", left);
      hint.textContent = document.body.dataset[left ? "tabLeaves" : "tabHint"] ?? "";
    };
    say(false);
    this.after(hint);
    this.addEventListener("keydown", (event) => (escaped = event.key === "Escape" && !event.isComposing), true);
    this.addEventListener("focusout", () => say(escaped));
    document.addEventListener("focusin", () => say(false));
  }

  /** Tab passes through for users who tab through the page; it indents after another key or a click in the editor. */
  letTabPass() {
    let walking = false;
    this.addEventListener("focusin", () => (walking = lastKey === "Tab"));
    this.addEventListener("pointerdown", () => (walking = false));
    this.addEventListener("keydown", (event) => {
      if (event.key === "Tab" && walking) event.stopPropagation();
      else if (event.key !== "Shift") walking = false;
    }, true);
  }

  /** Moves the caret to `line` and `column`, counted from 1, and scrolls there. */
  goTo(line, column = 1) {
    const lines = this.value.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.editor.textarea.focus();
    this.editor.textarea.setSelectionRange(before + column - 1, before + column - 1);
    this.editor.lines[line]?.scrollIntoView({ block: "center" });
  }
}

// The editor's field gets name, id, htmx and ARIA attributes of the text area, so that labels, forms and htmx work with it.
function takePlace(written, field) {
  for (const { name, value } of [...written.attributes]) {
    if (name !== "class" && name !== "rows" && name !== "cols") field.setAttribute(name, value);
  }
  field.defaultValue = written.defaultValue;
  const focused = document.activeElement === written;
  written.remove();
  if (focused) field.focus();
  window.htmx?.process(field);
}

customElements.define("code-editor", CodeEditor);

// A button with data-source puts a script into the editor's field named by data-into; undo restores the old one.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-source]");
  const field = button && document.getElementById(button.dataset.into);
  if (!field) return;
  event.preventDefault();
  field.focus();
  // These two events record the change in the editor's history.
  const change = { inputType: "insertReplacementText", data: button.dataset.source, bubbles: true };
  field.dispatchEvent(new InputEvent("beforeinput", change));
  field.setRangeText(button.dataset.source, 0, field.value.length, "end");
  field.dispatchEvent(new InputEvent("input", change));
});

// A button with data-script shows a line of the script in that field.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-script]");
  if (button) document.getElementById(`id_${button.dataset.script}`).closest("code-editor").goTo?.(Number(button.dataset.goto));
});

// What a check over all rows found is old from the first change of the form until its next answer.
function age({ target }) {
  const another = target.form?.id !== "metric-form" || (/^row_/.test(target.name) && target.name !== "row_version");
  if (another) return;
  for (const place of document.querySelectorAll("[data-checked]")) place.toggleAttribute("data-old", place.childElementCount > 0);
}
document.addEventListener("input", age);
document.addEventListener("change", age);
document.addEventListener("htmx:afterSwap", ({ detail }) => detail.target.removeAttribute("data-old"));

// Drop a delayed preview request from typing if a click has requested a newer one with the same text:
// it would replace the click's preview.
let typed = 0;
let clicked = 0;

document.addEventListener("input", () => (typed = performance.now()));
document.addEventListener("htmx:confirm", (event) => {
  const { elt, target } = event.detail;
  if (target?.id !== "preview") return;
  if (elt !== target) clicked = performance.now();
  else if (clicked >= typed) event.preventDefault();
});

// A pending preview was requested before this choice: its response would restore the old one.
document.addEventListener("change", (event) => {
  const preview = event.target.closest("#preview");
  if (preview) window.htmx.trigger(preview, "htmx:abort");
});

// Show that a slow preview is loading; remove an outdated one after a failure.
const state = document.getElementById("preview-state");
let slow;

function onPreview(name, act) {
  document.addEventListener(name, ({ detail }) => state && detail.target?.id === "preview" && act(detail));
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
