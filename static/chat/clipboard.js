// Copying: answers as their Markdown, questions as typed, code as it stands.

import { toast } from "./announce.js";
import { say } from "./page.js";

/** Puts `text` on the clipboard and says so. */
export async function copy(text) {
  const done = navigator.clipboard ? await modern(text) : old(text);
  toast(say(done ? "copied" : "copy_failed"));
}

async function modern(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return old(text);
  }
}

/** Plain http on a name other than localhost has no clipboard object. */
function old(text) {
  const area = document.createElement("textarea");
  const focused = document.activeElement;
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}
