// Downloads of rows: as CSV, which spreadsheets open, and as NDJSON, which keeps every value unchanged.

import { html, useState } from "../vendor/ui.js";
import { ExactNumber, stringify } from "../api/json.js";
import { complain, say } from "../state/toasts.js";

/** The maximum number of rows of a download, so that a page does not run out of memory. */
const MOST = 100_000;
/** The time for which a browser may read a download, in milliseconds. */
const KEPT_MS = 60_000;
/** The byte order mark, by which a spreadsheet recognizes UTF-8. */
const MARK = "\uFEFF";
/** Texts that a spreadsheet would evaluate as formulas. */
const FORMULA = /^[=+\-@\t\r]/;

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);

/** @param {any} value */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean" || value instanceof ExactNumber) return String(stringify(value));
  const text = typeof value === "string" ? value : stringify(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns rows as CSV (RFC 4180), with a column for each field of the rows. Objects and lists are JSON. @param {any[]} rows */
export function toCsv(rows) {
  const isTable = rows.every(isObject);
  const names = isTable ? [...new Set(rows.flatMap(Object.keys))] : ["value"];
  const lines = rows.map((row) => names.map((name) => cell(isTable ? row[name] : row)).join(","));
  return [names.map(cell).join(","), ...lines, ""].join("\r\n");
}

/** @param {any[]} rows */
export const toNdjson = (rows) => rows.map((row) => `${stringify(row)}\n`).join("");

/** Saves a text as a file. @param {string} name @param {string} type @param {string} text */
function save(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

/**
 * @param {{name: string, rows: any[], next?: ((cursor: string) => Promise<{rows: any[], next: string | null}>) | null, cursor?: string | null}} props
 * `name` is that of the file without its ending. With `cursor`, `next` reads the rows that are not in `rows` yet.
 */
export function Export({ name, rows, next = null, cursor = null }) {
  const [isBusy, setBusy] = useState(false);
  const run = async (/** @type {"csv" | "ndjson"} */ format) => {
    setBusy(true);
    try {
      const all = [...rows];
      let rest = cursor;
      while (rest && next && all.length < MOST) {
        const page = await next(rest);
        all.push(...page.rows);
        rest = page.next;
      }
      if (rest) say(`The file has the first ${all.length.toLocaleString("en")} rows.`, { kind: "error", detail: "More rows are read with the API, page by page." });
      if (format === "csv") save(`${name}.csv`, "text/csv", MARK + toCsv(all));
      else save(`${name}.ndjson`, "application/x-ndjson", toNdjson(all));
    } catch (error) { complain(error, "The rows cannot be exported"); }
    setBusy(false);
  };
  return html`<span role="group" aria-label="Export"><button class="quiet" disabled=${isBusy || (rows.length === 0 && !cursor)} title="Download the rows as CSV" onClick=${() => run("csv")}>CSV</button><button
    class="quiet" disabled=${isBusy || (rows.length === 0 && !cursor)} title="Download the rows as NDJSON" onClick=${() => run("ndjson")}>NDJSON</button></span>`;
}
