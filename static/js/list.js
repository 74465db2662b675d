// The list of judgements: j and k move between rows and, at the ends, between pages; Enter opens one.
import { keep } from "./site.js";

function step(by, beyond) {
  const rows = [...document.querySelectorAll("a.row-link")];
  const next = rows[rows.indexOf(document.activeElement) + by];
  if (next) next.focus();
  else document.querySelector(`a[rel=${beyond}]`)?.click();
}

keep("j", () => step(1, "next"));
keep("k", () => step(-1, "prev"));
