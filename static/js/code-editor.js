// <code-editor language="jinja"><textarea name="…">…</textarea></code-editor>: colours and line numbers over an ordinary field.
import { createEditor, defaultCommands, editHistory, highlightBracketPairs, matchBrackets } from "../vendor/prism-code-editor/editor.js";
import "./rules-grammar.js";

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

  /** A line below says how the keyboard leaves: Tab indents here; Esc leaves the field, and Tab goes on from there. */
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

  /** Puts the caret there, both from 1, and shows it. */
  goTo(line, column = 1) {
    const lines = this.value.split("\n");
    const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.editor.textarea.focus();
    this.editor.textarea.setSelectionRange(before + column - 1, before + column - 1);
    this.editor.lines[line]?.scrollIntoView({ block: "center" });
  }
}

// The editor's field takes over name, id, htmx and ARIA attributes: labels, forms and htmx see one ordinary field.
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
