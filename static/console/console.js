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

// --- what renews itself ---------------------------------------------------------------------

// A part that somebody points at, has put the focus in, or has ticked something in is left alone: what is
// being read or chosen must not be taken away.
function busy(part) {
  return part.matches(":focus-within, :has(.plot:hover), :has(tbody input:checked)");
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.detail.elt;
  if (!part.hasAttribute("data-patient") || !busy(part)) return;
  event.preventDefault();
  tell("later");
});
// What was unfolded stays so.
let unfolded = [];
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  // Somebody may have begun to choose while this was on its way.
  const asker = detail.requestConfig.elt;
  if (asker.hasAttribute("data-patient") && busy(asker)) {
    detail.shouldSwap = false;
    tell("later");
    return;
  }
  unfolded = [...detail.target.querySelectorAll("details[id]")].map((it) => [it.id, it.open]);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const [id, open] of unfolded) {
    const found = document.getElementById(id);
    if (found?.localName === "details") found.open = open;
  }
});

// The socket says what has changed; whoever shows that asks for it, as whoever is signed in.
const AGAIN_AFTER = [1_000, 30_000]; // ms: the first try, and the longest pause between two
const PACE = { lookups: 10_000, later: 2_000 }; // ms between two of a kind; half a second for others
const toldAt = new Map();
const waiting = new Set();

/** Says it now, or as soon as its pace allows; never more than once for all that happens until then. */
function tell(name) {
  if (waiting.has(name)) return;
  waiting.add(name);
  const soonest = name === "later" ? Date.now() : (toldAt.get(name) ?? 0);
  setTimeout(() => {
    waiting.delete(name);
    toldAt.set(name, Date.now());
    document.body.dispatchEvent(new Event(`console:${name}`));
  }, Math.max(0, soonest + (PACE[name] ?? 500) - Date.now()));
}

const EVERYTHING = ["lookups", "queue", "audit", "flush"];
let pause = AGAIN_AFTER[0];
let lost = false;

function listen() {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(`${scheme}//${location.host}/ws/console/`);
  let first = true;
  socket.addEventListener("message", ({ data }) => {
    const told = JSON.parse(data);
    pause = AGAIN_AFTER[0];
    count(told.suspects);
    // Between the page and the socket, and while there was none, something may have happened.
    const changed = first ? ["hello", ...(lost ? EVERYTHING : [])] : told.changed;
    first = false;
    changed.forEach(tell);
  });
  socket.addEventListener("close", ({ code }) => {
    if (code === 4401 || code === 4403) return; // signed out, or no longer allowed to
    lost = true;
    setTimeout(listen, pause);
    pause = Math.min(pause * 2, AGAIN_AFTER[1]);
  });
}

function count(suspects) {
  const shown = document.querySelector("[data-suspects]");
  if (!shown) return;
  shown.hidden = !suspects;
  shown.textContent = suspects > 99 ? "99+" : String(suspects);
}

listen();

// --- what is read out -----------------------------------------------------------------------

// By a region that stays in the page: what comes with its text, or is swapped for another, is not listened to.
// Of a new page that is what was just done, or went wrong; of what renews itself, what it says that is new.
let known = new Set();

function news(now) {
  const said = [...document.querySelectorAll("[data-announce]")].map((it) => [
    it.dataset.announce.replace(/^now$/, "") || it.textContent.trim().replace(/\s+/g, " "),
    it.dataset.announce === "now",
  ]);
  const fresh = said.filter(([text, first]) => (now ? first : !known.has(text))).map(([text]) => text);
  known = new Set(said.map(([text]) => text));
  if (fresh.length) announce(fresh.join(" "));
}

/** Emptied first, so that the same text twice is read twice. */
function announce(text) {
  const region = document.getElementById("announcer");
  region.textContent = "";
  setTimeout(() => (region.textContent = text), 100);
}

news(true);
document.addEventListener("htmx:afterSettle", () => news(false));

// --- choosing several -----------------------------------------------------------------------

document.addEventListener("change", ({ target }) => {
  const name = target.dataset?.all;
  const form = target.form;
  if (!form) return;
  const boxes = [...form.querySelectorAll('input[type="checkbox"][name="pick"]:not(:disabled)')];
  if (name) for (const box of boxes) box.checked = target.checked;
  const all = form.querySelector("[data-all]");
  if (all) {
    const ticked = boxes.filter((box) => box.checked).length;
    all.checked = ticked > 0 && ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
  }
});

// A search is kept as the address says it now, not as it was when the page came.
document.addEventListener("submit", ({ target }) => {
  if (target.matches("[data-query-of-page]")) target.elements.query.value = location.search.slice(1);
});

// Of many pages the one that is open is in view.
document.querySelector(".bar nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
