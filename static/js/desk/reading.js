// Reading an item: the conversation at its last question, synchronized scrolling, marked differences, tabs on a phone.
import { ownHeaders } from "./submissions.js";

const plain = new WeakMap();
let together = true;

const FOLDED = "reference-folded";
let folded = false;
try {
  folded = localStorage.getItem(FOLDED) === "yes";
} catch {} // no localStorage: kept until the page is left

/** Opens or folds the reference as the rater last left it. */
export function foldReference(article) {
  const reference = article.querySelector("[data-reference]");
  if (reference) reference.open = !folded;
}

/** Not the event "toggle": it also comes, later, after changes by this script. */
function keepFolded(reference) {
  folded = reference.open; // it is about to change
  try {
    localStorage.setItem(FOLDED, folded ? "yes" : "no");
  } catch {}
}

export function attend(article) {
  article.querySelector("[data-reference] > summary")?.addEventListener("click", ({ currentTarget }) => keepFolded(currentTarget.parentElement));
  const sides = [...article.querySelectorAll(".desk-side")];
  for (const side of sides) {
    side.addEventListener("scroll", () => follow(side, sides.filter((other) => other !== side)), { passive: true });
  }
  for (const tab of article.querySelectorAll("button[data-tab]")) {
    tab.addEventListener("click", () => show(article, tab.dataset.tab));
  }
}

/** Scrolls the conversation to the last user turn. */
export function toLastQuestion(article) {
  const { conversation, below } = lastQuestion(article);
  conversation.scrollTop += below;
}

/** Changes the layout and keeps a visible last question in view. */
export function withLastQuestion(article, change) {
  const { conversation, below } = lastQuestion(article);
  const inSight = below > -2 && below < conversation.clientHeight;
  change();
  if (inSight) toLastQuestion(article);
}

/** The conversation, and how far its last user turn is below its top edge; 0 without user turns. */
function lastQuestion(article) {
  const conversation = article.querySelector(".desk-question");
  const turn = [...conversation.querySelectorAll(".turn[data-role=user]")].at(-1) ?? conversation;
  return { conversation, below: turn.getBoundingClientRect().top - conversation.getBoundingClientRect().top };
}

function follow(side, others) {
  if (!together || side.led) {
    side.led = false; // scrolled by the other side, which must not follow in turn
    return;
  }
  const share = side.scrollTop / Math.max(1, side.scrollHeight - side.clientHeight);
  for (const other of others) {
    const top = Math.round(share * (other.scrollHeight - other.clientHeight));
    if (Math.abs(other.scrollTop - top) < 1) continue;
    other.led = true;
    other.scrollTop = top;
  }
}

/** Toggles synchronized scrolling; returns whether it is on. */
export function toggleTogether() {
  together = !together;
  return together;
}

/** Brings one answer into view: on a phone its tab. */
export function show(article, letter) {
  for (const side of article.querySelectorAll(".desk-side")) side.toggleAttribute("data-off", side.dataset.side !== letter);
  for (const tab of article.querySelectorAll("button[data-tab]")) {
    tab.setAttribute("aria-pressed", String(tab.dataset.tab === letter));
  }
}

/** Toggles marked differences between the answers; returns whether they are marked. */
export async function toggleDifference(article) {
  const texts = [...article.querySelectorAll(".desk-side [data-text]")];
  if (texts.length < 2) return false;
  if (texts.some((text) => plain.has(text))) {
    for (const text of texts) {
      if (plain.has(text)) text.replaceChildren(...plain.get(text));
      plain.delete(text);
    }
    return false;
  }
  const response = await fetch(article.dataset.differenceUrl, { headers: ownHeaders(), redirect: "manual" }).catch(() => null);
  if (!response?.ok) return false;
  const { sides } = await response.json();
  for (const [place, text] of texts.entries()) {
    plain.set(text, [...text.childNodes]);
    text.innerHTML = sides[place];
  }
  return true;
}

export function toggleReasoning(article) {
  const folded = [...article.querySelectorAll("details.reasoning")];
  const open = folded.some((one) => !one.open);
  for (const one of folded) one.open = open;
}

// Active time: seconds in which the page was visible and had input within the last minute.
const STILL = 60000;
let stirred = performance.now();
let seconds = 0;

for (const name of ["keydown", "pointermove", "pointerdown", "wheel", "touchmove", "scroll"]) {
  window.addEventListener(name, () => (stirred = performance.now()), { passive: true, capture: true });
}
setInterval(() => {
  if (document.visibilityState === "visible" && performance.now() - stirred < STILL) seconds += 0.5;
}, 500);

export function restart() {
  seconds = 0;
  stirred = performance.now();
}

export function elapsed() {
  return Math.max(seconds, 0.1);
}

/** Whether there was input within the last `milliseconds`. */
export function stirredWithin(milliseconds) {
  return performance.now() - stirred < milliseconds;
}
