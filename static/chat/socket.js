// One websocket, kept open: it comes back by itself, sooner at first, and a dead one is noticed.

const FIRST_DELAY = 400; // ms
const LONGEST_DELAY = 15_000;
const PING_EVERY = 20_000;
const DEAD_AFTER = 45_000; // two pings and a half without a word
const OPENS_WITHIN = 10_000; // a network that swallows packets would have the browser wait for minutes
const SETTLED_AFTER = 4_000; // a connection that lived this long resets the delay

/** Events: "open"; "frame" (detail: the frame); "state" (detail: {state, failures}). */
export class Connection extends EventTarget {
  /** client_ids that went out over the present connection. */
  sent = new Set();
  #socket = null;
  #failures = 0;
  #ended = false;
  #retry = 0;
  #heartbeat = 0;
  #heardAt = 0;

  start() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/ws/chat/`);
    this.#socket = socket;
    // One that was given up closes much later, when another is long in its place.
    const present = (act) => (event) => socket === this.#socket && act(event);
    socket.addEventListener("open", present(() => this.#opened()));
    socket.addEventListener("message", present((event) => this.#heard(event.data)));
    socket.addEventListener("close", present(() => this.#closed()));
    setTimeout(present(() => socket.readyState === WebSocket.CONNECTING && this.#drop()), OPENS_WITHIN);
    this.#announce("connecting");
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  get isEnded() {
    return this.#ended;
  }

  /** Whether the frame could be handed to the socket. */
  send(frame) {
    if (!this.isOpen) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** Doesn't wait for the next try: the network is back, or the person asked. */
  hurry() {
    if (this.isOpen) this.#beat();
    if (this.#ended || !this.#retry) return;
    clearTimeout(this.#retry);
    this.#retry = 0;
    this.start();
  }

  /** Closes for good. */
  end() {
    this.#ended = true;
    clearTimeout(this.#retry);
    this.#socket?.close();
  }

  #opened() {
    this.sent.clear();
    this.#heardAt = Date.now();
    const socket = this.#socket;
    setTimeout(() => {
      if (this.#socket === socket && this.isOpen) this.#failures = 0;
    }, SETTLED_AFTER);
    this.#heartbeat = setInterval(() => this.#beat(), PING_EVERY);
    this.#announce("open");
    this.dispatchEvent(new Event("open"));
  }

  #beat() {
    if (Date.now() - this.#heardAt > DEAD_AFTER) this.#drop();
    else this.send({ type: "ping" });
  }

  /** A dead peer doesn't answer the closing handshake either; the browser would wait for it. */
  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    socket.close();
    this.#closed();
  }

  #heard(data) {
    this.#heardAt = Date.now();
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    this.dispatchEvent(new CustomEvent("frame", { detail: frame }));
  }

  #closed() {
    clearInterval(this.#heartbeat);
    if (this.#ended || this.#retry) return;
    // Full jitter: a restarted server isn't met by all of its pages in the same instant.
    const ceiling = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** this.#failures);
    const delay = FIRST_DELAY / 2 + Math.random() * ceiling;
    this.#failures += 1;
    this.#retry = setTimeout(() => {
      this.#retry = 0;
      this.start();
    }, delay);
    this.#announce("waiting");
  }

  #announce(state) {
    this.dispatchEvent(new CustomEvent("state", { detail: { state, failures: this.#failures } }));
  }
}
