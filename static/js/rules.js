// The rule editor: marks errors in their lines, completes at the caret, inserts blocks with buttons.
import "./code-editor.js";

const form = document.getElementById("metric-form");
const editor = form.querySelector('code-editor[language="rules"]');
const field = editor.querySelector("textarea");
const spoken = editor.dataset.spoken;

function words() {
  return JSON.parse(document.getElementById("rules-words").dataset.words);
}

// --- errors in their lines ---------------------------------------------------------------------------------------

function mark() {
  const shown = editor.editor;
  if (!shown) return;
  for (const line of shown.wrapper.querySelectorAll(".problem-line")) {
    line.classList.remove("problem-line", "warning");
    line.removeAttribute("title");
  }
  for (const problem of document.querySelectorAll("#preview .problems li")) {
    const line = shown.lines[Number(problem.dataset.line)];
    if (!line) continue;
    line.classList.add("problem-line");
    line.classList.toggle("warning", "warning" in problem.dataset);
    line.title = problem.querySelector("span").textContent;
  }
  showProblems();
}

// On a phone the preview is far below, so errors are also shown under the editor (site.css).
function showProblems() {
  const problems = document.querySelector("#preview .problems")?.cloneNode(true);
  problems?.removeAttribute("role");
  document.getElementById("rules-problems").replaceChildren(...(problems ? [problems] : []));
}
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "preview") mark();
});
document.addEventListener("preview-failed", mark);

// --- inserting ---------------------------------------------------------------------------------------------------

function textarea() {
  return editor.querySelector("textarea");
}

function putIn(text, start, end) {
  const area = textarea();
  area.focus();
  area.setSelectionRange(start, end);
  // execCommand keeps the editor's undo history; fall back to setting the text.
  if (!document.execCommand("insertText", false, text)) {
    area.setRangeText(text, start, end, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

const KINDS = {
  rule: { zh: ["规则", "自然语言规则"], en: ["rule", "rule"] },
  code: { zh: ["代码", "Python代码"], en: ["code", "python"] },
};
const BEGINNING = "def score(ref_answer, model_answer):\n    return 5 if model_answer == ref_answer else 1";

function insertBlock(kind) {
  const [prefix, call] = KINDS[kind][spoken];
  const text = editor.value;
  let number = 1;
  while (text.includes(`<${prefix}${number}>`)) number += 1;
  const label = `${prefix}${number}`;
  const block = `<${label}>\n${kind === "code" ? BEGINNING : ""}\n</${label}>\n`;
  putIn((text.endsWith("\n") ? "" : "\n") + block, text.length, text.length);
  const name = words().fields[0] ?? (spoken === "zh" ? "字段" : "field");
  const at = text.search(/^[ \t]*@(?:格式限制|format)[ \t]*[:：]/m);
  const line = `${name}:${call}:${label}\n`;
  if (at >= 0) putIn(line, at, at);
  const area = textarea();
  if (at >= 0) area.setSelectionRange(at, at + name.length);
}

function insertWord(word) {
  const area = textarea();
  putIn(word, area.selectionStart, area.selectionEnd);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.block) insertBlock(button.dataset.block);
  if ("dismiss" in button.dataset) document.getElementById("trial").replaceChildren();
  if (button.dataset.insert) insertWord(button.dataset.insert);
  if (button.dataset.goto && !button.dataset.script) editor.goTo?.(Number(button.dataset.goto), Number(button.dataset.column ?? 1));
});

// --- completions at the caret ------------------------------------------------------------------------------------

const list = document.createElement("ul");
list.className = "completion";
list.id = "completion";
list.setAttribute("role", "listbox");
list.hidden = true;
document.body.append(list);
let offers = [];
let chosen = 0;

function atCaret() {
  const area = textarea();
  const before = area.value.slice(0, area.selectionStart);
  const start = before.lastIndexOf("\n") + 1;
  const parts = before.slice(start).split(/[:：]/);
  const typed = parts.at(-1).trimStart();
  return { place: parts.length - 1, typed, name: parts[0].trim(), function: (parts[1] ?? "").trim(), from: area.selectionStart - typed.length };
}

function insideBlock() {
  const before = textarea().value.slice(0, textarea().selectionStart);
  return /^[ \t]*@(?:格式限制|format)[ \t]*[:：].*\n/m.test(before);
}

function possible(at) {
  const known = words();
  const pick = (pair) => (spoken === "zh" ? pair[0] : pair[1]);
  if (at.place === 0) {
    return [...known.fields.map((text) => ({ text })), ...known.names.map((pair) => ({ text: pick(pair) }))];
  }
  const [aggregate, format] = [known.names[2], known.names[3]];
  if (aggregate.includes(at.name)) return at.place === 1 ? known.aggregates.map((text) => ({ text })) : [];
  if (format.includes(at.name)) return at.place === 1 ? known.formats.map((text) => ({ text })) : [];
  if (at.place === 1) return known.functions.map((one) => ({ text: one[spoken], other: one[spoken === "zh" ? "en" : "zh"], help: one.help }));
  const used = known.functions.find((one) => one.zh === at.function || one.en === at.function);
  if (used?.argument === "format") return known.formats.map((text) => ({ text }));
  if (used?.argument === "rule" || used?.argument === "code") return labels(KINDS[used.argument]).map((text) => ({ text }));
  return [];
}

function labels(kind) {
  const found = [...editor.value.matchAll(/^[ \t]*<([^<>/\n]+)>[ \t]*$/gm)].map((match) => match[1].trim());
  return found.filter((label) => label.startsWith(kind.zh[0]) || label.startsWith(kind.en[0]));
}

function offer(asked) {
  const at = atCaret();
  const typed = at.typed.toLowerCase();
  const fits = ({ text, other }) => text !== at.typed && (text.toLowerCase().includes(typed) || other?.toLowerCase().includes(typed));
  offers = insideBlock() || (!asked && !at.typed && at.place === 0) ? [] : possible(at).filter(fits).slice(0, 12);
  chosen = 0;
  show();
}

function show() {
  list.replaceChildren(...offers.map((one, number) => {
    const item = document.createElement("li");
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(number === chosen));
    item.id = `completion-${number}`;
    const word = document.createElement("span");
    word.className = "mono";
    word.textContent = one.text;
    item.append(word);
    if (one.help) {
      const help = document.createElement("small");
      help.textContent = one.help;
      item.append(help);
    }
    item.addEventListener("mousedown", (event) => {
      event.preventDefault();
      take(number);
    });
    return item;
  }));
  list.hidden = !offers.length;
  const area = textarea();
  area.setAttribute("aria-expanded", String(!list.hidden));
  if (list.hidden) area.removeAttribute("aria-activedescendant");
  else {
    area.setAttribute("aria-activedescendant", `completion-${chosen}`);
    place();
  }
}

function place() {
  const area = textarea();
  const before = area.value.slice(0, atCaret().from);
  const line = editor.editor.lines[before.split("\n").length];
  const spot = placeIn(line, before.length - before.lastIndexOf("\n") - 1);
  list.style.left = `${Math.max(0, Math.min(spot.left, innerWidth - list.offsetWidth - 8)) + scrollX}px`;
  list.style.top = `${spot.bottom + scrollY}px`;
}

function placeIn(line, column) {
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  let left = column;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (left <= node.length) {
      const range = document.createRange();
      range.setStart(node, left);
      const box = range.getBoundingClientRect();
      if (box.height) return box;
    }
    left -= node.length;
  }
  return line.getBoundingClientRect();
}

function take(number) {
  const { from } = atCaret();
  const text = offers[number].text;
  offers = [];
  show();
  putIn(text, from, textarea().selectionStart);
  offers = [];
  show();
}

function move(step) {
  chosen = (chosen + step + offers.length) % offers.length;
  show();
}

const KEYS = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Enter: () => take(chosen),
  Tab: () => take(chosen),
  Escape: () => {
    offers = [];
    show();
  },
};

// Capture phase, before the editor handles Enter and Tab.
editor.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229) return;
  if (event.key === "F1") {
    event.preventDefault();
    document.getElementById("rules-reference").click();
  } else if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    offer(true);
  } else if (!list.hidden && KEYS[event.key] && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey) {
    event.preventDefault();
    event.stopPropagation();
    KEYS[event.key]();
  }
}, true);
editor.addEventListener("input", (event) => {
  if (!event.isComposing) offer(false);
});
editor.addEventListener("compositionend", () => offer(false));
editor.addEventListener("focusout", KEYS.Escape);
editor.addEventListener("mousedown", KEYS.Escape);
field.setAttribute("aria-controls", "completion");
mark();
