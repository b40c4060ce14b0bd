// What is held of each answer being written: its text and the number of the last piece of it. Pieces are
// numbered from 1 without a gap; one that is known already is dropped, and a gap is asked for again.

const SILENT_AFTER = 20_000; // ms without a word about an open answer before it is asked about
const ASK_AT_MOST = 9; // times in a row: an answer that nobody knows any more is given up after 3 minutes

/**
 * Events, each with {id}: "text" (and `added`, or null when the whole text was replaced), "done" (and the
 * frame).
 */
export class Generations extends EventTarget {
  #held = new Map();
  #connection;

  constructor(connection) {
    super();
    this.#connection = connection;
    setInterval(() => this.#askAboutSilent(), SILENT_AFTER / 4);
  }

  get(id) {
    return this.#held.get(id);
  }

  get open() {
    return [...this.#held].filter(([, held]) => !held.done).map(([id]) => id);
  }

  /** Starts to hold an answer; with `ask` the server is asked for all of it. */
  follow(id, { ask }) {
    if (!this.#held.has(id)) {
      this.#held.set(id, {
        text: "",
        seq: 0,
        done: null,
        stopping: false,
        gap: false,
        heardAt: Date.now(),
        asked: 0,
      });
    }
    if (ask) this.#resume(id);
  }

  /** Asks for the rest of every open answer: the connection is a new one. */
  resume() {
    for (const id of this.open) {
      if (this.#held.get(id).stopping) this.#sendStop(id);
      this.#resume(id);
    }
  }

  /** Stops an answer at what is on the screen now; pieces that arrive later are not shown. */
  stop(id) {
    const held = this.#held.get(id);
    if (!held || held.done || held.stopping) return;
    held.stopping = true;
    this.#sendStop(id);
  }

  /** Takes a frame about an answer; one that isn't followed yet is followed from here on. */
  take(frame) {
    const id = frame.generation;
    this.follow(id, { ask: false });
    const held = this.#held.get(id);
    held.heardAt = Date.now();
    held.asked = 0;
    if (held.done) return;
    if (frame.type === "generation.snapshot") this.#replace(id, held, frame);
    else if (frame.type === "generation.delta") this.#append(id, held, frame);
    else if (frame.type === "generation.done") {
      held.done = frame;
      this.#tell("done", { id, frame });
    }
  }

  #replace(id, held, frame) {
    if (held.stopping) return;
    held.text = frame.text;
    held.seq = frame.seq;
    held.gap = false;
    this.#tell("text", { id, added: null });
  }

  #append(id, held, frame) {
    if (held.stopping || frame.seq <= held.seq) return;
    if (frame.seq > held.seq + 1) {
      if (!held.gap) this.#resume(id);
      held.gap = true;
      return;
    }
    held.text += frame.text;
    held.seq = frame.seq;
    held.gap = false;
    this.#tell("text", { id, added: frame.text });
  }

  #sendStop(id) {
    this.#connection.send({ type: "generation.stop", generation: id, seen: this.#held.get(id).seq });
  }

  #resume(id) {
    const held = this.#held.get(id);
    held.heardAt = Date.now();
    this.#connection.send({ type: "generation.resume", generation: id, after: held.seq });
  }

  #askAboutSilent() {
    for (const id of this.open) {
      const held = this.#held.get(id);
      if (Date.now() - held.heardAt < SILENT_AFTER || held.asked >= ASK_AT_MOST) continue;
      held.asked += 1;
      this.#resume(id);
    }
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}
