// The aggregates of a type, newest first, now, at a moment, or compared between two.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { query as run } from "../../api/client.js";
import { listen } from "../../api/feed.js";
import { compareRows } from "../../state/compare.js";
import { change, earlier, foldAt, isCompared, moment } from "../../state/route.js";
import { complain } from "../../state/toasts.js";
import { Empty, Failure, label, Link, Loading, short, Time } from "../../parts/basic.js";
import { lazy } from "../../parts/lazy.js";
import { useLoad } from "../../parts/load.js";
import { loadStyle } from "../../parts/style.js";
import { Table } from "../../parts/table.js";

const Compared = lazy(() => import("../../parts/compared.js").then((module) => module.Compared));
const PAGE = 100;
const QUIET_MS = 300;
/** The fields that are columns beside the name. */
const COLUMNS = 4;
const BY = [["_last_event_at", "changed last"], ["_created_at", "created last"]];

loadStyle("table");

/** @param {string} type @param {string} by @param {import("../../state/route.js").Moment} when */
const pipeline = (type, by, when) => [{ $match: { aggregate_type: type } }, { $fold: foldAt(when) }, { $sort: { [by]: -1, _id: 1 } }];

/** @param {{type: string, fields: any[], query: URLSearchParams}} props */
export function States({ type, fields, query }) {
  const now = moment.value;
  const before = earlier.value;
  const by = query.get("by") ?? BY[0][0];
  const [rest, setRest] = useState(/** @type {{rows: any[], next: string | null}} */ ({ rows: [], next: null }));
  const [count, setCount] = useState(/** @type {number | null} */ (null));
  const first = useLoad(async (abort) => {
    if (isCompared.peek()) {
      const [was, is] = await Promise.all([before, now].map((when) => run(pipeline(type, by, when), {}, abort)));
      return { results: [], next_cursor: null, compared: compareRows(was.results, is.results, (/** @type {any} */ row) => row._id) };
    }
    const stages = pipeline(type, by, now);
    const [page, counted] = await Promise.all([run(stages, { limit: PAGE }, abort), run([...stages.slice(0, 2), { $count: "count" }], {}, abort).catch(() => null)]);
    setCount(Number(counted?.results[0]?.count ?? page.results.length));
    return { ...page, compared: null };
  }, [type, by, now, before]);
  useEffect(() => { setRest({ rows: [], next: first.value?.next_cursor ?? null }); }, [first.value]);
  useEffect(() => {
    if (now) return;
    /** @type {number | undefined} */
    let timer;
    const stop = listen((event) => { if (event.aggregate_type === type) timer ??= setTimeout(() => { timer = undefined; first.reload(); }, QUIET_MS); });
    return () => { clearTimeout(timer); stop(); };
  }, [type, now]);
  if (first.error) return html`<${Failure} error=${first.error} retry=${first.reload} />`;
  if (!first.value) return html`<${Loading} />`;
  const { compared } = first.value;
  const name = (/** @type {any} */ row) => html`<bdi>${short(label(row) || row._id, 120)}</bdi>`;
  if (compared) return html`<${Compared} result=${compared} label="Aggregates at two moments" title=${(/** @type {any} */ row) => html`<${Link} to=${`/a/${encodeURIComponent(row._id)}`}>${name(row)}<//>`} />`;
  const rows = [...first.value.results, ...rest.rows];
  const more = () => {
    const { next } = rest;
    if (!next) return;
    setRest((known) => ({ ...known, next: null }));
    run(pipeline(type, by, now), { limit: PAGE, cursor: next }).then((page) => setRest((known) => ({ rows: [...known.rows, ...page.results], next: page.next_cursor })), complain);
  };
  // A type without declared fields shows those of its first aggregates.
  const declared = fields.map((field) => field.name);
  const found = declared.length > 0 ? declared : [...new Set(rows.slice(0, 20).flatMap((row) => Object.keys(row)))].filter((field) => !field.startsWith("_") && field !== "aggregate_type" && field !== "project_id");
  const columns = found.filter((field) => field !== "title" && field !== "name").slice(0, COLUMNS);
  return html`<header class="bar"><span class="dim" role="status">${(count ?? rows.length).toLocaleString("en")} ${count === 1 ? "aggregate" : "aggregates"}${now ? " at this moment" : ""}</span>
      <label>Order <select value=${by} onChange=${(/** @type {any} */ event) => change({ by: event.target.value === BY[0][0] ? null : event.target.value })}>${BY.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></label>
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(pipeline(type, by, now)) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//></header>
    ${rows.length === 0 ? html`<${Empty}>No aggregate has this type${now ? " at this moment" : ""}.<//>` : html`<${Table} count=${rows.length} label=${`Aggregates of the type ${type}`} class="states" reachedEnd=${more}
      head=${html`<th>${type}</th>${columns.map((field) => html`<th key=${field} class="wide-only">${field}</th>`)}<th class="time">Changed</th>`} row=${(/** @type {number} */ index) => {
        const row = rows[index];
        return html`<tr key=${row._id}><td><${Link} to=${`/a/${encodeURIComponent(row._id)}`}>${name(row)}<//></td>
          ${columns.map((field) => html`<td key=${field} class="wide-only"><bdi>${row[field] === undefined || row[field] === null ? "" : short(row[field], 80)}</bdi></td>`)}<td class="dim"><${Time} at=${row._last_event_at} /></td></tr>`;
      }} />`}`;
}
