// The newest events: a ring that grows with the log, pauses, and goes on without a gap.

/** The maximum number of events in memory. The log itself has all events. */
export const KEPT = 2_000;
const FLUSH_MS = 100;

/** @typedef {{shown: any[], held: number, isPaused: boolean, added: number, isCut: boolean}} View `added` is the number of events that the last change added on top, and `isCut` is whether the change dropped events at the end */

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
  /** Whether an older page is being read, which has to continue the list. */
  let isExtending = false;
  /** @type {number | undefined} */
  let timer;

  const tell = (/** @type {number} */ added, isCut = false) => changed({ shown, held: heldCount, isPaused, added, isCut });
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
  const put = (/** @type {any[]} */ fresh, isCut = false) => {
    // Older pages that were loaded by scrolling stay until the ring is full.
    const all = [...fresh, ...shown];
    shown = isExtending ? all : all.slice(0, Math.max(KEPT, shown.length));
    tell(fresh.length, isCut || shown.length < all.length);
  };

  return {
    /** Begins with a page, newest first. Events that came meanwhile are newer or known. @param {any[]} page */
    begin(page) {
      const last = page[0]?.position ?? 0;
      shown = [...shown.filter(({ position }) => position > last), ...page];
      newest = Math.max(newest, shown[0]?.position ?? 0);
      tell(0);
    },
    /** The position before which the next older page begins. */
    last: () => shown.at(-1)?.position,
    /** Keeps the end in place while the next older page is read. Returns the position before which the page begins. */
    hold() {
      isExtending = true;
      return shown.at(-1)?.position;
    },
    /** Lets the ring drop events again after a read that failed. */
    release() {
      isExtending = false;
    },
    /** Adds a page of older events at the end, unless the end is no longer where the page begins. @param {any[]} page @param {number} before */
    extend(page, before) {
      isExtending = false;
      if (shown.at(-1)?.position !== before) return false;
      shown = [...shown, ...page];
      tell(0);
      return true;
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
    /** Shows the held events. If there were more events than the ring holds, scrolling loads the older events again. */
    resume() {
      clearTimeout(timer);
      flush();
      isPaused = false;
      const fresh = held;
      const isCut = heldCount > held.length;
      if (isCut) shown = [];
      held = [];
      heldCount = 0;
      put(fresh, isCut);
    },
    stop() {
      clearTimeout(timer);
    },
  };
}
