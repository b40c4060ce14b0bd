// What this browser keeps for the person at it: drafts, and texts that have not reached the server.
// Everything is filed under the owner's tag, so that the next person at this browser finds nothing of it;
// only what a guest had is carried over when the guest signs in.

import { page } from "./page.js";

const PREFIX = "reprise:";
const WHO = `${PREFIX}who`;
const own = (name) => `${PREFIX}${page.owner}:${name}`;

function quietly(work, otherwise = null) {
  try {
    return work();
  } catch {
    return otherwise; // storage is switched off or full: the page works, it only remembers less
  }
}

export function read(name) {
  return quietly(() => localStorage.getItem(own(name)));
}

export function write(name, text) {
  quietly(() => (text ? localStorage.setItem(own(name), text) : localStorage.removeItem(own(name))));
}

/** Calls `changed()` when another tab wrote `name`. */
export function watch(name, changed) {
  addEventListener("storage", (event) => {
    if (event.key === own(name)) changed();
  });
}

/** Called once, before anything is read. */
export function settleOwner() {
  quietly(() => {
    const before = JSON.parse(localStorage.getItem(WHO) ?? "null");
    const carried = before?.guest && !page.guest;
    for (const key of Object.keys(localStorage)) {
      if (!key.startsWith(PREFIX) || key === WHO || key.startsWith(own(""))) continue;
      const [, tag, name] = key.match(/^[^:]*:([^:]*):(.*)$/) ?? [];
      const wanted = carried && tag === before.tag && localStorage.getItem(own(name)) === null;
      if (wanted) localStorage.setItem(own(name), localStorage.getItem(key));
      localStorage.removeItem(key);
    }
    // Last: it has the other tabs load anew, and clear away what had not been carried over by then.
    localStorage.setItem(WHO, JSON.stringify({ tag: page.owner, guest: page.guest }));
  });
}

/** Calls `changed({carried})` when this browser became somebody else's in another tab; `carried` if that is
 *  the account of who was a guest here. */
export function watchOwner(changed) {
  addEventListener("storage", ({ key, newValue }) => {
    if (key !== WHO || !newValue) return;
    const { tag, guest } = JSON.parse(newValue);
    if (tag !== page.owner) changed({ carried: page.guest && !guest });
  });
}
