// A list of any length of which only the visible rows are in the document.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";

const BEYOND = 6;
/** The rows in the document at most, however high the window is. */
const MOST = 60;
/** How many rows before the end the next page is asked for. */
const AHEAD = 40;

/**
 * @param {{count: number, height: number, chosen: number, label: string, id: (index: number) => string | number, row: (index: number) => any, reachedEnd?: () => void, loaded?: number}} props
 * `height` is that of a row in pixels. `id` says what a row shows, wherever it stands. The view moves to the row `chosen`
 * when another one is chosen, and not when rows come before it. Of `count` rows, `loaded` are there already; `reachedEnd`
 * is called while the view is near the last of them or beyond it.
 */
export function Rows({ count, height, chosen, label, id, row, reachedEnd, loaded = count }) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState({ top: 0, size: 600 });
  const measure = () => {
    const list = element.current;
    if (list) setView({ top: list.scrollTop, size: list.clientHeight });
  };
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const list = element.current;
    if (!list || chosen < 0) return;
    if (chosen * height < list.scrollTop) list.scrollTop = chosen * height;
    else if ((chosen + 1) * height > list.scrollTop + list.clientHeight) list.scrollTop = (chosen + 1) * height - list.clientHeight;
  }, [chosen < 0 || chosen >= count ? null : id(chosen), height]);
  const first = Math.max(0, Math.floor(view.top / height) - BEYOND);
  const end = Math.min(count, first + MOST, Math.ceil((view.top + view.size) / height) + BEYOND);
  useEffect(() => { if (end + AHEAD >= loaded && count > 0) reachedEnd?.(); }, [end, loaded, count]);
  const shown = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
  return html`<div class="window" ref=${element} onScroll=${measure} role="list" aria-label=${label} tabindex="0">
    <div style=${{ height: `${count * height}px`, position: "relative" }}>
      ${shown.map((index) => html`<div key=${id(index)} role="listitem" aria-setsize=${count} aria-posinset=${index + 1} style=${{ position: "absolute", top: `${index * height}px`, height: `${height}px`, left: 0, right: 0 }}>${row(index)}</div>`)}
    </div>
  </div>`;
}
