// Requests on their way to the server. An item leaves the outbox when the server has accepted it, and not
// before: it survives a lost connection and a closed tab, and goes out again under the same client_id,
// which the server takes for one message however often it comes.

import { page } from "./page.js";
import { read, watch, write } from "./store.js";

const NAME = "outbox";
const EMPTY = "[]";
const ANSWERED_WITHIN = 10_000; // ms
const ORPHANED_AFTER = 20_000; // ms; then another tab sends what its own tab, closed since, did not

function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // http on a name other than localhost
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** This tab, also after it was reloaded. */
function thisTab() {
  try {
    sessionStorage.tab ??= newId();
    return sessionStorage.tab;
  } catch {
    return newId();
  }
}

/**
 * Items are {clientId, frame, conversation, state, error, tab, at}; state is "queued" (goes out by itself)
 * or "refused" (waits for the person to decide).
 */
export class Outbox extends EventTarget {
  #memory = EMPTY; // the copy that counts where the browser keeps nothing
  #attempts = new Map();
  #sentAt = new Map();
  #tab = thisTab();
  #own = new Map(); // this tab's, until this tab itself has seen what became of them

  constructor() {
    super();
    for (const item of this.items.filter((item) => this.isOwn(item))) this.#own.set(item.clientId, item);
    watch(NAME, () => this.dispatchEvent(new Event("change")));
  }

  get items() {
    return JSON.parse(read(NAME) ?? this.#memory);
  }

  #save(items) {
    this.#memory = JSON.stringify(items);
    write(NAME, items.length ? this.#memory : "");
    this.dispatchEvent(new Event("change"));
  }

  /** An item for `frame` that is not in the outbox yet. */
  prepare(frame) {
    const clientId = newId();
    return {
      clientId,
      frame: { ...frame, client_id: clientId },
      conversation: page.conversation,
      state: "queued",
      error: "",
      tab: this.#tab,
      at: Date.now(),
    };
  }

  put(item) {
    this.#own.set(item.clientId, item);
    this.#save([...this.items, item]);
  }

  add(frame) {
    this.put(this.prepare(frame));
  }

  /** Whether it was written in this tab. */
  isOwn(item) {
    return item.tab === this.#tab;
  }

  /** The item, also if another tab has taken it out already. */
  find(clientId) {
    return this.items.find((item) => item.clientId === clientId) ?? this.#own.get(clientId);
  }

  /** How often an item went out from this page. */
  attempts(clientId) {
    return this.#attempts.get(clientId) ?? 0;
  }

  /** Takes an item out and returns it; undefined if it isn't there. */
  take(clientId) {
    const item = this.find(clientId);
    this.#own.delete(clientId);
    if (item) this.#save(this.items.filter((other) => other.clientId !== clientId));
    return item;
  }

  refuse(clientId, error) {
    this.#change(clientId, { state: "refused", error });
  }

  /** The person wants it sent after all. A new id, since the old one may have been refused for good. */
  requeue(clientId) {
    const item = this.take(clientId);
    if (item) this.add(item.frame);
  }

  /** What was refused on the page of a new conversation belongs to that conversation once it exists. */
  settle(conversation) {
    this.#save(
      this.items.map((item) => {
        const lost = item.state === "refused" && !item.conversation;
        return lost ? { ...item, conversation, frame: { ...item.frame, conversation } } : item;
      }),
    );
  }

  #change(clientId, values) {
    this.#save(this.items.map((item) => (item.clientId === clientId ? { ...item, ...values } : item)));
  }

  /** Sends what is queued and has not gone out over this connection yet. */
  flush(connection) {
    for (const item of this.items) {
      if (item.state !== "queued" || connection.sent.has(item.clientId)) continue;
      if (!this.isOwn(item) && Date.now() - item.at < ORPHANED_AFTER) continue;
      if (!connection.send(item.frame)) return;
      connection.sent.add(item.clientId);
      this.#sentAt.set(item.clientId, Date.now());
      this.#attempts.set(item.clientId, this.attempts(item.clientId) + 1);
    }
  }

  /** Sends again what the server has not answered for so long that it must have missed it. */
  remind(connection) {
    for (const { clientId } of this.items) {
      if (Date.now() - (this.#sentAt.get(clientId) ?? Infinity) > ANSWERED_WITHIN) connection.sent.delete(clientId);
    }
    this.flush(connection);
  }
}
