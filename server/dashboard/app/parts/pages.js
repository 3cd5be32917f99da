// Lists that are read page by page: the next page at their end, and a new read after changes, which keeps the reader's place.

import { html, useRef, useState } from "../vendor/ui.js";
import { useLive, useLoad } from "./load.js";

/** @typedef {{rows: any[], next: string | null, count?: number}} Page `next` is the cursor of the next page, and `count` is the number of pages that are combined */

/**
 * Reads a list like `useLoad`. The value has the rows of all pages that were read, and the other fields of the first
 * page. While the list has one page, events cause a new read. With more pages, events are only counted, because a new
 * read of a long list needs many requests.
 *
 * @template {Page} T
 * @param {(cursor: string | null, abort: AbortSignal) => Promise<T>} read a page, the first one without a cursor
 * @param {any[]} dependencies
 * @param {((event: any) => boolean) | null} [concerns] the events that change the list, or null @param {number} [wait] as for `useLive`
 */
export function usePages(read, dependencies, concerns = null, wait = 0) {
  const isStale = useRef(false);
  /** The number of pages that the reader has scrolled to. */
  const wanted = useRef(1);
  const [behind, setBehind] = useState(0);
  const list = useLoad(async (abort, /** @type {T | undefined} */ shown) => {
    if (shown && !isStale.current) {
      // The end was reached again before the next page arrived.
      if (!shown.next || (shown.count ?? 1) >= wanted.current) return shown;
      const page = await read(shown.next, abort);
      return { ...shown, rows: [...shown.rows, ...page.rows], next: page.next, count: (shown.count ?? 1) + 1 };
    }
    if (!shown) wanted.current = 1;
    isStale.current = false;
    setBehind(0);
    try {
      return await all(abort);
    } catch (error) {
      // The pages that are shown are as stale as before.
      if (!abort.aborted) isStale.current = true;
      throw error;
    }
  }, dependencies);
  /** Reads the pages that the reader has scrolled to. @param {AbortSignal} abort @returns {Promise<T>} */
  async function all(abort) {
    const found = /** @type {any} */ ({ ...(await read(null, abort)), count: 1 });
    for (; found.next && found.count < wanted.current; found.count += 1) {
      const page = await read(found.next, abort);
      found.rows = [...found.rows, ...page.rows];
      found.next = page.next;
    }
    return found;
  }
  const { value, error, isLoading } = list;
  const reload = () => { isStale.current = true; list.reload(); };
  const more = () => {
    if (!value?.next) return;
    wanted.current = (value.count ?? 1) + 1;
    list.reload();
  };
  useLive((events) => { if ((value?.count ?? 1) > 1) setBehind((before) => before + events); else reload(); }, concerns, wait);
  return { value, rows: /** @type {any[]} */ (value?.rows ?? []), error, isLoading, behind, reload, more };
}

/** Reads a long list again. The pressed button disappears, so the focus moves to the screen. @param {() => void} reload */
function showAll(reload) {
  document.getElementById("main")?.focus({ preventScroll: true });
  reload();
}

/** Shows the number of events that a long list does not include yet. @param {{list: {behind: number, reload: () => void}}} props */
export const Behind = ({ list: { behind, reload } }) => (behind > 0 && html`<p class="banner" role="status">${behind.toLocaleString("en")} ${behind === 1 ? "change" : "changes"} since this list was read. <button class="quiet" onClick=${() => showAll(reload)}>Show</button></p>`);
