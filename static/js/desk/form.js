// The verdict form by keyboard: one criterion is active; digits and arrow keys choose on its scale.
export class VerdictForm {
  /** `selected`: called with the criterion that becomes the active one. */
  constructor(form, selected = () => {}) {
    this.form = form;
    this.selected = selected;
    this.at = 0;
    form.addEventListener("focusin", (event) => this.criterionOf(event, (criterion) => this.select(this.criteria.indexOf(criterion), false)));
    form.addEventListener("change", (event) => this.criterionOf(event, (criterion) => this.complain(criterion, "")));
    form.addEventListener("keydown", (event) => this.inField(event));
  }

  get criteria() {
    return [...this.form.querySelectorAll(".criterion")];
  }

  criterionOf(event, action) {
    const criterion = event.target.closest(".criterion");
    if (criterion) action(criterion);
  }

  get current() {
    return this.criteria[this.at];
  }

  /** Fills in an item's values: {key of the criterion: index of the choice, or text}. `template`: its own criteria, if they depend on the item. */
  fill(values, comment, template) {
    if (template) this.form.querySelector(".desk-criteria").replaceChildren(template.content.cloneNode(true));
    this.form.reset();
    for (const criterion of this.criteria) {
      const value = values[criterion.dataset.criterion] ?? "";
      const text = criterion.querySelector("textarea");
      if (text) text.value = value;
      for (const radio of radios(criterion)) radio.checked = radio.value === String(value);
      this.complain(criterion, "");
    }
    this.form.elements.comment.value = comment;
    this.select(0, false);
  }

  get values() {
    const found = {};
    for (const criterion of this.criteria) {
      const text = criterion.querySelector("textarea");
      const value = text ? text.value : radios(criterion).find((radio) => radio.checked)?.value;
      if (value !== undefined && value !== "") found[criterion.dataset.criterion] = value;
    }
    return found;
  }

  get fields() {
    const fields = { comment: this.form.elements.comment.value };
    for (const [number, value] of Object.entries(this.values)) fields[`v${number}`] = value;
    return fields;
  }

  /** Shows `word` at each criterion that lacks a required value, and selects the first; true if there is none. */
  complete(word) {
    const values = this.values;
    const lacking = this.criteria.filter((one) => "required" in one.dataset && !(values[one.dataset.criterion] ?? "").trim());
    for (const criterion of lacking) this.complain(criterion, criterion.querySelector("[data-marker]")?.dataset.choose ?? word);
    if (lacking.length) this.select(this.criteria.indexOf(lacking[0]), true);
    return !lacking.length;
  }

  complain(criterion, text) {
    criterion.querySelector("[data-error]").textContent = text;
  }

  problems(errors) {
    for (const criterion of this.criteria) this.complain(criterion, errors[criterion.dataset.criterion.split(".")[0]] ?? "");
  }

  /** Makes a criterion the active one; `enter` also moves the focus there, so that screen readers announce it. */
  select(place, enter = true) {
    this.at = Math.max(0, Math.min(place, this.criteria.length - 1));
    for (const criterion of this.criteria) {
      if (criterion === this.current) criterion.setAttribute("aria-current", "true");
      else criterion.removeAttribute("aria-current");
    }
    if (!this.current) return;
    this.selected(this.current, enter);
    if (!enter) return;
    this.current.scrollIntoView({ block: "nearest" });
    (this.current.querySelector("textarea:not([hidden])") ?? this.current).focus({ preventScroll: true });
  }

  /** Scores the first criterion with a scale from the active one on, and selects the next one, even if it has a value. */
  digit(key) {
    const place = this.withScale(this.at);
    const radio = place >= 0 && radios(this.criteria[place]).find((one) => one.dataset.digit === key);
    if (!radio) return;
    this.choose(radio);
    const next = this.withScale(place + 1);
    this.select(next >= 0 ? next : place);
  }

  /** Index of the first criterion with a scale, from an index on; -1 if there is none. */
  withScale(from) {
    return this.criteria.findIndex((one, place) => place >= from && radios(one).length);
  }

  /** One step along the scale; without a value, from the middle for a comparison, to the middle for a score. */
  move(step) {
    const compares = ["steps", "gsb"].includes(this.current.querySelector(".scale")?.dataset.scale);
    const scale = radios(this.current).filter((one) => !compares || one.dataset.digit !== "0");
    if (!scale.length) return;
    const now = scale.findIndex((one) => one.checked);
    const middle = Math.floor((scale.length - 1) / 2);
    const next = now >= 0 ? now + step : middle + (compares ? step : 0);
    this.choose(scale[Math.max(0, Math.min(next, scale.length - 1))]);
  }

  choose(radio) {
    radio.checked = true;
    radio.dispatchEvent(new Event("change", { bubbles: true }));
  }

  inField(event) {
    if (!event.target.matches("textarea") || event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") event.target.blur();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.form.requestSubmit();
    }
  }
}

function radios(criterion) {
  return [...criterion.querySelectorAll("input[type=radio]")];
}
