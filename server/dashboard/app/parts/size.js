// Sizes and shares as people read them.

import { html } from "../vendor/ui.js";

const UNITS = ["kB", "MB", "GB", "TB", "PB"];

/** A number of bytes, such as `1.4 MB`. @param {number | import("../api/json.js").ExactNumber} count */
export function bytes(count) {
  let size = Number(String(count));
  if (size < 1_000) return `${size} ${size === 1 ? "byte" : "bytes"}`;
  let unit = -1;
  while (size >= 1_000 && unit < UNITS.length - 1) { size /= 1_000; unit += 1; }
  return `${size.toLocaleString("en", { maximumFractionDigits: size < 100 ? 1 : 0 })} ${UNITS[unit]}`;
}

/** The usage of a limit. @param {{label: string, used: number, most: number | null, text?: (count: number) => string}} props */
export function Usage({ label, used, most, text = (count) => count.toLocaleString("en") }) {
  return html`<div class="usage"><span>${label}</span>
    <span>${text(used)}${most === null ? html` <span class="dim">no limit</span>` : ` of ${text(most)}`}</span>
    ${most !== null && html`<meter aria-label=${label} min="0" max=${Math.max(most, 1)} high=${most * 0.9} optimum="0" value=${used}></meter>`}</div>`;
}
