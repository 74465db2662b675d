// Pending submissions, stored in the browser and sent in order. Retries are safe, because the server recognizes
// an entry by its key. Each entry has its own storage item: with a common list, tabs would overwrite each
// other's entries.
const desk = document.getElementById("items");
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;

export class SubmissionQueue {
  /** `store`: prefix of names in localStorage. `callbacks`: {stored, refused, waiting, empty}. */
  constructor(store, callbacks) {
    this.store = store;
    this.callbacks = callbacks;
    this.token = document.querySelector("input[name=csrfmiddlewaretoken]").value;
    this.pause = FIRST_PAUSE;
    this.sending = "";
    this.memory = [];
    window.addEventListener("beforeunload", (event) => {
      if (this.memory.length) event.preventDefault(); // not in localStorage: would be lost
    });
  }

  /** Pending entries of all tabs, oldest first. */
  get entries() {
    let names = [];
    try {
      names = Object.keys(localStorage).filter((name) => name.startsWith(`${this.store}/`));
    } catch {} // no localStorage: `memory` has all entries
    const kept = names.sort().map((name) => JSON.parse(localStorage.getItem(name)));
    return [...kept.filter(Boolean), ...this.memory];
  }

  save(entry) {
    this.memory = this.memory.filter((one) => one.key !== entry.key);
    try {
      localStorage.setItem(this.name(entry), JSON.stringify(entry));
    } catch {
      this.memory.push(entry);
    }
  }

  name(entry) {
    return `${this.store}/${entry.at}/${entry.key}`;
  }

  add(entry) {
    const whole = { key: newKey(), at: moment(), owner: desk.dataset.raterName, ...entry };
    this.save(whole);
    this.flush();
    return whole.key;
  }

  /** Removes an entry that was not sent yet. False if it may have reached the server. */
  withdraw(key) {
    const entry = this.entries.find((one) => one.key === key && !one.tried);
    if (this.sending === key || !entry) return false;
    this.drop(entry);
    return true;
  }

  drop(entry) {
    this.memory = this.memory.filter((one) => one.key !== entry.key);
    try {
      localStorage.removeItem(this.name(entry));
    } catch {} // it was only in `memory`
  }

  /** Sends pending entries in order; only one tab at a time does. */
  async flush() {
    if (this.busy) return;
    this.busy = true;
    clearTimeout(this.timer);
    try {
      if (navigator.locks) await navigator.locks.request(this.store, () => this.sendAll());
      else await this.sendAll();
    } finally {
      this.busy = false;
      this.sending = "";
    }
  }

  async sendAll() {
    const some = this.entries.length > 0;
    for (let entry = this.entries[0]; entry; entry = this.entries[0]) {
      this.sending = entry.key;
      this.save({ ...entry, tried: true });
      const result = await this.send(entry);
      if (result.wait) return this.retryLater(result.wait);
      this.pause = FIRST_PAUSE;
      this.drop(entry);
      this.sending = "";
      if (result.ok) this.callbacks.stored(entry, result.data);
      else this.callbacks.refused(entry, result.data);
    }
    if (some) this.callbacks.empty();
  }

  retryLater(reason) {
    this.callbacks.waiting(reason, this.entries.length);
    this.timer = setTimeout(() => this.flush(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
  }

  async send(entry, fresh = false) {
    let response;
    try {
      response = await fetch(entry.url, {
        method: "POST",
        body: new URLSearchParams({ ...entry.fields, key: entry.key }),
        headers: { ...ownHeaders(), "X-CSRFToken": this.token },
        redirect: "manual",
        signal: AbortSignal.timeout(20000),
      });
    } catch {
      return { wait: "offline" };
    }
    if (response.status === 403 && !fresh) {
      const known = await this.renewToken(entry);
      if (known) return known === "fresh" ? this.send(entry, true) : { wait: known };
    }
    const error = connectionError(response);
    // The account may have lost its access; if the item's own rater gets a 404, the item is gone.
    if (error && (response.status !== 404 || (await this.renewToken(entry)) === error)) return { wait: error };
    const data = await response.json().catch(() => ({}));
    this.token = data.token ?? this.token;
    return { ok: response.ok, data };
  }

  /** After signing in again the old token is rejected: gets a new one. Returns "fresh", "" if it is unchanged, or the connection error. */
  async renewToken(entry) {
    const response = await fetch(entry.tokens, { headers: ownHeaders(), redirect: "manual" }).catch(() => null);
    const error = connectionError(response);
    if (error) return error;
    const data = await response.json().catch(() => ({}));
    if (!data.token || data.token === this.token) return "";
    this.token = data.token;
    return "fresh";
  }
}

/** Headers of every request: the server refuses it if somebody else has signed in since the page was loaded. */
export function ownHeaders() {
  return { Accept: "application/json", "X-Rater": desk.dataset.rater };
}

/** How many ratings of other users this browser holds, by name; "" if an earlier release kept no name. */
export function unsentByOthers(rater) {
  const counts = new Map();
  try {
    for (const name of Object.keys(localStorage)) {
      const user = /^desk-\d+-(\d+)\//.exec(name)?.[1];
      if (!user || user === rater) continue;
      const { owner = "" } = JSON.parse(localStorage.getItem(name)) ?? {};
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
  } catch {} // no localStorage: nobody's are kept
  return counts;
}

/** A code for why a response (null: none) is not the server's answer to the request; "" if it is. */
export function connectionError(response) {
  if (!response) return "offline";
  if (response.type === "opaqueredirect" || response.status === 401) return "signedOut";
  if (response.status === 412) return "otherUser";
  if (response.status === 403 || response.status === 404) return "unavailable";
  return response.status >= 500 || response.status === 429 ? "refused" : "";
}

let last = 0;

/** Milliseconds as a sortable text, later than any before on this page. */
function moment() {
  last = Math.max(Date.now(), last + 1);
  return String(last).padStart(15, "0");
}

/** A UUID, version 4; also on pages without HTTPS. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
