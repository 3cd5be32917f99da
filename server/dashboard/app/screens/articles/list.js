// The list of articles: drafts, published articles, and articles with unpublished changes.

import { html } from "../../vendor/ui.js";
import { get, query as run } from "../../api/client.js";
import { has } from "../../api/session.js";
import { compareRows } from "../../state/compare.js";
import { change, earlier, foldAt, isCompared, moment } from "../../state/route.js";
import { Badge, Empty, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { lazy } from "../../parts/lazy.js";
import { ExportAll, orderOf, sorted } from "../../parts/listing.js";
import { Behind, usePages } from "../../parts/pages.js";
import { refusal } from "../../parts/refused.js";
import { Rows } from "../../parts/rows.js";
import { Typed } from "../../parts/typed.js";

const Compared = lazy(() => import("../../parts/compared.js").then((module) => module.Compared));
const PAGE = 100;
const ROW = 58;
const QUIET_MS = 250;

const NEWEST = "-_last_event_at";
const ORDERS = [[NEWEST, "changed last"], ["_last_event_at", "changed first"], ["-_created_at", "created last"], ["_created_at", "created first"], ["title", "title A–Z"], ["-title", "title Z–A"]];
/** The fields of an article in an export. */
const EXPORTED = ["title", "slug", "status", "tags", "published_version", "_version", "_created_at", "_last_event_at"];

/** The articles as a pipeline, for moments and orders that the list of articles does not know. @param {string} status @param {string} tag @param {{field: string, by: number}} order @param {import("../../state/route.js").Moment} when */
function pipeline(status, tag, order, when) {
  const match = { ...(status === "published" ? { published_version: { $ne: null } } : status === "draft" ? { published_version: null } : {}), ...(tag ? { tags: tag } : {}) };
  return [{ $match: { aggregate_type: "article" } }, { $fold: foldAt(when) }, ...(Object.keys(match).length ? [{ $match: match }] : []), sorted(order)];
}

/** The state of an article as a row of the list. @param {any} state */
const rowOf = (state) => ({ tags: [], slug: "", published_version: null, status: state.published_version ? "published" : "draft", ...state, aggregate_id: state._id, version: state._version, updated_at: state._last_event_at });

/** Whether an article has changes that are not published. @param {any} article */
export const isAhead = (article) => article.published_version !== null && article.published_version !== undefined && article.status === "published" && article.published_version < article.version;

/** @param {{query: URLSearchParams}} props */
export function List({ query }) {
  const now = moment.value;
  const before = earlier.value;
  const status = query.get("status") ?? "";
  const tag = query.get("tag") ?? "";
  const order = orderOf(query, NEWEST, ORDERS.map(([text]) => text.replace("-", "")));
  const isPlain = !now && order.text === NEWEST;
  const list = usePages(async (cursor, abort) => {
    if (isCompared.peek()) {
      const [was, is] = await Promise.all([before, now].map((when) => run(pipeline(status, tag, order, when), {}, abort)));
      return { rows: [], next: null, compared: compareRows(was.results, is.results, (/** @type {any} */ row) => row._id) };
    }
    if (isPlain) {
      const page = await get("/articles", { status, tag, limit: PAGE, cursor }, abort);
      return { rows: page.data, next: page.next_cursor, compared: null };
    }
    const found = await run(pipeline(status, tag, order, now), { limit: PAGE, ...(cursor ? { cursor } : {}) }, abort);
    return { rows: found.results.map(rowOf), next: found.next_cursor ?? null, compared: null };
  }, [status, tag, order.text, now, before], now ? null : (event) => event.aggregate_type === "article", QUIET_MS);
  const articles = list.rows;
  const compared = list.value?.compared;
  return html`<div class="page articles">
    <header class="bar"><h1>Articles</h1>
      <label>Status <select value=${status} onChange=${(/** @type {any} */ event) => change({ status: event.target.value })}><option value="">any</option><option value="draft">draft</option><option value="published">published</option></select></label>
      <label>Tag <${Typed} type="search" size="12" value=${tag} change=${(/** @type {string} */ text) => change({ tag: text })} /></label>
      ${has("api:read") && html`<label>Order <select value=${order.text} onChange=${(/** @type {any} */ event) => change({ sort: event.target.value === NEWEST ? null : event.target.value })}>${ORDERS.map(([text, what]) => html`<option key=${text} value=${text}>${what}</option>`)}</select></label>
      <${ExportAll} name="articles" pipeline=${pipeline(status, tag, order, now)} fields=${EXPORTED} />
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(pipeline(status, tag, order, now)) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//>`}
      ${refusal() === "" ? html`<${Link} to="/articles/new" class="button primary">New article<//>` : html`<button disabled title=${refusal()}>New article</button>`}</header>
    ${list.error && html`<${Failure} error=${list.error} retry=${list.reload} />`}
    ${!list.value && !list.error && html`<${Loading} />`}
    <${Behind} list=${list} />
    ${compared && html`<${Compared} result=${compared} label="Articles at two moments" title=${(/** @type {any} */ row) => html`<bdi>${row.title || row._id}</bdi>`} />`}
    ${list.value && !compared && articles.length === 0 && html`<${Empty}>No article ${status || tag ? "passes the filters" : "exists"}${now ? " at this moment" : ""}.<//>`}
    ${articles.length > 0 && !compared && html`<div class="article-rows"><${Rows} count=${articles.length} height=${ROW} chosen=${-1} label="Articles" id=${(/** @type {number} */ index) => articles[index].aggregate_id} reachedEnd=${list.more} row=${(/** @type {number} */ index) => {
      const article = articles[index];
      return html`<div class="article-row"><${Link} to=${`/articles/${encodeURIComponent(article.aggregate_id)}`} class="grow"><bdi>${article.title || article.aggregate_id}</bdi><//>
        <span class="dim"><${Badge} kind=${article.status} />${isAhead(article) && html` <${Badge} kind="ahead">unpublished changes<//>`} <code>${article.slug}</code> ${(article.tags ?? []).slice(0, 5).map((/** @type {any} */ one) => html`<${Badge} key=${one} kind="tag">${String(one)}<//> `)}
          v${article.version} · <${Time} at=${article.updated_at} /></span></div>`;
    }} /></div>`}
  </div>`;
}
