// What is told beside the transcript: to screen readers (once per answer, never per token), and briefly to
// everybody.

import { byId } from "./page.js";

const LONGEST = 4_000; // characters of an answer that are read out unasked
const TOAST_MS = 4_000;

/** Reads `text` out; emptied first, so that the same text twice is read twice. */
export function announce(text) {
  const region = byId("announcer");
  region.textContent = "";
  setTimeout(() => {
    region.textContent = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  }, 60);
}

export function toast(text) {
  const note = document.createElement("p");
  note.className = "toast";
  note.textContent = text;
  byId("toasts").replaceChildren(note);
  setTimeout(() => note.remove(), TOAST_MS);
}
