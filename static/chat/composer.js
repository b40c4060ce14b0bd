// The field at the bottom: drafts, the limit, Enter. What is typed here is kept until it has been sent.

import { announce } from "./announce.js";
import { byId, lengthOf, page, say } from "./page.js";
import { read, write } from "./store.js";

const NEAR_LIMIT = 1_000; // characters left from which on they are counted down

/** Whether Enter is part of writing a word: an input method is choosing characters. */
export function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

/** As high as its text, within what the style sheet allows. */
export function growToFit(area) {
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

export class Composer {
  #form = byId("composer");
  #area = byId("text");
  #counter = byId("counter");
  #hint = byId("hint-text");
  #usualHint = [...this.#hint.childNodes];
  #left = page.maxChars;
  /** Set by the page: why nothing can be sent just now ("" if it can), and what sends. */
  blockedBy = () => "";
  submit = () => {};

  constructor() {
    this.#area.value = read(this.#draft) ?? "";
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    this.#area.addEventListener("keydown", (event) => this.#key(event));
    this.#area.addEventListener("input", () => this.#typed());
    this.#measure();
    growToFit(this.#area);
  }

  get #draft() {
    return `draft:${page.conversation || "new"}`;
  }

  get isEmpty() {
    return !this.#area.value;
  }

  /** Puts `text` into the field, before what stands there. */
  fill(text) {
    const rest = this.#area.value.trim();
    this.#area.value = rest && rest !== text ? `${text}\n\n${rest}` : text;
    this.#typed();
    this.#area.focus();
    this.#area.setSelectionRange(this.#area.value.length, this.#area.value.length);
  }

  focus() {
    this.#area.focus();
  }

  /** Shows Stop in place of Send while `writing`. */
  show({ writing }) {
    const stop = byId("stop");
    const hadFocus = document.activeElement === stop || document.activeElement === byId("send");
    stop.hidden = !writing;
    byId("send").hidden = writing;
    if (hadFocus) this.#area.focus();
    this.#measure();
    if (!this.blockedBy()) this.#explain("");
  }

  #key(event) {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    this.#send();
  }

  #send() {
    const text = this.#area.value.replaceAll("\u0000", "");
    const reason = this.blockedBy();
    this.#explain(reason);
    if (reason) announce(reason);
    if (!text.trim() || this.#left < 0 || reason) return;
    this.#area.value = "";
    this.submit(text.toWellFormed?.() ?? text); // in the outbox from here on, and the draft may go
    this.#typed();
  }

  /** The line under the field: `reason`, or what it usually says. */
  #explain(reason) {
    if (reason) this.#hint.textContent = reason;
    else this.#hint.replaceChildren(...this.#usualHint);
  }

  #typed() {
    growToFit(this.#area);
    this.#measure();
    // At once: a tab may be closed, or the same chat opened in another one, at any moment.
    write(this.#draft, this.#area.value);
  }

  #measure() {
    const { value } = this.#area;
    this.#left = page.maxChars - (value.length < page.maxChars / 2 ? value.length : lengthOf(value));
    const over = this.#left < 0;
    this.#counter.hidden = this.#left >= NEAR_LIMIT;
    this.#counter.textContent = say(over ? "over_limit" : "left", {
      count: Math.abs(this.#left).toLocaleString(document.documentElement.lang),
    });
    byId("hint").classList.toggle("over", over);
    this.#area.setAttribute("aria-invalid", String(over));
    byId("send").disabled = over || !value.trim();
  }
}
