// The newest events: a ring that grows with the log, pauses, and goes on without a gap.

/** The events that stay in memory. The log itself has them all. */
export const KEPT = 2_000;
const FLUSH_MS = 100;

/** @typedef {{shown: any[], held: number, isPaused: boolean, added: number}} View `added` counts what the last change put on top */

/**
 * A tail. Events come one by one, and a change is shown at most ten times a second.
 *
 * @param {(view: View) => void} changed
 */
export function createTail(changed) {
  /** All lists have the newest event first. @type {any[]} */
  let shown = [];
  /** @type {any[]} */
  let held = [];
  let heldCount = 0;
  let isPaused = false;
  /** @type {any[]} */
  let arrived = [];
  let newest = 0;
  /** @type {number | undefined} */
  let timer;

  const tell = (/** @type {number} */ added) => changed({ shown, held: heldCount, isPaused, added });
  const flush = () => {
    timer = undefined;
    const fresh = arrived.reverse();
    arrived = [];
    if (isPaused) {
      held = [...fresh, ...held].slice(0, KEPT);
      heldCount += fresh.length;
      return tell(0);
    }
    put(fresh);
  };
  const put = (/** @type {any[]} */ fresh) => {
    // Older pages that were loaded by scrolling stay until the ring is full.
    shown = [...fresh, ...shown].slice(0, Math.max(KEPT, shown.length));
    tell(fresh.length);
  };

  return {
    /** Begins with a page, newest first. Events that came meanwhile are newer or known. @param {any[]} page */
    begin(page) {
      const last = page[0]?.position ?? 0;
      shown = [...shown.filter(({ position }) => position > last), ...page];
      newest = Math.max(newest, shown[0]?.position ?? 0);
      tell(0);
    },
    /** Adds older events at the end. @param {any[]} page */
    extend(page) {
      const last = shown.at(-1)?.position ?? Infinity;
      shown = [...shown, ...page.filter(({ position }) => position < last)];
      tell(0);
    },
    /** @param {any} event */
    push(event) {
      if (event.position <= newest) return;
      newest = event.position;
      arrived.push(event);
      timer ??= setTimeout(flush, FLUSH_MS);
    },
    pause() {
      clearTimeout(timer);
      flush();
      isPaused = true;
      tell(0);
    },
    /** Shows what was held. If that was more than the ring holds, the older events are loaded again by scrolling. */
    resume() {
      clearTimeout(timer);
      flush();
      isPaused = false;
      const fresh = held;
      if (heldCount > held.length) shown = [];
      held = [];
      heldCount = 0;
      put(fresh);
    },
    stop() {
      clearTimeout(timer);
    },
  };
}
