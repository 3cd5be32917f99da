// The rows of a pipeline: as a table, as JSON, as a chart, as a file, or as the differences between two moments.

import { html, useMemo, useState } from "../../vendor/ui.js";
import { stringify } from "../../api/json.js";
import { compareRows } from "../../state/compare.js";
import { change } from "../../state/route.js";
import { Copy, Empty, label, Link, short } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { Export } from "../../parts/export.js";
import { lazy } from "../../parts/lazy.js";
import { Table } from "../../parts/table.js";
import { Value } from "../../parts/value.js";
import { milliseconds } from "./card.js";
import { Chart, chartOf } from "./chart.js";

const Compared = lazy(() => import("../../parts/compared.js").then((module) => module.Compared));
const COLUMNS = 12;
/** The maximum number of shown lines of JSON. The table has all rows. */
const LINES = 100_000;
const LINE = 20;

/** The row in one line: its name, or its group. @param {any} row */
const title = (row) => html`<bdi>${(isObject(row) && (label(row) || (row.event_type ? `${row.event_type} of ${row.aggregate_id}` : group(row._id)))) || short(stringify(row) ?? "", 160)}</bdi>`;

/** The values by which rows are grouped, in words. @param {any} id */
const group = (id) => (typeof id === "string" ? id : isObject(id) ? Object.entries(id).map(([name, value]) => `${name}: ${typeof value === "string" ? value : stringify(value)}`).join(", ") : "");

/** @param {any} row */
const isObject = (row) => typeof row === "object" && row !== null && !Array.isArray(row);

/**
 * @param {{result: any, rows: any[], before: any[] | null, ms: number, more: (() => void) | null, isStale: boolean, query: URLSearchParams, name: string,
 *   cursor: string | null, page: (cursor: string) => Promise<{rows: any[], next: string | null}>}} props
 * `name` is the name of exported files, and `page` reads the rows after `cursor`.
 */
export function Results({ result, rows, before, ms, more, isStale, query, name, cursor, page }) {
  const isChartable = useMemo(() => chartOf(rows) !== null, [rows]);
  const view = query.get("as") ?? "table";
  const tabs = [["table", "Table"], ["json", "JSON"], ...(isChartable || view === "chart" ? [["chart", "Chart"]] : [])];
  const show = (/** @type {string} */ next) => change({ as: next === "table" ? null : next }, { replace: true });
  return html`<section class=${`results ${isStale ? "stale" : ""}`} aria-label="Results">
    <header class="bar"><h2>Results</h2>
      <span class="dim" role="status">${rows.length.toLocaleString("en")}${more ? "+" : ""} ${rows.length === 1 ? "row" : "rows"} in ${milliseconds(ms)}${isStale ? ", of the run before the last change" : ""}</span>
      ${!before && html`<div class="tabs" role="tablist" aria-label="Form of the results">${tabs.map(([form, text]) => html`<button role="tab" aria-selected=${view === form} onClick=${() => show(form)}>${text}</button>`)}</div>`}
      <${Copy} text=${() => stringify(rows, 2)}>copy JSON<//>
      <${Export} name=${name} rows=${rows} cursor=${cursor} next=${page} />
    </header>
    ${result.warnings?.map((/** @type {string} */ warning) => html`<p class="banner" key=${warning}>${warning}</p>`)}
    ${before ? html`<${Compared} result=${compareRows(before, rows)} title=${title} label="What differs" />`
      : rows.length === 0 ? html`<${Empty}>No row came out of the last stage.<//>`
      : view === "chart" ? html`<${Chart} rows=${rows} query=${query} />`
      : view === "json" ? html`<${Json} rows=${rows} more=${more} />` : html`<${Rows} rows=${rows} more=${more} />`}
  </section>`;
}

/** @param {{rows: any[], more: (() => void) | null}} props */
function Rows({ rows, more }) {
  const [opened, setOpened] = useState(/** @type {any} */ (null));
  const isTable = useMemo(() => rows.every(isObject), [rows]);
  const all = useMemo(() => (isTable ? columns(rows) : ["value"]), [rows]);
  const names = all.slice(0, COLUMNS);
  const cell = (/** @type {any} */ row, /** @type {string} */ name) => (isTable ? row[name] : row);
  return html`<${Table} class="result-rows" label="Rows" width=${`${3 + names.length * 7.5}rem`} count=${rows.length} reachedEnd=${more ?? undefined}
      head=${html`<th class="narrow"><span class="hidden">Whole row</span></th>${names.map((name) => html`<th key=${name} title=${name}>${name}</th>`)}`}
      row=${(/** @type {number} */ index) => html`<tr key=${index} aria-rowindex=${index + 2}>
        <td class="narrow"><button class="quiet" aria-label=${`Show row ${index + 1}`} onClick=${() => setOpened(rows[index])}>▸</button></td>
        ${names.map((name) => html`<td key=${name}><${Cell} name=${name} row=${rows[index]} value=${cell(rows[index], name)} /></td>`)}</tr>`} />
    ${all.length > COLUMNS && html`<p class="dim">${all.length - COLUMNS} more fields are in each row: ${short(all.slice(COLUMNS).join(", "), 200)}</p>`}
    ${opened !== null && html`<${Dialog} title="Row" class="wide" close=${() => setOpened(null)}>
      ${isObject(opened) && typeof opened._id === "string" && opened.aggregate_type && html`<p><${Link} to=${`/a/${encodeURIComponent(opened._id)}`}>Open the aggregate<//></p>`}
      <${Value} value=${opened} /><${Copy} text=${() => stringify(opened, 2)}>copy JSON<//><//>`}`;
}

/** The fields that every state has, which come after its own fields. */
const COMMON = ["aggregate_type", "project_id", "_version", "_position", "_created_at", "_last_event_at", "_traits"];

/** The names of the columns: the identity, the fields of the rows, and last the fields that every state has. @param {any[]} rows */
function columns(rows) {
  const found = [...new Set(rows.slice(0, 500).flatMap((row) => Object.keys(row)))].filter((name) => name !== "_facts");
  const rank = (/** @type {string} */ name) => (name === "_id" ? -1 : COMMON.indexOf(name) + 1);
  return found.toSorted((one, other) => rank(one) - rank(other));
}

/** @param {{name: string, row: any, value: any}} props */
function Cell({ name, row, value }) {
  if (value === undefined) return null;
  if (name === "_id" && typeof value === "string" && row._version !== undefined) return html`<${Link} to=${`/a/${encodeURIComponent(value)}`}><bdi>${short(value, 60)}</bdi><//>`;
  if (typeof value === "number") return html`<span class="number">${value}</span>`;
  return html`<bdi>${typeof value === "string" ? short(value.replace(/\s+/g, " "), 120) : short(stringify(value) ?? "", 120)}</bdi>`;
}

/** @param {{rows: any[], more: (() => void) | null}} props */
function Json({ rows, more }) {
  const lines = (stringify(rows, 2) ?? "").split("\n", LINES);
  return html`<${Table} class="result-rows json" label="Rows as JSON" count=${lines.length} height=${LINE} reachedEnd=${more ?? undefined} head=${html`<th class="hidden">JSON</th>`}
    row=${(/** @type {number} */ index) => html`<tr key=${index} aria-rowindex=${index + 2}><td><code>${short(lines[index], 2_000)}</code></td></tr>`} />`;
}
