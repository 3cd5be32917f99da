// The list of articles: drafts, published ones, and those with changes that are not published.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { get, query as run } from "../../api/client.js";
import { listen } from "../../api/feed.js";
import { has } from "../../api/session.js";
import { compareRows } from "../../state/compare.js";
import { change, earlier, foldAt, isCompared, moment } from "../../state/route.js";
import { complain } from "../../state/toasts.js";
import { Badge, Empty, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { lazy } from "../../parts/lazy.js";
import { ExportAll, orderOf, sorted } from "../../parts/listing.js";
import { useLoad } from "../../parts/load.js";
import { refusal } from "../../parts/refused.js";
import { Rows } from "../../parts/rows.js";
import { Typed } from "../../parts/typed.js";

const Compared = lazy(() => import("../../parts/compared.js").then((module) => module.Compared));
const PAGE = 100;
const ROW = 58;
const QUIET_MS = 250;

const NEWEST = "-_last_event_at";
const ORDERS = [[NEWEST, "changed last"], ["_last_event_at", "changed first"], ["-_created_at", "created last"], ["_created_at", "created first"], ["title", "title A–Z"], ["-title", "title Z–A"]];
/** What an export has of an article. */
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
  const first = useLoad(async (abort) => {
    if (isCompared.peek()) {
      const [was, is] = await Promise.all([before, now].map((when) => run(pipeline(status, tag, order, when), {}, abort)));
      return { data: [], next_cursor: null, compared: compareRows(was.results, is.results, (/** @type {any} */ row) => row._id) };
    }
    if (isPlain) return get("/articles", { status, tag, limit: PAGE }, abort);
    const found = await run(pipeline(status, tag, order, now), { limit: PAGE }, abort);
    return { data: found.results.map(rowOf), next_cursor: found.next_cursor };
  }, [status, tag, order.text, now, before]);
  const [rest, setRest] = useState(/** @type {{rows: any[], next: string | null}} */ ({ rows: [], next: null }));
  useEffect(() => { setRest({ rows: [], next: first.value?.next_cursor ?? null }); }, [first.value]);
  useEffect(() => {
    if (now) return;
    /** @type {number | undefined} */
    let timer;
    const stop = listen((event) => { if (event.aggregate_type === "article") { clearTimeout(timer); timer = setTimeout(first.reload, QUIET_MS); } });
    return () => { clearTimeout(timer); stop(); };
  }, [now]);
  const more = () => {
    const { next } = rest;
    if (!next) return;
    setRest((known) => ({ ...known, next: null }));
    const page = !isPlain ? run(pipeline(status, tag, order, now), { limit: PAGE, cursor: next }).then((found) => ({ data: found.results.map(rowOf), next_cursor: found.next_cursor })) : get("/articles", { status, tag, limit: PAGE, cursor: next });
    page.then((found) => setRest((known) => ({ rows: [...known.rows, ...found.data], next: found.next_cursor })), complain);
  };
  const articles = [...(first.value?.data ?? []), ...rest.rows];
  const compared = first.value && "compared" in first.value ? first.value.compared : null;
  return html`<div class="page articles">
    <header class="bar"><h1>Articles</h1>
      <label>Status <select value=${status} onChange=${(/** @type {any} */ event) => change({ status: event.target.value })}><option value="">any</option><option value="draft">draft</option><option value="published">published</option></select></label>
      <label>Tag <${Typed} type="search" size="12" value=${tag} change=${(/** @type {string} */ text) => change({ tag: text })} /></label>
      ${has("api:read") && html`<label>Order <select value=${order.text} onChange=${(/** @type {any} */ event) => change({ sort: event.target.value === NEWEST ? null : event.target.value })}>${ORDERS.map(([text, what]) => html`<option key=${text} value=${text}>${what}</option>`)}</select></label>
      <${ExportAll} name="articles" pipeline=${pipeline(status, tag, order, now)} fields=${EXPORTED} />`}
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(pipeline(status, tag, order, now)) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//>
      ${refusal() === "" ? html`<${Link} to="/articles/new" class="button primary">New article<//>` : html`<button disabled title=${refusal()}>New article</button>`}</header>
    ${first.error && html`<${Failure} error=${first.error} retry=${first.reload} />`}
    ${!first.value && !first.error && html`<${Loading} />`}
    ${compared && html`<${Compared} result=${compared} label="Articles at two moments" title=${(/** @type {any} */ row) => html`<bdi>${row.title || row._id}</bdi>`} />`}
    ${first.value && !compared && articles.length === 0 && html`<${Empty}>No article ${status || tag ? "passes the filters" : "exists"}${now ? " at this moment" : ""}.<//>`}
    ${articles.length > 0 && !compared && html`<div class="article-rows"><${Rows} count=${articles.length} height=${ROW} chosen=${-1} label="Articles" reachedEnd=${more} row=${(/** @type {number} */ index) => {
      const article = articles[index];
      return html`<div class="article-row"><${Link} to=${`/articles/${encodeURIComponent(article.aggregate_id)}`} class="grow"><bdi>${article.title || article.aggregate_id}</bdi><//>
        <span class="dim"><${Badge} kind=${article.status} />${isAhead(article) && html` <${Badge} kind="ahead">unpublished changes<//>`} <code>${article.slug}</code> ${(article.tags ?? []).slice(0, 5).map((/** @type {any} */ one) => html`<${Badge} key=${one} kind="tag">${String(one)}<//> `)}
          v${article.version} · <${Time} at=${article.updated_at} /></span></div>`;
    }} /></div>`}
  </div>`;
}
