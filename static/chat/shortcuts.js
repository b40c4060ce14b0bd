// The keyboard. Everything here is listed in the help sheet.

import { isComposing } from "./composer.js";
import { byId, page } from "./page.js";

const TYPING = "input, textarea, select, [contenteditable]";

export function listen({ composer, transcript, sidebar, stop }) {
  document.addEventListener("keydown", (event) => {
    if (isComposing(event) || event.defaultPrevented) return;
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    const act =
      (command && key === "k" && !event.shiftKey && (() => sidebar.search())) ||
      (command && event.shiftKey && key === "o" && (() => location.assign(page.newUrl))) ||
      (command && key === "/" && help) ||
      (key === "?" && !event.target.matches(TYPING) && help) ||
      (key === "arrowup" && editsLast(event, composer, transcript)) ||
      (key === "enter" && submitsEditor(event)) ||
      (key === "escape" && escapes(event, { transcript, sidebar, stop }));
    if (!act) return;
    event.preventDefault();
    act();
  });
}

export function help() {
  const sheet = byId("help");
  if (!sheet.open) sheet.showModal();
}

function editsLast(event, composer, transcript) {
  const question = transcript.lastQuestion;
  return event.target.id === "text" && composer.isEmpty && question && (() => transcript.edit(question));
}

function submitsEditor(event) {
  const editor = event.target.closest?.(".editor");
  return editor && event.target.matches("textarea") && !event.shiftKey && (() => editor.requestSubmit());
}

/** The nearest thing that can be left; the browser itself closes sheets and menus. */
function escapes(event, { transcript, sidebar, stop }) {
  if (document.querySelector("dialog[open], :popover-open")) return false;
  const editor = event.target.closest?.(".editor");
  if (editor) return () => transcript.cancelEdit(editor);
  const cancel = event.target.closest?.(".renaming")?.querySelector("[data-rename-cancel]");
  if (cancel) return () => cancel.click();
  if (event.target.id === "search" && event.target.value) return false;
  if (sidebar.drawerIsOpen) return () => sidebar.drawer(false);
  return transcript.writing && stop;
}
