// Drop zones: show the chosen file's name, highlight while a file is dragged over. Browsers handle the drop itself.
const units = ["B", "kB", "MB", "GB", "TB"];

export function bytes(count) {
  let unit = 0;
  while (count >= 1000 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${count.toFixed(unit && count < 100 ? 1 : 0)} ${units[unit]}`;
}

// Shows the chosen file's name in its drop zone; for several files their number and total size.
export function showChosen(zone, files) {
  const size = bytes(files.reduce((sum, file) => sum + file.size, 0));
  const several = zone.dataset.several?.replace("{n}", files.length).replace("{size}", size);
  const each = files.map((file) => `${file.name} · ${bytes(file.size)}`).join(", ");
  zone.querySelector(".drop-name").textContent = files.length > 1 && several ? several : each;
}

function dropZones(root) {
  for (const zone of root.querySelectorAll(".drop")) {
    const input = zone.querySelector("input[type=file]");
    const lit = (on) => () => zone.classList.toggle("over", on);
    input.addEventListener("dragenter", lit(true));
    for (const end of ["dragleave", "drop", "dragend"]) input.addEventListener(end, lit(false));
    input.addEventListener("change", () => showChosen(zone, [...input.files]));
  }
}

document.addEventListener("htmx:load", (event) => dropZones(event.detail.elt));
dropZones(document);
