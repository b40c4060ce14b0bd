// Keys of the console. Each presses what stands on the page under data-key, and nothing else: what a key can
// do, a button can.

const TYPING = "input:not([type=checkbox]), textarea, select, [contenteditable]";

function key(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const at = event.target;
  if (event.key === "Escape" && at.matches?.(TYPING)) return at.blur();
  if (at.closest?.(`${TYPING}, dialog[open], [popover]`)) return;
  if (event.repeat) return; // a key that is held down must not decide on the next one too
  if (event.key === "?") return open("keys");
  // On a link or a button Enter means that one.
  if (event.key === "Enter" && at.closest?.("a, button, summary")) return;
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const found = document.querySelector(`[data-key="${CSS.escape(name)}"]`);
  if (!found) return;
  event.preventDefault();
  if (found.localName === "summary") unfold(found.parentElement);
  else found.click();
}

function unfold(details) {
  details.open = !details.open;
  if (details.open) details.querySelector("textarea, input")?.focus();
}

function open(id) {
  const sheet = document.getElementById(id);
  if (sheet && !sheet.open) sheet.showModal();
}

function click(event) {
  const opener = event.target.closest?.("[data-open]");
  if (!opener) return;
  opener.closest("[popover]")?.hidePopover();
  open(opener.dataset.open);
}

// One decision is sent once, however often a key is pressed until the next page is there.
function submit(event) {
  const form = event.target;
  if (form.method !== "post" || form.hasAttribute("hx-post")) return;
  if (form.getAttribute("aria-busy") === "true") event.preventDefault();
  else form.setAttribute("aria-busy", "true");
}

document.addEventListener("keydown", key);
document.addEventListener("click", click);
document.addEventListener("submit", submit);
// A page that comes back from the browser's memory may decide anew.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[aria-busy]")) form.removeAttribute("aria-busy");
});
// What a form asked for stands in the address, so that it can be kept, sent to others, and gone back to.
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (!detail.successful || !detail.elt.hasAttribute("data-address")) return;
  history.replaceState(history.state, "", detail.pathInfo.finalRequestPath);
});
// What went wrong is read first.
document.getElementById("problem")?.scrollIntoView({ block: "center" });
