// Short notices in a corner of the window, where they cover no submit button that is in sight.
const SUBMITS = "button[type=submit], button:not([type]), input[type=submit]";
const GAP = 16;
const LOOK_AGAIN = 200; // a page that grows or shrinks tells nobody
const holder = document.getElementById("toasts");
let looking = 0;

export function toast(text, kind = "success") {
  if ([...holder.querySelectorAll("p")].some((line) => line.textContent === text)) return; // it is there already
  const notice = document.createElement("div");
  notice.className = "notice";
  notice.dataset.kind = kind;
  const line = document.createElement("p");
  line.textContent = text;
  notice.append(line, closeButton());
  holder.append(notice);
  place();
  looking ||= setInterval(place, LOOK_AGAIN);
  if (kind !== "error") setTimeout(() => notice.remove(), 6000);
}

function closeButton() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "close";
  button.dataset.close = "";
  button.setAttribute("aria-label", document.body.dataset.close);
  button.textContent = "×";
  return button;
}

/** Puts the notices at the lowest free place at the right, else at the left, else at the top. */
function place() {
  if (!holder.children.length) {
    clearInterval(looking);
    looking = 0;
    return;
  }
  const { width, height } = holder.getBoundingClientRect();
  const page = document.documentElement.clientWidth;
  const submits = [...document.querySelectorAll(SUBMITS)].filter((one) => one.checkVisibility()).map(area);
  const left = [page - width - GAP, GAP].find((start) => lowest(submits, start, width, height) !== null);
  const top = left === undefined ? GAP : lowest(submits, left, width, height);
  holder.style.insetInlineStart = `${left ?? page - width - GAP}px`;
  holder.style.insetBlockStart = `${top}px`;
}

/** A submit button's area in the window, or that of its form if it is pinned to the window's edge. */
function area(button) {
  const pinned = button.form && getComputedStyle(button.form).position === "sticky";
  return (pinned ? button.form : button).getBoundingClientRect();
}

/** The lowest top edge in the window at which nothing in `taken` is covered; null if there is none. */
function lowest(taken, left, width, height) {
  let bottom = window.innerHeight - GAP;
  const across = taken.filter((one) => one.left < left + width + GAP && one.right > left - GAP);
  for (const one of across.sort((a, b) => b.bottom - a.bottom)) {
    if (one.top < bottom && one.bottom + GAP > bottom - height) bottom = Math.min(bottom, one.top - GAP);
  }
  return bottom - height >= GAP ? bottom - height : null;
}

for (const name of ["scroll", "resize"]) window.addEventListener(name, place, { capture: true, passive: true });
