// A list of any length of which only the visible rows are in the document.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";

const BEYOND = 6;
/** The maximum number of rows in the document, regardless of the height of the window. */
const MOST = 60;
/** The number of rows before the end at which the next page is requested. */
const AHEAD = 40;

/**
 * @param {{count: number, height: number, chosen: number, label: string, id: (index: number) => string | number, row: (index: number) => any, reachedEnd?: () => void, loaded?: number}} props
 * `height` is the height of a row in pixels. `id` identifies the content of a row, regardless of its place. The view
 * moves to the row `chosen` when another row is chosen, and not when rows are added before this row. Of `count` rows,
 * `loaded` rows are loaded. `reachedEnd` is called while the view is near or beyond the last loaded row.
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
