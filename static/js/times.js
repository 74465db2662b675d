// Puts the server's UTC times into the reader's zone and language.
const language = document.documentElement.lang;
const short = new Intl.DateTimeFormat(language, { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hour12: false });
const long = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long" });

export function localise(root) {
  for (const time of root.querySelectorAll("time[data-local], time[data-since]")) {
    const when = new Date(time.dateTime);
    if (Number.isNaN(when.valueOf())) continue;
    if ("local" in time.dataset) time.textContent = short.format(when);
    time.title = long.format(when);
  }
}
