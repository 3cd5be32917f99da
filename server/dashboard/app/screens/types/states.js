// The aggregates of a type, filtered and sorted, now, at a moment, or compared between two moments.

import { html } from "../../vendor/ui.js";
import { query as run } from "../../api/client.js";
import { compareRows } from "../../state/compare.js";
import { earlier, foldAt, isCompared, moment } from "../../state/route.js";
import { Empty, Failure, label, Link, Loading, short, Time } from "../../parts/basic.js";
import { lazy } from "../../parts/lazy.js";
import { Columns, ExportAll, Heads, orderOf, shownColumns, sorted } from "../../parts/listing.js";
import { Behind, usePages } from "../../parts/pages.js";
import { loadStyle } from "../../parts/style.js";
import { Table } from "../../parts/table.js";
import { conditionsOf, matched, Where } from "../../parts/where.js";

const Compared = lazy(() => import("../../parts/compared.js").then((module) => module.Compared));
const PAGE = 100;
const QUIET_MS = 300;
/** The number of fields that are columns by default, besides the name. */
const FIRST = 4;
const CHANGED = "_last_event_at";
const NEWEST = `-${CHANGED}`;

loadStyle("table");

/** @param {string} type @param {import("../../parts/where.js").Condition[]} where @param {{field: string, by: number}} order @param {import("../../state/route.js").Moment} when */
const pipeline = (type, where, order, when) => [{ $match: { aggregate_type: type } }, { $fold: foldAt(when) }, ...matched(where), sorted(order)];

/** @param {{type: string, fields: any[], query: URLSearchParams}} props */
export function States({ type, fields, query }) {
  const now = moment.value;
  const before = earlier.value;
  const order = orderOf(query, NEWEST);
  const where = conditionsOf(query);
  const asked = JSON.stringify([where, order.text]);
  const list = usePages(async (cursor, abort) => {
    if (isCompared.peek()) {
      const [was, is] = await Promise.all([before, now].map((when) => run(pipeline(type, where, order, when), {}, abort)));
      return { rows: [], next: null, total: 0, compared: compareRows(was.results, is.results, (/** @type {any} */ row) => row._id) };
    }
    const stages = pipeline(type, where, order, now);
    const [page, counted] = await Promise.all([
      run(stages, { limit: PAGE, ...(cursor ? { cursor } : {}) }, abort), cursor ? null : run([...stages.slice(0, -1), { $count: "count" }], {}, abort).catch(() => null),
    ]);
    return { rows: page.results, next: page.next_cursor ?? null, total: Number(counted?.results[0]?.count ?? page.results.length), compared: null };
  }, [type, asked, now, before], now ? null : (event) => event.aggregate_type === type, QUIET_MS);
  const filter = (/** @type {string[]} */ names) => html`<${Where} key="where" conditions=${where} fields=${names} />`;
  const failure = list.error && html`<${Failure} error=${list.error} retry=${list.reload} />`;
  if (!list.value) return html`${filter(["_id", ...fields.map((field) => field.name)])}${failure ?? html`<${Loading} />`}`;
  const { rows, more } = list;
  const { compared, total } = list.value;
  const name = (/** @type {any} */ row) => html`<bdi>${short(label(row) || row._id, 120)}</bdi>`;
  if (compared) return html`<${Compared} result=${compared} label="Aggregates at two moments" title=${(/** @type {any} */ row) => html`<${Link} to=${`/a/${encodeURIComponent(row._id)}`}>${name(row)}<//>`} />`;
  // A type without declared fields shows the fields of its first aggregates.
  const declared = fields.map((field) => field.name);
  const found = declared.length > 0 ? declared : [...new Set(rows.slice(0, 20).flatMap((row) => Object.keys(row)))].filter((field) => !field.startsWith("_") && field !== "aggregate_type" && field !== "project_id");
  const known = found.length > 0 || where.length === 0 ? found : where.map(({ field }) => field);
  const own = known.map((/** @type {string} */ field) => ({ id: field, label: field, class: "wide-only", sort: field }));
  const all = [...own, { id: "_version", label: "Version", class: "wide-only", sort: "_version" }, { id: "_created_at", label: "Created", class: "time", sort: "_created_at" }, { id: CHANGED, label: "Changed", class: "time", sort: CHANGED }];
  const first = [...known.filter((field) => field !== "title" && field !== "name").slice(0, FIRST), CHANGED];
  const columns = shownColumns(`types/${type}`, all, first);
  const named = fields.find((field) => field.label)?.name ?? ["title", "name"].find((field) => known.includes(field));
  const heads = [{ id: "", label: type, sort: named ?? "_id" }, ...columns];
  const stages = pipeline(type, where, order, now);
  return html`<header class="bar"><span class="dim" role="status">${total.toLocaleString("en")} ${total === 1 ? "aggregate" : "aggregates"}${now ? " at this moment" : ""}</span>
      <${Columns} list=${`types/${type}`} all=${all} shown=${columns} />
      <${ExportAll} name=${type} pipeline=${stages} fields=${[...(named ? [named] : []), ...columns.map(({ id }) => id)]} />
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(stages) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//></header>
    ${filter(["_id", ...all.map(({ id }) => id)])}
    ${failure}<${Behind} list=${list} />
    ${rows.length === 0 ? html`<${Empty}>No aggregate ${where.length > 0 ? "passes the filters" : "has this type"}${now ? " at this moment" : ""}.<//>` : html`<${Table} count=${rows.length} label=${`Aggregates of the type ${type}`} class="states" reachedEnd=${more}
      head=${html`<${Heads} columns=${heads} order=${order} otherwise=${NEWEST} />`} row=${(/** @type {number} */ index) => {
        const row = rows[index];
        return html`<tr key=${row._id}><td><${Link} to=${`/a/${encodeURIComponent(row._id)}`}>${name(row)}<//></td>
          ${columns.map(({ id, class: kind }) => html`<td key=${id} class=${kind === "time" ? "dim" : kind}>${kind === "time" ? html`<${Time} at=${row[id]} />` : html`<bdi>${row[id] === undefined || row[id] === null ? "" : short(row[id], 80)}</bdi>`}</td>`)}</tr>`;
      }} />`}`;
}
