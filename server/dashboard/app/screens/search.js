// Search results: aggregates by label and by content, with their scores.

import { html } from "../vendor/ui.js";
import { getAll, post } from "../api/client.js";
import { change } from "../state/route.js";
import { Badge, Empty, Failure, Link, Loading, Time } from "../parts/basic.js";
import { NowNote } from "../parts/now.js";
import { useLoad } from "../parts/load.js";

const MOST = 50;

/** @param {{query: URLSearchParams}} props */
export default function Search({ query }) {
  const text = (query.get("q") ?? "").trim();
  const type = query.get("type") ?? "";
  const types = useLoad((abort) => getAll("/aggregate-types", abort), []);
  const { value, error, isLoading, reload } = useLoad(async (abort) => (text ? post("/aggregates/search", { query: text, limit: MOST, ...(type ? { type } : {}) }, { signal: abort }) : null), [text, type]);
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    change({ q: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("q")).trim() });
  };
  return html`<div class="page"><h1>Search</h1>
    <form class="line" role="search" onSubmit=${send}>
      <label>Words <input key=${text} type="search" name="q" defaultValue=${text} autofocus /></label>
      <label>Type <select value=${type} onChange=${(/** @type {any} */ event) => change({ type: event.target.value || null })}><option value="">all except tasks</option>
        ${(types.value?.data ?? []).map((/** @type {any} */ known) => html`<option value=${known.type_name}>${known.type_name}</option>`)}</select></label>
      <button class="primary">Search</button></form>
    <${NowNote}>Search knows the present only: these are the aggregates of now, found by what they contain now. Each opens as of the moment.<//>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${isLoading && text && !value && html`<${Loading} />`}
    ${!text && html`<${Empty}>Wrong letters, another order of words and missing accents are tolerated.<//>`}
    ${value?.warnings?.map((/** @type {string} */ warning) => html`<p class="banner">${warning}</p>`)}
    ${value && html`<p class="dim" role="status">${value.results.length === MOST ? `The best ${MOST}` : value.results.length} ${value.results.length === 1 ? "result" : "results"} in ${value.took_ms} ms</p>`}
    ${value?.results.length === 0 && html`<${Empty}>Nothing resembles these words.<//>`}
    ${value && value.results.length > 0 && html`<ol class="plain" aria-label="Results">${value.results.map((/** @type {any} */ hit) => html`<li key=${hit.aggregate_id}>
      <${Link} to=${`/a/${encodeURIComponent(hit.aggregate_id)}`}><bdi>${hit.label || hit.aggregate_id}</bdi><//> <${Badge} kind="type">${hit.aggregate_type}<//>
      <span class="dim">${Math.round(hit.score * 100)} % by ${hit.match.kind.replaceAll("_", " ")}, changed <${Time} at=${hit._last_event_at} /></span>
      <${Link} to=${`/graph/${encodeURIComponent(hit.aggregate_id)}`}>graph<//></li>`)}</ol>`}
  </div>`;
}
