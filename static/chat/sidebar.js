// The list of conversations: refreshed when something happened, a drawer on narrow screens, its menus.

import { byId, page, say } from "./page.js";
import { write } from "./store.js";

const REFRESH_AFTER = 150; // ms; one refresh for what happens together
const NARROW = matchMedia("(max-width: 48rem)");

export class Sidebar {
  #list = byId("conversation-list");
  #sidebar = byId("sidebar");
  #timer = 0;
  #place = null; // where in the list the keyboard was when it was drawn anew
  /** Called when the list was drawn anew. */
  refreshed = () => {};

  constructor() {
    this.#list.addEventListener("htmx:afterSwap", ({ target }) => {
      this.#syncTitle();
      if (target === this.#list) this.refreshed();
    });
    this.#list.addEventListener("htmx:beforeSwap", (event) => this.#beforeSwap(event));
    this.#list.addEventListener("htmx:afterSettle", () => this.#returnToPlace());
    document.addEventListener("beforetoggle", (event) => this.#placeMenu(event), true);
    document.addEventListener("click", (event) => this.#closeMenu(event));
    document.addEventListener("htmx:afterRequest", (event) => this.#afterDelete(event));
    NARROW.addEventListener("change", () => this.drawer(false));
    this.drawer(false);
  }

  /** Fetches the list anew; not under the hands of someone who is renaming or choosing in it. */
  refresh() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#isInUse) {
        this.refresh();
        return;
      }
      const query = new URLSearchParams({ q: byId("search").value });
      htmx.ajax("GET", `${page.listUrl}?${query}`, { source: this.#list, target: this.#list, swap: "innerHTML" });
    }, REFRESH_AFTER);
  }

  /** The id of the last message of the conversation on the page, as of the list; empty on a new one's page. */
  get leaf() {
    return this.#list.querySelector("[data-leaf]").dataset.leaf;
  }

  /** Opens or closes the drawer; what is covered, or put away, can't be reached by keyboard either. */
  drawer(open) {
    const narrow = NARROW.matches;
    const wasOpen = this.drawerIsOpen;
    document.body.classList.toggle("drawer-open", narrow && open);
    this.#sidebar.inert = narrow && !open && !document.body.classList.contains("listing");
    byId("main").inert = narrow && open;
    byId("drawer-button").setAttribute("aria-expanded", String(open));
    if (narrow && open) this.#sidebar.querySelector("[data-action=close-drawer]").focus();
    else if (narrow && wasOpen) byId("drawer-button").focus();
  }

  get drawerIsOpen() {
    return document.body.classList.contains("drawer-open");
  }

  search() {
    if (NARROW.matches) this.drawer(true);
    byId("search").focus();
    byId("search").select();
  }

  /** Someone renames or chooses in it, or has just asked to and waits for the answer. */
  get #isInUse() {
    return this.#list.querySelector(".renaming, :popover-open, .htmx-request") !== null;
  }

  /** A list asked for before someone began to use the old one is not drawn over it. */
  #beforeSwap(event) {
    const refreshed = event.detail.requestConfig.elt === this.#list;
    if (refreshed && this.#isInUse) {
      event.detail.shouldSwap = false;
      this.refresh();
    } else this.#rememberPlace();
  }

  #rememberPlace() {
    // Drawn anew twice at once: the place of before the first time is not given back yet.
    if (this.#place && document.activeElement === document.body) return;
    const line = document.activeElement?.closest("#conversation-list .conversation");
    this.#place = line && { id: line.id, inMenu: document.activeElement.matches("[popovertarget]") };
  }

  #returnToPlace() {
    const place = this.#place;
    this.#place = null;
    if (!place || document.activeElement !== document.body) return;
    byId(place.id)?.querySelector(place.inMenu ? "[popovertarget]" : "input, a")?.focus();
  }

  #syncTitle() {
    const title = this.#list.querySelector("[aria-current=page]")?.textContent;
    if (!title) return;
    byId("conversation-title").textContent = title;
    document.title = `${title} · Reprise`;
  }

  /** Beside its button, upwards where there is no room below. */
  #placeMenu(event) {
    const menu = event.target;
    if (event.newState !== "open" || !menu.matches(".menu")) return;
    const button = document.querySelector(`[popovertarget="${menu.id}"]`).getBoundingClientRect();
    const below = button.bottom < innerHeight * 0.6;
    menu.style.left = `${Math.max(8, Math.min(button.left, innerWidth - 280))}px`;
    menu.style.top = below ? `${button.bottom + 4}px` : "auto";
    menu.style.bottom = below ? "auto" : `${innerHeight - button.top + 4}px`;
  }

  #closeMenu(event) {
    event.target.closest?.(".menu-item")?.closest(":popover-open")?.hidePopover();
  }

  #afterDelete(event) {
    const form = event.target.closest?.("form[data-forget]");
    if (!form || !event.detail.successful) return;
    write(`draft:${form.dataset.forget}`, "");
    form.closest("dialog")?.close();
    byId("search").focus();
  }
}

/** One line about the connection; silent while everything is well or was lost for a moment only. */
export class ConnectionLine {
  #line = byId("connection");
  #timer = 0;
  #shown = false;

  /** `state`: connecting, waiting or open; `retry` is called when the person won't wait. */
  show(state, failures, retry) {
    clearTimeout(this.#timer);
    if (state === "open") this.#well();
    else if (this.#shown) this.#trouble(failures, retry);
    else this.#timer = setTimeout(() => this.#trouble(failures, retry), 1_200);
  }

  #well() {
    if (!this.#shown) return;
    this.#shown = false;
    this.#set(say("reconnected"), true);
    this.#timer = setTimeout(() => (this.#line.hidden = true), 2_000);
  }

  #trouble(failures, retry) {
    this.#shown = true;
    this.#set(say(failures ? "offline" : "connecting"), !failures);
    if (failures) this.#line.append(" ", button(say("try_now"), retry));
  }

  signedOut() {
    clearTimeout(this.#timer);
    const link = document.createElement("a");
    link.href = page.loginUrl;
    link.textContent = say("sign_in");
    this.#set(`${say("signed_out")} `, false);
    this.#line.append(link);
  }

  #set(text, quiet) {
    // The same words again would be read out again.
    if (this.#line.firstChild?.textContent !== text || this.#line.hidden) this.#line.textContent = text;
    else this.#line.replaceChildren(this.#line.firstChild);
    this.#line.classList.toggle("quiet", quiet);
    this.#line.hidden = false;
  }
}

function button(text, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "link-button";
  element.textContent = text;
  element.addEventListener("click", act);
  return element;
}
