// Active time only: seconds in which the page is seen and its reader has stirred within the last minute.
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

/** Has the reader stirred within so many milliseconds? */
export function stirredWithin(milliseconds) {
  return performance.now() - stirred < milliseconds;
}
