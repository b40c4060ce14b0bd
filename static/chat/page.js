// What the page says about itself: addresses, limits, texts. Everything comes from the server's markup.

const body = document.body.dataset;
const strings = JSON.parse(document.getElementById("strings").textContent);
const ANY_ID = "00000000-0000-0000-0000-000000000000";

export const page = {
  /** The conversation being shown; empty until the first message of a new one is accepted. */
  conversation: body.conversation,
  owner: body.owner,
  guest: body.guest === "true",
  maxChars: Number(body.maxChars),
  newUrl: body.newUrl,
  listUrl: body.listUrl,
  loginUrl: body.loginUrl,
  conversationUrl: (id) => body.conversationUrl.replace(ANY_ID, id),
  correctionsUrl: (id) => `${body.conversationUrl.replace(ANY_ID, id)}corrections/`,
  messageUrl: (id) => body.messageUrl.replace(ANY_ID, id),
};

/** The text called `key` in the reader's language, with {names} filled in; `otherwise` if there is none. */
export function say(key, values = {}, otherwise = key) {
  const text = strings[key] ?? otherwise;
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** What a person is told about an error frame. */
export function explain(frame) {
  return say(`error.${frame.code}`, {}, frame.message || say("error.internal"));
}

export const byId = (id) => document.getElementById(id);

/** A copy of the element in the template called `id`. */
export function clone(id) {
  return byId(id).content.firstElementChild.cloneNode(true);
}

/** Length as the server counts it: in characters, not in UTF-16 units. */
export function lengthOf(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
