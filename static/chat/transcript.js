// The messages on the page. While an answer is being written it is a text node; once it is finished the
// server's rendering takes its place.

import { announce, toast } from "./announce.js";
import { growToFit } from "./composer.js";
import { byId, clone, explain, page, say } from "./page.js";

const OPEN = ':is([data-status="pending"], [data-status="running"])';
const AGAIN_AFTER = 400; // ms; the answer's row may be a moment behind the frame that says it is done
const TRIES = 5;

export class Transcript {
  #root = byId("transcript");
  #unsent = byId("unsent");
  #outbox;
  #generations;
  #scroll;
  #edits = [];
  #unplaced = false; // a correction's line came before its question was on the page
  /** Called when the number of open answers or of unsent messages may have changed. */
  changed = () => {};

  constructor({ outbox, generations, scroll }) {
    this.#outbox = outbox;
    this.#generations = generations;
    this.#scroll = scroll;
    generations.addEventListener("text", ({ detail }) => this.#paint(detail.id, detail.added));
    generations.addEventListener("done", ({ detail }) => this.#finish(detail.id, detail.frame));
    outbox.addEventListener("change", () => this.showUnsent());
    this.#root.addEventListener("htmx:beforeSwap", (event) => this.#rememberEdits(event.target));
    this.#root.addEventListener("htmx:load", (event) => this.adopt(event.target));
    this.#root.addEventListener("htmx:afterSettle", (event) => this.#settled(event));
  }

  get isEmpty() {
    return !this.#root.querySelector("article") && !this.#unsent.childElementCount;
  }

  /** The id of the newest answer that is being written here; undefined if none is. */
  get writing() {
    return [...this.#root.querySelectorAll(`article${OPEN}`)].at(-1)?.dataset.generation;
  }

  /** Whether a question is on its way and not accepted yet. */
  get sending() {
    return this.#unsent.querySelector("article:not(.failed)") !== null;
  }

  get lastQuestion() {
    return [...this.#root.querySelectorAll('article[data-role="user"]')].at(-1);
  }

  // --- what came from the server ----------------------------------------------------------------

  /** Completes markup from the server: copy buttons, and open answers are followed. */
  adopt(element) {
    for (const head of element.querySelectorAll(".code-head:not(:has(button))")) {
      head.append(clone("copy-code-template"));
    }
    const open = element.matches(`article${OPEN}`) ? [element] : element.querySelectorAll(`article${OPEN}`);
    for (const article of open) this.#follow(article);
    this.changed();
  }

  #follow(article) {
    const id = article.dataset.generation;
    const held = this.#generations.get(id);
    if (held?.done) this.#finish(id, held.done);
    else if (held) this.#paint(id, null);
    else this.#generations.follow(id, { ask: true });
  }

  /** Fetches the branch being shown anew: it grew in another tab, or branched. */
  async reload() {
    const whole = this.#root.querySelector(".earlier") ? "" : "?all=1";
    await htmx.ajax("GET", page.conversationUrl(page.conversation) + whole, {
      target: this.#root,
      swap: "innerHTML",
    });
  }

  /** After a connection came back: what finished meanwhile is fetched, what is open is followed. */
  catchUp() {
    for (const article of this.#root.querySelectorAll(`article${OPEN}`)) this.#follow(article);
  }

  /** The branch being shown ends in the message `leaf`: what another tab wrote meanwhile is fetched. */
  reach(leaf) {
    if (leaf && page.conversation && !byId(`m-${leaf}`)) this.reload();
  }

  #settled(event) {
    this.#reopenEdits();
    const switched = event.detail.requestConfig?.path.match(/([0-9a-f-]{36})\/branch\//);
    const article = switched && byId(`m-${switched[1]}`);
    if (!article) return;
    this.#scroll.release();
    article.scrollIntoView({ block: "nearest" });
    article.querySelector(".siblings button:not(:disabled)")?.focus();
  }

  /** Puts the line under each question that was read as taking something back, where it is not there yet. */
  async showCorrections() {
    let response;
    try {
      response = await fetch(page.correctionsUrl(page.conversation), { headers: { "HX-Request": "true" } });
    } catch {
      return; // no connection; the page says it once it is loaded anew
    }
    if (!response.ok) return;
    const template = document.createElement("template");
    template.innerHTML = await response.text();
    this.#unplaced = false;
    for (const line of template.content.querySelectorAll(".correction")) {
      const question = byId(`m-${line.dataset.message}`);
      if (!question) this.#unplaced = true;
      if (!question || byId(line.id)) continue;
      question.append(line);
      htmx.process(line);
      announce(line.innerText);
    }
    this.#scroll.follow();
  }

  // --- an answer being written ------------------------------------------------------------------

  #article(generation) {
    return this.#root.querySelector(`article[data-generation="${CSS.escape(generation)}"]`);
  }

  #paint(id, added) {
    const article = this.#article(id);
    const body = article?.querySelector(".stream");
    if (!body) return;
    const text = this.#generations.get(id).text;
    if (article.dataset.started !== "true" && text) {
      article.dataset.started = "true";
      announce(say("started"));
    }
    if (added !== null && body.firstChild) body.firstChild.appendData(added);
    else if (text) body.textContent = text;
    this.#scroll.follow();
  }

  async #finish(id, frame) {
    const article = this.#article(id);
    if (!article) return;
    const done = await this.#refresh(article);
    if (!done) return;
    const outcome = { complete: "finished", stopped: "stopped" }[frame.status] ?? "ended_early";
    const said = done.querySelector(".body")?.innerText ?? "";
    const note = done.querySelector(".note p")?.innerText ?? "";
    announce([say(outcome), said, note].filter(Boolean).join(" "));
  }

  /** Puts the server's rendering in place of a finished answer; returns it, or undefined if it can't be had. */
  async #refresh(article, tries = TRIES) {
    const id = article.dataset.message;
    const focused = article.contains(document.activeElement);
    let response;
    try {
      response = await fetch(page.messageUrl(id), { headers: { "HX-Request": "true" } });
    } catch {
      return undefined; // no connection; catchUp() comes back to it
    }
    if (!response.ok || !article.isConnected) return undefined;
    const fresh = parse(await response.text());
    if (fresh.matches(OPEN)) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER));
      return tries ? this.#refresh(article, tries - 1) : undefined;
    }
    article.replaceWith(fresh);
    htmx.process(fresh);
    this.adopt(fresh);
    if (focused) byId("text").focus();
    this.#scroll.follow();
    return fresh;
  }

  // --- sending ----------------------------------------------------------------------------------

  /** Shows what is on its way, or was refused, under the transcript. */
  showUnsent() {
    const here = this.#outbox.items.filter((item) => this.#belongsHere(item));
    const wanted = new Set(here.map((item) => item.clientId));
    for (const bubble of [...this.#unsent.children]) {
      if (!wanted.has(bubble.dataset.clientId)) bubble.remove();
    }
    for (const item of here) this.#showDelivery(this.#bubble(item), item);
    if (here.length) this.#scroll.follow();
    this.changed();
  }

  #belongsHere(item) {
    if (item.frame.text === undefined || item.conversation !== page.conversation) return false;
    // A new conversation begins in one tab; what was refused must be seen in some tab.
    if (!item.conversation && !this.#outbox.isOwn(item) && item.state !== "refused") return false;
    return !this.#editorOf(item.clientId);
  }

  #bubble(item) {
    const selector = `[data-client-id="${CSS.escape(item.clientId)}"]`;
    const known = this.#unsent.querySelector(selector);
    if (known) return known;
    const bubble = clone("question-template");
    bubble.dataset.clientId = item.clientId;
    bubble.querySelector(".bubble").textContent = item.frame.text;
    this.#unsent.append(bubble);
    return bubble;
  }

  #showDelivery(bubble, item) {
    const refused = item.state === "refused";
    bubble.classList.toggle("failed", refused);
    bubble.querySelector(".delivery-choices").hidden = !refused;
    const text = refused ? item.error : say(this.online ? "sending" : "waiting");
    const line = bubble.querySelector(".delivery-text");
    if (line.textContent !== text) line.textContent = text;
  }

  /** Whether the connection stands; says "sending" or "waiting" under what is unsent. */
  online = false;

  /** The server has taken `item` (undefined: another tab's) on; `frame` names what it became. */
  async accepted(frame, item) {
    this.#generations.follow(frame.generation, { ask: !item || item.attempts > 1 });
    const bubble = item && this.#unsent.querySelector(`[data-client-id="${CSS.escape(item.clientId)}"]`);
    const plain = item?.frame.type === "message.send" && !byId(`m-${frame.message}`);
    if (plain) this.#confirm(frame, bubble ?? this.#detached(item));
    else {
      bubble?.remove();
      await this.reload();
      if (this.#unplaced) this.showCorrections();
    }
    this.#paint(frame.generation, null);
    this.changed();
  }

  #detached(item) {
    const bubble = clone("question-template");
    bubble.querySelector(".bubble").textContent = item.frame.text;
    return bubble;
  }

  /** A bubble becomes a message, with an empty answer under it. */
  #confirm(frame, bubble) {
    bubble.classList.remove("unsent", "failed");
    bubble.querySelector(".delivery").remove();
    bubble.querySelector(".actions").hidden = false;
    bubble.id = `m-${frame.message}`;
    bubble.dataset.message = frame.message;
    delete bubble.dataset.clientId;
    const answer = clone("answer-template");
    answer.id = `m-${frame.reply}`;
    answer.dataset.message = frame.reply;
    answer.dataset.generation = frame.generation;
    this.#root.append(bubble, answer);
    this.#scroll.follow();
  }

  /** Nothing came of a request: an editor gets its text back, anything else stays under the transcript. */
  refused(item, frame) {
    const why = explain(frame);
    const editor = this.#editorOf(item.clientId);
    if (item.frame.text === undefined || editor) this.#outbox.take(item.clientId);
    else this.#outbox.refuse(item.clientId, why);
    for (const article of this.#root.querySelectorAll(".stale")) article.classList.remove("stale");
    if (editor) this.#unlock(editor, why);
    else if (item.frame.text === undefined) toast(why);
    else announce(why);
  }

  // --- asking again, asking differently ---------------------------------------------------------

  regenerate(article) {
    const message = article.dataset.message;
    const asked = ({ frame }) => frame.type === "message.regenerate" && frame.message === message;
    if (this.#outbox.items.some(asked)) return;
    this.#fadeFrom(article);
    this.#outbox.add({ type: "message.regenerate", message });
  }

  #fadeFrom(article) {
    for (let later = article; later; later = later.nextElementSibling) later.classList.add("stale");
  }

  edit(article, text = article.querySelector(".bubble").textContent) {
    if (article.querySelector(".editor")) return;
    const editor = clone("editor-template");
    const area = editor.querySelector("textarea");
    area.id = `edit-${article.dataset.message}`;
    editor.querySelector("label").htmlFor = area.id;
    area.value = text;
    area.addEventListener("input", () => growToFit(area));
    editor.addEventListener("submit", (event) => this.#submit(event, article, editor));
    this.#hideUnderEditor(article, true);
    article.append(editor);
    growToFit(area);
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }

  cancelEdit(editor) {
    const article = editor.closest("article");
    editor.remove();
    this.#hideUnderEditor(article, false);
    byId("text").focus();
  }

  #hideUnderEditor(article, hidden) {
    article.querySelector(".bubble").hidden = hidden;
    article.querySelector(".actions").hidden = hidden;
  }

  #submit(event, article, editor) {
    event.preventDefault();
    const area = editor.querySelector("textarea");
    if (!area.value.trim() || area.readOnly) return;
    area.readOnly = true;
    editor.querySelector(".field-error").hidden = true;
    for (let later = article.nextElementSibling; later; later = later.nextElementSibling) {
      later.classList.add("stale");
    }
    const frame = { type: "message.edit", message: article.dataset.message, text: area.value };
    const item = this.#outbox.prepare(frame);
    editor.dataset.clientId = item.clientId; // before it goes out, so that no second bubble is drawn
    this.#outbox.put(item);
  }

  #editorOf(clientId) {
    return this.#root.querySelector(`.editor[data-client-id="${CSS.escape(clientId)}"]`);
  }

  #unlock(editor, why) {
    delete editor.dataset.clientId;
    editor.querySelector("textarea").readOnly = false;
    const line = editor.querySelector(".field-error");
    line.textContent = why;
    line.hidden = false;
  }

  /** What is being edited outlives a transcript that is fetched anew meanwhile. */
  #rememberEdits(target) {
    if (target !== this.#root) return;
    const open = [...this.#root.querySelectorAll(".editor:not([data-client-id])")];
    this.#edits = open.map((editor) => ({
      id: editor.closest("article").id,
      text: editor.querySelector("textarea").value,
    }));
  }

  #reopenEdits() {
    for (const { id, text } of this.#edits.splice(0)) {
      const article = byId(id);
      if (article) this.edit(article, text);
    }
  }
}

function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.querySelector("article");
}
