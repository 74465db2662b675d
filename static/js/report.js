// Reports: tooltips of chart marks on hover and focus, arrow keys in charts, instant column changes, charts as PNG.

const tip = document.createElement("div");
tip.className = "tip";
tip.setAttribute("aria-hidden", "true");  // the same text is in a label or a table
tip.hidden = true;
document.body.append(tip);

function show(target) {
  const marked = target.closest?.("[data-tip]");
  tip.hidden = !marked;
  if (!marked) return;
  tip.textContent = marked.dataset.tip;
  const place = marked.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, place.left + place.width / 2 - own.width / 2), innerWidth - own.width - 8);
  tip.style.left = `${left}px`;
  tip.style.top = `${place.top > own.height + 10 ? place.top - own.height - 6 : place.bottom + 6}px`;
}

document.addEventListener("pointerover", (event) => show(event.target));
document.addEventListener("focusin", (event) => show(event.target));
document.addEventListener("focusout", () => { tip.hidden = true; });
document.addEventListener("scroll", () => { tip.hidden = true; }, { capture: true, passive: true });

// A chart is one Tab stop; arrow keys move between its bars.
document.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const chart = step && event.target.closest?.("[data-along]");
  if (!chart) return;
  const stops = [...chart.querySelectorAll("a")];
  const next = stops[(stops.indexOf(event.target) + step + stops.length) % stops.length];
  for (const stop of stops) stop.setAttribute("tabindex", stop === next ? "0" : "-1");
  next.focus();
  event.preventDefault();
});

// <a href="….svg" data-png="name"> renders the chart in the browser and saves it as PNG at double size.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-png]");
  if (!link) return;
  event.preventDefault();
  const picture = new Image();
  picture.src = link.href;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * picture.naturalWidth;
  canvas.height = 2 * picture.naturalHeight;
  const paper = canvas.getContext("2d");
  paper.fillStyle = "#fff";
  paper.fillRect(0, 0, canvas.width, canvas.height);
  paper.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const save = document.createElement("a");
  save.href = URL.createObjectURL(await new Promise((done) => canvas.toBlob(done, "image/png")));
  save.download = link.dataset.png;
  save.click();
  URL.revokeObjectURL(save.href);
});
