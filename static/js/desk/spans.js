// Marking spans in an answer, each with a label and a severity, by mouse, touch or keyboard. The criterion's text field
// holds them as JSON; places count code points, as in the data.
export class SpanMarker {
  /** `form`: the VerdictForm whose criterion is marked. */
  constructor(form) {
    this.form = form;
    this.text = null; // the element with the answer's text
    this.known = new WeakMap(); // {characters, words} of each
    document.addEventListener("selectionchange", () => this.followSelection());
    form.form.addEventListener("click", (event) => this.onButton(event));
  }

  get criterion() {
    return this.form.criteria.find((criterion) => criterion.querySelector("[data-marker]"));
  }

  /** Whether the keys are about spans. */
  get active() {
    return Boolean(this.criterion && this.criterion === this.form.current);
  }

  /** Shows an item whose values are in the form. */
  open(article) {
    this.text = null;
    if (!this.criterion) return;
    this.text = article.querySelector("[data-spans]");
    this.field = this.criterion.querySelector("textarea");
    this.field.hidden = true;
    this.criterion.querySelector("[data-marker]").hidden = false;
    this.picked = null; // {start, end, label, severity} of what is selected and not marked yet
    this.at = -1; // the chosen span
    if (!this.text) return this.showState(); // the answer is empty
    if (!this.known.has(this.text)) this.prepare(this.text);
    this.draw();
  }

  prepare(text) {
    this.known.set(text, { characters: [...text.textContent] });
    text.addEventListener("click", (event) => this.onText(event));
  }

  get characters() {
    return this.text ? this.known.get(this.text).characters : [];
  }

  get spans() {
    return this.field.value ? JSON.parse(this.field.value) : [];
  }

  /** Stores the spans, sorted; none are no value until "nothing to mark" is chosen. */
  store(spans, chosen) {
    spans.sort((a, b) => a.start - b.start || a.end - b.end || (a.label < b.label ? -1 : 1));
    this.field.value = spans.length ? JSON.stringify(spans) : "";
    this.at = chosen ? spans.indexOf(chosen) : -1;
    this.draw();
    this.field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // —— selecting text

  /** Takes over a selection in the answer, by mouse or touch. */
  followSelection() {
    const selection = document.getSelection();
    if (!this.text || !selection.rangeCount || selection.isCollapsed) return;
    const range = selection.getRangeAt(0);
    const [begins, ends] = [range.startContainer, range.endContainer].map((node) => this.text.contains(node));
    if (!begins && !ends) return;
    const start = begins ? this.placeOf(range.startContainer, range.startOffset) : 0;
    const end = ends ? this.placeOf(range.endContainer, range.endOffset) : this.characters.length; // a triple click ends behind the text
    if (start === end || (start === this.picked?.start && end === this.picked?.end)) return;
    this.pick(start, end);
  }

  /** How many code points of the answer stand before a place in the document. */
  placeOf(node, offset) {
    const before = document.createRange();
    before.setStart(this.text, 0);
    before.setEnd(node, offset);
    return [...before.toString()].length;
  }

  pick(start, end) {
    this.picked = { ...this.picked, start, end };
    this.at = -1;
    if (!this.active) this.form.select(this.form.criteria.indexOf(this.criterion), false);
    this.showState();
  }

  /** Selects by keyboard: what is picked becomes the browser's selection too, so that it is seen. */
  select(start, end) {
    const limit = this.characters.length;
    start = Math.max(0, Math.min(start, limit - 1));
    end = Math.max(start + 1, Math.min(end, limit));
    this.pick(start, end);
    const range = document.createRange();
    range.setStart(...this.nodeAt(start));
    range.setEnd(...this.nodeAt(end));
    const selection = document.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    const side = this.text.closest(".desk-side");
    if (!side) return; // not at the desk: the page scrolls, not the answer
    const box = range.getBoundingClientRect();
    const around = side.getBoundingClientRect();
    if (box.top < around.top + 40) side.scrollTop -= around.top + 40 - box.top;
    if (box.bottom > around.bottom) side.scrollTop += box.bottom - around.bottom + 8;
  }

  /** The place in the document of a place in the answer. */
  nodeAt(place) {
    let left = this.characters.slice(0, place).join("").length;
    const nodes = document.createTreeWalker(this.text, NodeFilter.SHOW_TEXT);
    let last = this.text;
    for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
      if (left <= node.length) return [node, left];
      left -= node.length;
      last = node;
    }
    return [last, last.length ?? 0];
  }

  /** Moves to the next or previous word; `extend` moves only the end. */
  step(direction, extend) {
    if (!this.text) return;
    const known = this.known.get(this.text);
    const words = (known.words ??= wordsOf(known.characters));
    if (!words.length) return;
    const from = this.picked ?? (this.at >= 0 ? this.spans[this.at] : null);
    if (!from) return this.select(...words[direction > 0 ? 0 : words.length - 1]);
    if (extend) {
      const ends = words.map(([, end]) => end).filter((end) => (direction > 0 ? end > from.end : end < from.end && end > from.start));
      const end = direction > 0 ? ends[0] : ends.at(-1);
      return this.select(from.start, end ?? from.end);
    }
    const others = words.filter(([start]) => (direction > 0 ? start >= from.end : start < from.start));
    this.select(...((direction > 0 ? others[0] : others.at(-1)) ?? [from.start, from.end]));
  }

  /** Moves the start or the end of the selection by a character. */
  nudge(start, end) {
    if (this.picked) this.select(Math.min(this.picked.start + start, this.picked.end - 1), this.picked.end + end);
  }

  // —— marking

  digit(key) {
    if (key === "0") return this.nothing();
    const button = this.criterion.querySelectorAll("button[data-label]")[Number(key) - 1];
    if (button) this.set({ label: button.dataset.label });
  }

  severity(place) {
    const button = this.criterion.querySelectorAll("button[data-severity]")[place];
    if (button) this.set({ severity: Number(button.dataset.severity) });
  }

  /** Sets the label or the severity of what is picked, which is marked once it has both, or of the chosen span. */
  set(change) {
    const { spans } = this;
    if (this.picked) {
      Object.assign(this.picked, change);
      const { start, end, label, severity } = this.picked;
      if (!label || !severity) return this.showState();
      this.picked = null;
      document.getSelection().removeAllRanges();
      return this.put(spans, { start, end, label, severity });
    }
    if (this.at < 0) return this.showState();
    const [span] = spans.splice(this.at, 1);
    this.put(spans, { ...span, ...change });
  }

  /** Adds a span; the same place has a label once. */
  put(spans, span) {
    const others = spans.filter((other) => !(other.start === span.start && other.end === span.end && other.label === span.label));
    this.store([...others, span], span);
  }

  /** The next or previous span. */
  turn(step) {
    const { length } = this.spans;
    if (length) this.choose(this.at < 0 ? (step > 0 ? 0 : length - 1) : (this.at + step + length) % length);
  }

  choose(place) {
    this.picked = null;
    this.at = place;
    this.draw();
    this.text?.querySelector("strong")?.scrollIntoView({ block: "nearest" });
  }

  remove() {
    if (this.at < 0) return;
    const { spans, at } = this;
    spans.splice(at, 1);
    this.store(spans, spans[Math.min(at, spans.length - 1)]);
  }

  /** Says that there is nothing to mark, or takes it back. */
  nothing() {
    if (this.spans.length) return;
    this.field.value = this.field.value ? "" : "[]";
    this.showState();
    this.field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  leave() {
    this.picked = null;
    this.at = -1;
    document.getSelection().removeAllRanges();
    if (this.text) this.draw();
  }

  // —— mouse and touch

  onText(event) {
    if (!document.getSelection().isCollapsed) return;
    const mark = event.target.closest("mark");
    this.picked = null;
    this.at = mark ? Number(mark.dataset.last) : -1;
    this.form.select(this.form.criteria.indexOf(this.criterion), false);
    this.draw();
  }

  onButton(event) {
    const button = event.target.closest("[data-marker] button");
    if (!button) return;
    const { label, severity, nothing, span, remove } = button.dataset;
    if (label !== undefined) this.set({ label });
    if (severity !== undefined) this.set({ severity: Number(severity) });
    if (nothing !== undefined) this.nothing();
    if (span !== undefined) this.choose(Number(span));
    if (remove !== undefined) {
      this.at = Number(remove);
      this.remove();
    }
    if (event.detail) document.querySelector(".desk-item:not([hidden])")?.focus({ preventScroll: true }); // a mouse or finger: Enter submits, as before
  }

  // —— drawing

  /** The answer with its spans, and their list. Text is only ever set as text. */
  draw() {
    const { spans } = this;
    const cuts = [...new Set([0, this.characters.length, ...spans.flatMap(({ start, end }) => [start, end])])].sort((a, b) => a - b);
    const pieces = cuts.slice(1).map((end, place) => this.piece(spans, cuts[place], end));
    this.text.replaceChildren(...pieces);
    this.criterion.querySelector("[data-marks]").replaceChildren(...spans.map((span, place) => this.line(span, place)), ...this.total(spans));
    this.showState();
  }

  /** A piece of the answer: marked, underlined where spans overlap, bold where the chosen one is. */
  piece(spans, start, end) {
    const text = this.characters.slice(start, end).join("");
    const around = [...spans.keys()].filter((place) => spans[place].start <= start && end <= spans[place].end);
    if (!around.length) return document.createTextNode(text);
    const mark = document.createElement("mark");
    mark.dataset.last = around.at(-1);
    mark.title = around.map((place) => this.nameOf(spans[place])).join(" · ");
    let inner = mark;
    if (around.length > 1) inner = inner.appendChild(document.createElement("u"));
    if (around.includes(this.at)) inner = inner.appendChild(document.createElement("strong"));
    inner.append(text);
    return mark;
  }

  nameOf({ label, severity }) {
    return `${label} ${signed(severity)}`;
  }

  /** The sum of the severities, unless nothing is marked. */
  total(spans) {
    if (!spans.length) return [];
    const sum = document.createElement("li");
    const points = signed(spans.reduce((total, { severity }) => total + severity, 0));
    sum.textContent = this.criterion.querySelector("[data-marks]").dataset.sum.replace("{sum}", points);
    return [sum];
  }

  line(span, place) {
    const line = document.createElement("li");
    line.className = "row tight";
    const choose = document.createElement("button");
    choose.className = "button quiet small";
    choose.dataset.span = place;
    choose.setAttribute("aria-pressed", String(place === this.at));
    choose.textContent = `${place === this.at ? "▸ " : ""}${this.nameOf(span)} “${this.excerpt(span)}”`;
    const remove = document.createElement("button");
    remove.className = "button quiet small";
    remove.dataset.remove = place;
    remove.textContent = this.criterion.querySelector("[data-marks]").dataset.remove;
    remove.setAttribute("aria-label", `${remove.textContent}: ${this.nameOf(span)}`);
    for (const button of [choose, remove]) button.type = "button";
    line.append(choose, remove);
    return line;
  }

  excerpt({ start, end }) {
    return end - start > 40 ? `${this.characters.slice(start, start + 30).join("")}…${this.characters.slice(end - 9, end).join("")}` : this.characters.slice(start, end).join("");
  }

  /** Shows what is selected, and which label and severity it has. */
  showState() {
    const { spans, criterion } = this;
    const state = criterion.querySelector("[data-picked]");
    const target = this.picked ?? spans[this.at];
    const missing = this.picked && (this.picked.label ? "whichSeverity" : "whichLabel");
    const text = !target ? state.dataset.empty : state.dataset[missing || "chosen"];
    state.textContent = text.replace("{text}", () => (target ? this.excerpt(target) : ""));
    for (const button of criterion.querySelectorAll("button[data-label]")) press(button, target?.label === button.dataset.label);
    for (const button of criterion.querySelectorAll("button[data-severity]")) press(button, target?.severity === Number(button.dataset.severity));
    const nothing = criterion.querySelector("[data-nothing]");
    nothing.disabled = spans.length > 0;
    press(nothing, this.field.value === "[]");
  }
}

function signed(number) {
  return String(number).replace("-", "−");
}

function press(button, pressed) {
  button.setAttribute("aria-pressed", String(pressed));
  button.classList.toggle("primary", pressed);
}

/** Where words begin and end, in code points: [start, end] each. */
function wordsOf(characters) {
  const words = [];
  let place = 0;
  for (const { segment } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(characters.join(""))) {
    const end = place + [...segment].length;
    if (segment.trim()) words.push([place, end]);
    place = end;
  }
  return words;
}
