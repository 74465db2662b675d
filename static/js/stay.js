// What somebody opened, scrolled to or stands on stays so when htmx brings that part of the page anew.
// An element is known again by its id, or by its kind, its words (without numbers) and its place among equals.

const came = new WeakMap(); // a details element: whether the server sent it open
const kept = new WeakMap(); // a request, or the target of a part out of band: what to put back once the new is there
const FOCUSED = "a[href], button, input, select, textarea, summary, [tabindex]";

function words(element) {
  if (element.matches("a, button, summary")) return element.textContent;
  return element.matches("details") ? element.querySelector("summary")?.textContent : "";
}

function byWords(element) {
  const said = `${words(element) ?? ""} ${element.getAttribute("aria-label") ?? ""}`.replaceAll(/[\d\s.,]+/g, " ");
  return ["name", "value"].map((name) => element.getAttribute(name)).join("|") + said;
}

const byLook = (element) => element.className;

// The elements below `root` by names under which they are found again.
function named(root, selector, by) {
  const names = new Map();
  const seen = new Map();
  for (const element of root.querySelectorAll(selector)) {
    const name = element.id ? `#${element.id}` : `${element.localName}|${by(element)}`;
    const place = seen.get(name) ?? 0;
    seen.set(name, place + 1);
    names.set(`${name}|${place}`, element);
  }
  return names;
}

function note(root) {
  for (const details of root.querySelectorAll("details")) {
    if (!came.has(details)) came.set(details, details.open);
  }
}

// Who asks for another row by a click starts at its top; who typed or only waited stays where they were.
function remember(target, asked) {
  const root = target.parentElement ?? target;
  const clicked = ["click", "submit"].includes(asked?.type);
  const turned = [...named(root, "details", byWords)].filter(([, one]) => one.open !== (came.get(one) ?? one.open));
  const scrolled = clicked ? [] : [...named(root, "*", byLook)].filter(([, one]) => one.scrollTop || one.scrollLeft);
  const [focused] = [...named(root, FOCUSED, byWords)].find(([, one]) => one === document.activeElement) ?? [];
  return {
    root,
    focused,
    turned: turned.map(([name, one]) => [name, one.open]),
    scrolled: scrolled.map(([name, one]) => [name, one.scrollTop, one.scrollLeft]),
  };
}

function putBack({ root, turned, scrolled, focused }) {
  note(root);
  const details = turned.length ? named(root, "details", byWords) : null;
  for (const [name, open] of turned) {
    if (details.has(name)) details.get(name).open = open;
  }
  const all = scrolled.length ? named(root, "*", byLook) : null;
  for (const [name, top, left] of scrolled) all.get(name)?.scrollTo({ top, left, behavior: "instant" });
  if (focused && document.activeElement === document.body) {
    named(root, FOCUSED, byWords).get(focused)?.focus({ preventScroll: true });
  }
}

function again(key) {
  const held = kept.get(key);
  kept.delete(key);
  if (held) putBack(held);
}

note(document);
document.addEventListener("htmx:load", ({ detail }) => note(detail.elt.parentElement ?? detail.elt));
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.shouldSwap) kept.set(detail.xhr, remember(detail.target, detail.requestConfig.triggeringEvent));
});
document.addEventListener("htmx:afterSwap", ({ detail }) => again(detail.xhr));
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => kept.set(detail.target, remember(detail.target)));
document.addEventListener("htmx:oobAfterSwap", ({ detail }) => again(detail.target));
