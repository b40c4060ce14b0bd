// Puts the parts of the chat page together: what a frame means for them, what a click means for them.

import { announce, toast } from "./announce.js";
import { copy } from "./clipboard.js";
import { Composer } from "./composer.js";
import { Generations } from "./generations.js";
import { Outbox } from "./outbox.js";
import { byId, explain, page, say } from "./page.js";
import { Scroll } from "./scroll.js";
import { help, listen } from "./shortcuts.js";
import { ConnectionLine, Sidebar } from "./sidebar.js";
import { Connection } from "./socket.js";
import { settleOwner, watchOwner } from "./store.js";
import { Transcript } from "./transcript.js";

settleOwner();

const connection = new Connection();
const outbox = new Outbox();
const generations = new Generations(connection);
const scroll = new Scroll();
const transcript = new Transcript({ outbox, generations, scroll });
const composer = new Composer();
const sidebar = new Sidebar();
const line = new ConnectionLine();

// --- the connection -----------------------------------------------------------------------------

connection.addEventListener("state", ({ detail }) => {
  transcript.online = detail.state === "open";
  transcript.showUnsent();
  line.show(detail.state, detail.failures, () => connection.hurry());
});

let behind = false; // what happened before the connection opened, no frame told
connection.addEventListener("open", () => {
  generations.resume();
  transcript.catchUp();
  outbox.flush(connection);
  behind = true;
  sidebar.refresh();
});
sidebar.refreshed = () => {
  if (behind) transcript.reach(sidebar.leaf);
  behind = false;
};

addEventListener("online", () => connection.hurry());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) connection.hurry();
});

// A page out of the back-forward cache, or another entry of the history, is fetched anew.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});
let address = location.pathname;
addEventListener("popstate", () => {
  if (location.pathname !== address) location.reload(); // else a jump within the page, to the field say
});

// --- frames -------------------------------------------------------------------------------------

const handlers = {
  "message.accepted": accepted,
  "generation.snapshot": (frame) => generations.take(frame),
  "generation.delta": (frame) => generations.take(frame),
  "generation.done": (frame) => {
    generations.take(frame);
    sidebar.refresh();
  },
  "cache.invalidated": (frame) => {
    if (frame.signal === "version") toast(say("renewed"));
    else if (frame.conversation === page.conversation) transcript.showCorrections();
  },
  error: refused,
};

connection.addEventListener("frame", ({ detail }) => handlers[detail.type]?.(detail));

function accepted(frame) {
  const found = outbox.find(frame.client_id);
  const item = found && outbox.isOwn(found) ? found : undefined; // another tab's is news like any other
  const opensHere = item?.frame.type === "message.send" && !item.conversation && !page.conversation;
  if (opensHere) open(frame.conversation);
  if (frame.conversation === page.conversation) {
    // Shown first, taken out afterwards: its bubble is what becomes the message.
    transcript.accepted(frame, item && { ...item, attempts: outbox.attempts(item.clientId) });
  }
  outbox.take(frame.client_id);
  if (opensHere) outbox.settle(frame.conversation);
  sidebar.refresh();
}

/** The new conversation has an address from now on. */
function open(conversation) {
  page.conversation = conversation;
  document.body.dataset.conversation = conversation;
  address = page.conversationUrl(conversation);
  history.pushState(null, "", address);
  document.querySelector("#settings [name=next]").value = address; // where choosing a language leads back to
}

function signedOut() {
  connection.end();
  line.signedOut();
  transcript.online = false;
  transcript.showUnsent();
}

// The socket would go on as who opened it: what is asked here now is to be asked as who it is now.
watchOwner(({ carried }) => (carried ? location.reload() : signedOut()));

function refused(frame) {
  if (frame.code === "unauthenticated") {
    signedOut();
    return;
  }
  const item = frame.client_id && outbox.find(frame.client_id);
  if (item) transcript.refused(item, frame);
  // An answer that failed says so itself, in its place.
  else if (!frame.client_id) toast(explain(frame));
}

// --- sending ------------------------------------------------------------------------------------

composer.submit = (text) => {
  outbox.add({ type: "message.send", conversation: page.conversation || null, text, parent: null });
  scroll.toEnd();
};
composer.blockedBy = () => {
  if (connection.isEnded) return say("signed_out");
  if (transcript.writing) return say("still_answering");
  return transcript.sending ? say(transcript.online ? "sending" : "waiting") : "";
};
transcript.changed = () => {
  composer.show({ writing: Boolean(transcript.writing) });
  const empty = byId("empty");
  if (empty) empty.hidden = !transcript.isEmpty;
};
outbox.addEventListener("change", () => outbox.flush(connection));
setInterval(() => outbox.remind(connection), 5_000);

function stop() {
  const writing = transcript.writing;
  if (writing) generations.stop(writing);
}

// --- clicks -------------------------------------------------------------------------------------

const article = (element) => element.closest("article");
const clientId = (element) => article(element).dataset.clientId;

const actions = {
  stop,
  help,
  jump: () => scroll.toEnd(),
  fill: (button) => composer.fill(button.textContent.trim()),
  "open-drawer": () => sidebar.drawer(true),
  "close-drawer": () => sidebar.drawer(false),
  regenerate: (button) => transcript.regenerate(article(button)),
  edit: (button) => transcript.edit(article(button)),
  "cancel-edit": (button) => transcript.cancelEdit(button.closest(".editor")),
  "copy-question": (button) => copy(article(button).querySelector(".bubble").textContent),
  "copy-answer": (button) => copy(article(button).querySelector(".source").content.textContent),
  "copy-code": (button) => copy(button.closest(".code").querySelector("code").textContent),
  resend: (button) => outbox.requeue(clientId(button)),
  "take-back": (button) => composer.fill(outbox.take(clientId(button)).frame.text),
  discard: (button) => outbox.take(clientId(button)),
};

document.addEventListener("click", (event) => {
  const target = event.target.closest?.("[data-action], [data-close]");
  if (!target) return;
  if ("close" in target.dataset) target.closest("dialog").close();
  const act = actions[target.dataset.action];
  if (!act) return;
  event.preventDefault();
  act(target);
});

// --- sheets and requests ------------------------------------------------------------------------

document.addEventListener("htmx:load", ({ target }) => {
  if (!target.matches?.("dialog[data-open]")) return;
  target.addEventListener("close", () => target.remove());
  target.showModal();
});
for (const trouble of ["htmx:sendError", "htmx:responseError"]) {
  document.addEventListener(trouble, () => {
    toast(say("request_failed"));
    announce(say("request_failed"));
  });
}

listen({ composer, transcript, sidebar, stop });
transcript.adopt(byId("transcript"));
transcript.showUnsent();
const placed = location.hash.startsWith("#m-"); // at a message
if (!placed) scroll.toEnd();
if (!placed && matchMedia("(hover: hover)").matches) composer.focus();
connection.start();
