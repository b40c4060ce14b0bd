// The transcript keeps to its end while the reader is there, and stays where it is once they scrolled up.

import { byId } from "./page.js";

const NEAR = 80; // px from the end that still count as the end

export class Scroll {
  #scroller = byId("scroller");
  #jump = byId("jump");
  #pinned = true;
  #top = 0;
  #frame = 0;

  constructor() {
    this.#scroller.addEventListener("scroll", () => this.#moved(), { passive: true });
    // The column grows with every token, the scroller shrinks with the composer.
    const observer = new ResizeObserver(() => this.follow());
    observer.observe(this.#scroller);
    observer.observe(this.#scroller.firstElementChild);
  }

  get #distance() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  /** Only going up lets go of the end: growing text makes the distance long too. */
  #moved() {
    const top = this.#scroller.scrollTop;
    if (this.#distance < NEAR) this.#pinned = true;
    else if (top < this.#top) this.#pinned = false;
    this.#top = top;
    this.#showJump();
  }

  #showJump() {
    this.#jump.hidden = this.#pinned || this.#distance < NEAR * 2;
  }

  /** To the end, if the reader is there. */
  follow() {
    this.#showJump();
    if (!this.#pinned || this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      if (this.#pinned) this.#scroller.scrollTop = this.#scroller.scrollHeight;
    });
  }

  toEnd() {
    this.#pinned = true;
    this.follow();
  }

  release() {
    this.#pinned = false;
  }
}
