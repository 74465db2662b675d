// Completion of @name in comments. The text area's data-mentions is the id of a datalist with the names.
const MOST = 6;
const TYPED = /(^|[^\w.@+-])@([\w.@+-]*)$/;
let list = null;

function close() {
  list?.remove();
  list = null;
}

function names(area, begin) {
  const all = [...document.getElementById(area.dataset.mentions).options];
  const wanted = begin.toLowerCase();
  return all.filter((one) => one.value.toLowerCase().startsWith(wanted) || one.text.toLowerCase().includes(wanted)).slice(0, MOST);
}

function offer(area) {
  close();
  const typed = TYPED.exec(area.value.slice(0, area.selectionStart));
  const found = typed ? names(area, typed[2]) : [];
  if (!found.length || found[0].value === typed[2]) return;
  list = document.createElement("ul");
  list.className = "mentions";
  list.setAttribute("role", "listbox");
  for (const one of found) {
    const item = document.createElement("li");
    item.setAttribute("role", "option");
    item.dataset.name = one.value;
    item.textContent = one.text && one.text !== one.value ? `${one.value} · ${one.text}` : one.value;
    item.addEventListener("mousedown", (event) => {
      event.preventDefault(); // keep the focus in the text
      take(area, one.value);
    });
    list.append(item);
  }
  choose(0);
  area.after(list);
}

function choose(at) {
  const items = [...list.children];
  const chosen = (at + items.length) % items.length;
  items.forEach((item, place) => item.setAttribute("aria-selected", String(place === chosen)));
}

function take(area, name) {
  const before = area.value.slice(0, area.selectionStart).replace(TYPED, `$1@${name} `);
  area.setRangeText(before, 0, area.selectionStart, "end");
  close();
}

function press(event) {
  if (!list || event.isComposing) return;
  const chosen = list.querySelector("[aria-selected=true]");
  const at = [...list.children].indexOf(chosen);
  if (event.key === "ArrowDown") choose(at + 1);
  else if (event.key === "ArrowUp") choose(at - 1);
  else if (event.key === "Enter" || event.key === "Tab") take(event.target, chosen.dataset.name);
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

const of = (event) => event.target.closest?.("textarea[data-mentions]");
document.addEventListener("input", (event) => of(event) && offer(of(event)));
document.addEventListener("keydown", (event) => of(event) && press(event), true);
document.addEventListener("focusout", (event) => of(event) && close());
