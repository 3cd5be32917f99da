// The common parts of lists: the order and the chosen columns, which are in the address, and the export of the rows.

import { html, useRef } from "../vendor/ui.js";
import { query as run } from "../api/client.js";
import { change, decoded, route } from "../state/route.js";
import { Export } from "./export.js";
import { loadStyle } from "./style.js";

loadStyle("listing");

/** The number of rows per request of an export. */
const PAGE = 1_000;
/** The placeholder for the cursor of the first page. */
const BEGIN = "first";
const KEPT = "foldwork.columns.";

/** @typedef {{id: string, label: string, class?: string, sort?: string}} Column `sort` is the field by which the column sorts */

/** The order in an address: a field, descending after a minus. @param {URLSearchParams} query @param {string} otherwise @param {string[]} [known] the allowed fields */
export function orderOf(query, otherwise, known) {
  const wanted = query.get("sort") ?? otherwise;
  const text = known && !known.includes(wanted.replace(/^-/, "")) ? otherwise : wanted;
  const isDown = text.startsWith("-");
  return { text, field: isDown ? text.slice(1) : text, by: isDown ? -1 : 1 };
}

/** The order as a stage, in which equal rows keep their order from page to page. @param {{field: string, by: number}} order @returns {Record<string, any>} */
export const sorted = ({ field, by }) => ({ $sort: { [field]: by, ...(field === "_id" ? {} : { _id: 1 }) } });

/** Returns the rows in an order. `rows` must have all rows of the list. @template T @param {T[]} rows @param {{field: string, by: number}} order @returns {T[]} */
export function inOrder(rows, { field, by }) {
  const value = (/** @type {any} */ row) => row[field] ?? "";
  return rows.toSorted((one, other) => by * (typeof value(one) === "number" && typeof value(other) === "number" ? value(one) - value(other) : String(value(one)).localeCompare(String(value(other)))));
}

/** The cells of a table's head. A cell with `sort` orders the list. @param {{columns: Column[], order: {text: string, field: string, by: number}, otherwise: string}} props */
export function Heads({ columns, order, otherwise }) {
  return columns.map(({ id, label, sort, class: name }) => {
    if (!sort) return html`<th key=${id} class=${name}>${label}</th>`;
    const isOwn = order.field === sort;
    // A text column is first sorted from A, and a column of numbers or times from the highest value.
    const next = isOwn ? (order.by === 1 ? `-${sort}` : sort) : otherwise.replace(/^-/, "") === sort ? otherwise : sort;
    return html`<th key=${id} class=${name} aria-sort=${isOwn ? (order.by === 1 ? "ascending" : "descending") : undefined}>
      <button class="quiet sort" title=${`Sort by ${label}`} onClick=${() => change({ sort: next === otherwise ? null : next })}>${label}${isOwn && html` <span aria-hidden="true">${order.by === 1 ? "▲" : "▼"}</span>`}</button></th>`;
  });
}

/**
 * The columns to show: the columns in the address, or else the columns that were last chosen in this browser.
 *
 * @template {Column} T
 * @param {string} list the name of the list @param {T[]} all @param {string[]} [otherwise] the ids of the columns that are shown by default
 * @returns {T[]}
 */
export function shownColumns(list, all, otherwise = all.map((column) => column.id)) {
  const text = route.value.query.get("columns") ?? localStorage.getItem(KEPT + list);
  const wanted = text === null ? otherwise : text.split(",").filter(Boolean).map(decoded);
  return all.filter(({ id }) => wanted.includes(id));
}

/** A menu behind a button, which closes when the focus leaves it. @param {{label: string, children?: any, class?: string}} props */
function Menu({ label, children }) {
  const element = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  const close = (/** @type {any} */ event) => { if (!element.current?.contains(event.relatedTarget)) element.current?.removeAttribute("open"); };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !element.current?.open) return;
    event.preventDefault();
    element.current.open = false;
    element.current.querySelector("summary")?.focus();
  };
  return html`<details class="menu" ref=${element} onFocusOut=${close} onKeyDown=${keys}><summary class="button">${label}</summary><div class="popover" tabindex="-1">${children}</div></details>`;
}

/** Chooses the columns of a list. @param {{list: string, all: Column[], shown: Column[]}} props */
export function Columns({ list, all, shown }) {
  const toggle = (/** @type {string} */ id) => {
    const ids = all.map((column) => column.id).filter((known) => (known === id) !== shown.some((column) => column.id === known));
    const text = ids.map(encodeURIComponent).join(",");
    localStorage.setItem(KEPT + list, text);
    change({ columns: text || "," }, { replace: true });
  };
  return html`<${Menu} label="Columns">${all.map(({ id, label }) => html`<label class="check" key=${id}><input type="checkbox" checked=${shown.some((column) => column.id === id)} onChange=${() => toggle(id)} /> ${label}</label>`)}<//>`;
}

/**
 * Saves the rows of a list as a file: all pages, with the filters, the order and the fields that are shown.
 *
 * @param {{name: string, pipeline: any[], fields: string[]}} props `fields` are the fields of the rows, besides their id
 */
export function ExportAll({ name, pipeline, fields }) {
  const all = ["_id", ...new Set(fields.filter((field) => field !== "_id"))];
  const next = async (/** @type {string} */ cursor) => {
    const page = await run(pipeline, { limit: PAGE, ...(cursor === BEGIN ? {} : { cursor }) });
    return { rows: page.results.map((/** @type {any} */ row) => Object.fromEntries(all.filter((field) => row[field] !== undefined).map((field) => [field, row[field]]))), next: page.next_cursor ?? null };
  };
  return html`<${Export} name=${name.replace(/[^\w.-]+/g, "-")} rows=${[]} cursor=${BEGIN} next=${next} />`;
}
