// A histogram over time in which a period is brushed or a moment is chosen, by pointer and by keyboard.

import { html, useRef, useState } from "../vendor/ui.js";
import { clock, zoned } from "./clock.js";
import { loadStyle } from "./style.js";

loadStyle("scrubber");
const STEPS = 1_000;

/**
 * @typedef {object} Props
 * @property {string} label
 * @property {{at: string, count: number}[]} buckets in the order of time
 * @property {string} from the beginning of the histogram @property {string} to its end
 * @property {string} unit what is counted, such as `events`
 * @property {{from: string, to: string} | null} [range] the brushed period @property {(range: {from: string, to: string} | null) => void} [brush]
 * @property {string | null} [at] the chosen moment; null is the end @property {(at: string | null) => void} [scrub]
 */

/** @param {Props} props */
export function Scrubber({ label, buckets, from, to, unit, range = null, brush, at = null, scrub }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [drag, setDrag] = useState(/** @type {{start: number, end: number} | null} */ (null));
  const begin = Date.parse(from);
  const length = Math.max(1, Date.parse(to) - begin);
  const most = Math.max(1, ...buckets.map(({ count }) => count));
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  const time = (/** @type {number} */ share) => new Date(begin + share * length).toISOString();
  const share = (/** @type {string} */ when) => Math.min(1, Math.max(0, (Date.parse(when) - begin) / length));
  const shareAt = (/** @type {PointerEvent} */ event) => {
    const { left, width } = /** @type {HTMLElement} */ (box.current).getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - left) / width));
  };
  const down = (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    box.current?.setPointerCapture(event.pointerId);
    const start = shareAt(event);
    if (scrub) scrub(time(start));
    setDrag({ start, end: start });
  };
  const moved = (/** @type {PointerEvent} */ event) => {
    if (!drag) return;
    setDrag({ ...drag, end: shareAt(event) });
    if (scrub) scrub(time(shareAt(event)));
  };
  const up = () => {
    if (drag && brush) {
      const [first, last] = [drag.start, drag.end].sort((one, other) => one - other);
      // A click without a drag selects the bar under the pointer.
      const width = buckets.length ? 1 / buckets.length : 0.01;
      const isClick = last - first < 0.004;
      const low = isClick ? Math.floor(first / width) * width : first;
      brush({ from: time(low), to: time(Math.min(1, isClick ? low + width : last)) });
    }
    setDrag(null);
  };
  const chosen = drag && brush ? [Math.min(drag.start, drag.end), Math.max(drag.start, drag.end)] : range ? [share(range.from), share(range.to)] : null;
  const marker = scrub ? (at ? share(at) : 1) : null;
  const slide = (/** @type {"from" | "to"} */ side) => (/** @type {any} */ event) => {
    const value = time(Number(event.target.value) / STEPS);
    const next = { from: range?.from ?? from, to: range?.to ?? to, [side]: value };
    brush?.(next.from < next.to ? next : side === "from" ? { from: value, to } : { from, to: value });
  };
  return html`<div class="scrubber" role="group" aria-label=${label}>
    <div class="bars" ref=${box} onPointerDown=${down} onPointerMove=${moved} onPointerUp=${up} onPointerCancel=${() => setDrag(null)}>
      <svg role="img" aria-label=${`${total.toLocaleString("en")} ${unit} from ${clock(from)} to ${clock(to)}`} viewBox=${`0 0 ${Math.max(1, buckets.length)} 100`} preserveAspectRatio="none">
        ${buckets.map(({ at: when, count }, index) => count > 0 && html`<rect key=${when} x=${index + 0.08} width="0.84" y=${100 - Math.max(4, (count / most) * 100)} height=${Math.max(4, (count / most) * 100)}><title>${`${clock(when)}: ${count}`}</title></rect>`)}
      </svg>
      ${chosen && html`<div class="brush" style=${{ left: `${chosen[0] * 100}%`, width: `${(chosen[1] - chosen[0]) * 100}%` }}></div>`}
      ${marker !== null && html`<div class="mark" style=${{ left: `${marker * 100}%` }}></div>`}
    </div>
    <div class="ends"><span title=${zoned(from)}>${clock(from)}</span><span>${most.toLocaleString("en")} ${unit} at most a bar</span><span title=${zoned(to)}>${clock(to)}</span></div>
    ${brush && html`<div class="sliders">
      <input type="range" min="0" max=${STEPS} value=${Math.round((range ? share(range.from) : 0) * STEPS)} aria-label=${`${label}: from`} aria-valuetext=${clock(range?.from ?? from)} onChange=${slide("from")} />
      <input type="range" min="0" max=${STEPS} value=${Math.round((range ? share(range.to) : 1) * STEPS)} aria-label=${`${label}: to`} aria-valuetext=${clock(range?.to ?? to)} onChange=${slide("to")} />
    </div>`}
    ${scrub && html`<input type="range" class="moment-slider" min="0" max=${STEPS} value=${Math.round(Number(marker) * STEPS)} aria-label=${label} aria-valuetext=${at ? clock(at) : "now"}
      onInput=${(/** @type {any} */ event) => scrub(Number(event.target.value) >= STEPS ? null : time(Number(event.target.value) / STEPS))} />`}
  </div>`;
}
