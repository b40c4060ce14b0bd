// Each slider and the number beside it are one value, and what is saved is what they show.

function follow(event) {
  const at = event.target;
  const number = at.dataset.for ? document.getElementById(at.dataset.for) : at;
  if (!number?.closest(".sliders") || number.type !== "number") return;
  if (at !== number) number.value = Number(at.value).toFixed(3);
  const range = document.querySelector(`[data-for="${number.id}"]`);
  if (range && range !== at && number.value) range.value = number.value;
  if (number.name === "high") keep("t-low", (low) => low > Number(number.value), number.value);
  if (number.name === "low") keep("t-high", (high) => high < Number(number.value), number.value);
  mirror();
}

// Saved at once, before the figures have come, it must not be what was there before; nor what an answer says
// that was asked for earlier.
function mirror() {
  for (const { name, value } of document.querySelectorAll('.sliders input[type="number"]')) {
    const saved = document.querySelector(`.save input[name="${name}"]`);
    if (saved && value) saved.value = value;
  }
}

// A threshold that is moved past the other takes it along.
function keep(id, wrong, value) {
  const other = document.getElementById(id);
  if (!wrong(Number(other.value))) return;
  other.value = value;
  document.querySelector(`[data-for="${id}"]`).value = value;
}

// Another scope or class has other thresholds: the whole page is asked for.
function choose(event) {
  event.target.closest("form[data-reload]")?.requestSubmit();
}

document.addEventListener("input", follow, true);
document.addEventListener("htmx:afterSwap", mirror);
document.addEventListener("change", choose);
