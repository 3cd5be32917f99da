// A table of any length of which only the visible rows are in the document.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { loadStyle } from "./style.js";

loadStyle("table");
const BEYOND = 4;
/** The maximum number of rows in the document, regardless of the height of the window. */
const MOST = 60;
const ROW = 32;

/**
 * @param {{count: number, label: string, head: any, row: (index: number) => any, height?: number | ((index: number) => number),
 *   class?: string, width?: string, reachedEnd?: () => void, scroll?: {current: HTMLElement | null}, onScroll?: (top: number) => void}} props
 * `head` has the cells of the head. `row` returns a `<tr>`. `height` is the height of a row in pixels, and `width` is
 * the minimum width of the table. `scroll` gets the element that scrolls.
 */
export function Table({ count, label, head, row, height = ROW, class: name = "", width, reachedEnd, scroll, onScroll }) {
  const own = useRef(/** @type {HTMLElement | null} */ (null));
  const element = scroll ?? own;
  const [view, setView] = useState({ top: 0, size: 600 });
  const measure = () => {
    const box = element.current;
    if (!box) return;
    setView((before) => (before.top === box.scrollTop && before.size === box.clientHeight ? before : { top: box.scrollTop, size: box.clientHeight }));
    onScroll?.(box.scrollTop);
  };
  useLayoutEffect(() => {
    measure();
    const observer = new ResizeObserver(measure);
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  const { first, end, above, below } = visible(count, height, view);
  useEffect(() => { if (end >= count && count > 0) reachedEnd?.(); }, [end, count]);
  const shown = Array.from({ length: Math.max(0, end - first) }, (_, index) => first + index);
  return html`<div class=${`window ${name}`} ref=${element} onScroll=${measure} tabindex="0" role="region" aria-label=${label}>
    <table class="rows windowed" style=${{ minWidth: width }} aria-rowcount=${count + 1}>
      <thead><tr aria-rowindex="1">${head}</tr></thead>
      <tbody>
        ${above > 0 && html`<tr key="above" aria-hidden="true"><td class="space" style=${{ height: `${above}px` }}></td></tr>`}
        ${shown.map(row)}
        ${below > 0 && html`<tr key="below" aria-hidden="true"><td class="space" style=${{ height: `${below}px` }}></td></tr>`}
      </tbody>
    </table>
  </div>`;
}

/** The rows in view, and the heights of the parts above and below these rows. @param {number} count @param {number | ((index: number) => number)} height @param {{top: number, size: number}} view */
function visible(count, height, { top, size }) {
  if (typeof height === "number") {
    const first = Math.max(0, Math.min(Math.floor(top / height) - BEYOND, count));
    const end = Math.min(count, first + MOST, Math.ceil((top + size) / height) + BEYOND);
    return { first, end, above: first * height, below: (count - end) * height };
  }
  let first = 0, above = 0, end = 0, total = 0;
  for (let index = 0; index < count; index += 1) {
    const own = height(index);
    if (total + own <= top - BEYOND * ROW) { first = index + 1; above = total + own; }
    if (total < top + size + BEYOND * ROW && index < first + MOST) end = index + 1;
    total += own;
  }
  let below = 0;
  for (let index = end; index < count; index += 1) below += height(index);
  return { first, end, above, below };
}
