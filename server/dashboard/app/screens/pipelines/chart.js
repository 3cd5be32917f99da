// The rows of a pipeline as a chart: lines over dates, and bars for everything else.

import { html, useMemo } from "../../vendor/ui.js";
import { ExactNumber, stringify } from "../../api/json.js";
import { change } from "../../state/route.js";
import { Empty, short } from "../../parts/basic.js";

/** The maximum number of bars in the document. The table has all rows. */
const BARS = 60;
/** The maximum number of points of a line. */
const POINTS = 2_000;
const DATE = /^\d{4}-\d\d(-\d\d([T ]\d\d:\d\d.*)?)?$/;
/** Number fields that every state has, which are the least informative. */
const COMMON = new Set(["_version", "_position", "version", "position"]);

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);

/** Returns a value as a number, or null. @param {any} value */
const numberOf = (value) => (typeof value === "number" ? value : value instanceof ExactNumber ? Number(value.text) : typeof value === "string" && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : null);

/** The fields of a row. The fields of an object, such as the `_id` of a group by several fields, count one by one. @param {any} row */
const flat = (row) => Object.fromEntries(Object.entries(row).flatMap(([name, value]) => (isObject(value) ? Object.entries(value).map(([inner, own]) => [`${name}.${inner}`, own]) : [[name, value]])));

/** @typedef {{name: string, kind: "number" | "date" | "text"}} Field */

/**
 * The rows and fields that a chart can show, or null if no field is a number.
 *
 * @param {any[]} rows
 * @returns {{rows: any[], numbers: string[], others: Field[]} | null}
 */
export function chartOf(rows) {
  if (rows.length === 0 || !rows.every(isObject)) return null;
  const flattened = rows.slice(0, POINTS).map(flat);
  /** @type {Field[]} */
  const fields = [...new Set(flattened.flatMap(Object.keys))].map((name) => {
    const values = flattened.map((row) => row[name]).filter((value) => value !== null && value !== undefined);
    const kind = values.length === 0 ? "text" : values.every((value) => typeof value === "string" && DATE.test(value)) ? "date" : values.every((value) => numberOf(value) !== null) ? "number" : "text";
    return { name, kind };
  });
  const numbers = fields.filter(({ name, kind }) => kind === "number" && name !== "_id" && !name.startsWith("_id.")).map(({ name }) => name);
  const rank = (/** @type {string} */ name) => (COMMON.has(name) ? 1 : 0);
  if (numbers.length === 0) return null;
  return { rows: flattened, numbers: numbers.toSorted((one, other) => rank(one) - rank(other)), others: fields.filter(({ name }) => !numbers.includes(name)) };
}

/** The field that distinguishes the rows: a date, the identity of a group, or a name. @param {Field[]} others */
const axisOf = (others) => [others.find(({ name, kind }) => kind === "date" && name.startsWith("_id")), others.find(({ name }) => ["title", "name"].includes(name)), others.find(({ name }) => name.startsWith("_id")), others.find(({ kind }) => kind === "date"), others[0]].find(Boolean) ?? null;

/** @param {{rows: any[], query: URLSearchParams}} props */
export function Chart({ rows, query }) {
  const found = useMemo(() => chartOf(rows), [rows]);
  if (!found) return html`<${Empty}>No field of these rows is a number. A group with a count or a sum has one.<//>`;
  const y = found.numbers.find((name) => name === query.get("y")) ?? found.numbers[0];
  const axis = found.others.find(({ name }) => name === query.get("x")) ?? axisOf(found.others);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => change({ [name]: event.target.value }, { replace: true });
  const choose = (/** @type {string} */ label, /** @type {string} */ name, /** @type {string[]} */ options, /** @type {string} */ value) => options.length > 1 && html`<label>${label} <select value=${value} onChange=${set(name)}>${options.map((option) => html`<option key=${option}>${option}</option>`)}</select></label>`;
  const points = found.rows.map((row, index) => ({ label: axis ? textOf(row[axis.name]) : String(index + 1), value: numberOf(row[y]), text: told(row[y]) })).filter(({ value }) => value !== null);
  return html`<div class="chart"><div class="bar">${choose("Number", "y", found.numbers, y)}${choose("by", "x", found.others.map(({ name }) => name), axis?.name ?? "")}</div>
    ${axis?.kind === "date" ? html`<${Line} points=${points} name=${y} />` : html`<${Bars} points=${points} name=${y} />`}
    ${rows.length > POINTS && html`<p class="dim">The chart has the first ${POINTS.toLocaleString("en")} rows.</p>`}</div>`;
}

/** @param {any} value */
const textOf = (value) => (typeof value === "string" ? value : value === null || value === undefined ? "none" : short(stringify(value) ?? "", 80));

/** A number formatted for people. A number that a double cannot represent keeps its digits. @param {any} value */
function told(value) {
  const number = Number(String(value));
  return typeof value === "number" || String(number) === String(value) ? number.toLocaleString("en", { maximumFractionDigits: 2 }) : String(value);
}

/** @param {{points: {label: string, value: any, text: string}[], name: string}} props */
function Bars({ points, name }) {
  const shown = points.slice(0, BARS);
  const low = Math.min(0, ...shown.map(({ value }) => value)), high = Math.max(0, ...shown.map(({ value }) => value));
  const span = high - low || 1;
  return html`<ol class="plain bars-of" aria-label=${`${name}, ${shown.length} bars`}>${shown.map(({ label, value, text }, index) => html`<li key=${index}>
      <span class="grow" title=${label}><bdi>${label}</bdi></span><span class="space-of" aria-hidden="true"><i style=${{ insetInlineStart: `${((Math.min(0, value) - low) / span) * 100}%`, width: `${(Math.abs(value) / span) * 100}%` }}></i></span><span class="number">${text}</span></li>`)}</ol>
    ${points.length > BARS && html`<p class="dim">The first ${BARS} of ${points.length.toLocaleString("en")} rows are drawn.</p>`}`;
}

const WIDTH = 1_000, HEIGHT = 260;

/** @param {{points: {label: string, value: any, text: string}[], name: string}} props */
function Line({ points, name }) {
  const timed = points.map((point) => ({ ...point, at: Date.parse(point.label) })).filter(({ at }) => !Number.isNaN(at)).toSorted((one, other) => one.at - other.at);
  if (timed.length === 0) return html`<${Empty}>No row has a date.<//>`;
  const first = timed[0], last = timed[timed.length - 1];
  const low = Math.min(0, ...timed.map(({ value }) => value)), high = Math.max(0, ...timed.map(({ value }) => value));
  const x = (/** @type {number} */ at) => (first.at === last.at ? WIDTH / 2 : ((at - first.at) / (last.at - first.at)) * WIDTH);
  const y = (/** @type {number} */ value) => HEIGHT - ((value - low) / (high - low || 1)) * HEIGHT;
  const line = timed.map(({ at, value }) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return html`<figure class="line-of"><div class="dim number"><span>${told(high)}</span><span>${told(low)}</span></div>
    <svg role="img" aria-label=${`${name} from ${first.label} to ${last.label}: ${timed.length} points between ${told(Math.min(...timed.map(({ value }) => value)))} and ${told(Math.max(...timed.map(({ value }) => value)))}`} viewBox=${`-6 -6 ${WIDTH + 12} ${HEIGHT + 12}`} preserveAspectRatio="none">
      <line class="zero" x1="0" x2=${WIDTH} y1=${y(0)} y2=${y(0)} /><polyline points=${line} />
      ${timed.length <= BARS && timed.map(({ at, label, value, text }, index) => html`<line class="point" key=${index} x1=${x(at)} x2=${x(at)} y1=${y(value)} y2=${y(value)}><title>${`${label}: ${text}`}</title></line>`)}</svg>
    <figcaption class="dim"><span>${first.label}</span><span>${last.label}</span></figcaption></figure>`;
}
