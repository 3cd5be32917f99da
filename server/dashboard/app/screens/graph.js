// The knowledge graph around an aggregate: as a picture or a table, now or at any moment.

import { html, useEffect, useMemo, useState } from "../vendor/ui.js";
import { get, post, query as run } from "../api/client.js";
import { listen } from "../api/feed.js";
import { register } from "../state/keys.js";
import { change, foldAt, go, moment, parametersAt, to } from "../state/route.js";
import { Badge, Empty, Failure, Link, Loading } from "../parts/basic.js";
import { useLoad } from "../parts/load.js";
import { NowNote } from "../parts/now.js";
import { Scrubber } from "../parts/scrubber.js";
import { loadStyle } from "../parts/style.js";
import { Beside, EdgeTable } from "./graph/edges.js";
import { Picture } from "./graph/picture.js";

loadStyle("graph");
const DEPTHS = [1, 2, 3];
const BUCKETS = 60;
const QUIET_MS = 400;
/** The delay after events of aggregates that are not shown. Plugins may connect these aggregates with shown ones. */
const OTHERS_MS = 2_000;
const SETTLE_MS = 200;

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Graph({ path: [id], query }) {
  return id ? html`<${Around} key=${id} id=${id} query=${query} />` : html`<${Begin} query=${query} />`;
}

/** The choice of an aggregate to begin with. @param {{query: URLSearchParams}} props */
function Begin({ query }) {
  const text = (query.get("q") ?? "").trim();
  const now = moment.value;
  const { value, error, isLoading, reload } = useLoad(async (abort) => {
    if (text) return (await post("/aggregates/search", { query: text, limit: 30 }, { signal: abort })).results.map((/** @type {any} */ hit) => ({ id: hit.aggregate_id, name: hit.label, type: hit.aggregate_type }));
    const found = now ? (await run([{ $fold: foldAt(now) }, { $sort: { _last_event_at: -1, _id: 1 } }], { limit: 30 }, abort)).results : (await get("/aggregates", { limit: 30 }, abort)).data;
    return found.map((/** @type {any} */ state) => ({ id: state._id, name: state.title ?? state.name ?? "", type: state.aggregate_type }));
  }, [text, now]);
  const send = (/** @type {SubmitEvent} */ event) => { event.preventDefault(); change({ q: String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("q")).trim() || null }); };
  return html`<div class="page"><h1>Graph</h1><p class="dim">Plugins find edges between aggregates. Choose an aggregate to see what it is connected with.</p>
    <form class="line" role="search" onSubmit=${send}><label>Find an aggregate <input key=${text} type="search" name="q" defaultValue=${text} autofocus /></label><button>Search</button></form>
    ${text && html`<${NowNote}>Search knows the present only: these are the aggregates of now.<//>`}
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${isLoading && !value && html`<${Loading} />`}
    ${value?.length === 0 && html`<${Empty}>${text ? "Nothing resembles these words." : now ? "No aggregate existed at this moment." : "No aggregate exists yet."}<//>`}
    <ul class="plain">${value?.map((/** @type {any} */ hit) => html`<li key=${hit.id}><${Link} to=${`/graph/${encodeURIComponent(hit.id)}`}><bdi>${hit.name || hit.id}</bdi><//> <${Badge} kind="type">${hit.type}<//></li>`)}</ul>
  </div>`;
}

/** @param {{id: string, query: URLSearchParams}} props */
function Around({ id, query }) {
  const now = moment.value;
  const depth = DEPTHS.find((known) => String(known) === query.get("depth")) ?? 1;
  const kinds = query.get("kinds") ?? "";
  const isClosed = query.get("closed") === "1";
  const isTable = query.get("view") === "table";
  const [chosen, setChosen] = useState(id);
  const [zoom, setZoom] = useState(1);
  const path = `/aggregates/${encodeURIComponent(id)}/graph`;
  const all = useLoad((abort) => get(path, { depth, closed: true }, abort), [id, depth]);
  const then = useLoad((abort) => get(path, { depth, kinds, closed: isClosed || undefined, ...parametersAt(now) }, abort), [id, depth, kinds, isClosed, now]);
  useEffect(() => {
    /** @type {number | undefined} */
    let timer;
    let isSoon = false;
    const stop = listen((event) => {
      if (now) return;
      const isShown = then.value?.nodes.some((/** @type {any} */ node) => node.aggregate_id === event.aggregate_id) ?? false;
      if (timer !== undefined && (isSoon || !isShown)) return;
      clearTimeout(timer);
      isSoon = isShown;
      timer = setTimeout(() => { timer = undefined; all.reload(); then.reload(); }, isShown ? QUIET_MS : OTHERS_MS);
    });
    return () => { clearTimeout(timer); stop(); };
  }, [then.value, now]);
  const show = (/** @type {Record<string, any>} */ changed) => change(changed, { replace: true });
  const center = (/** @type {string} */ other) => { if (other !== id) go(to(`/graph/${encodeURIComponent(other)}`, { depth: depth === 1 ? null : depth, kinds, view: query.get("view") })); };
  useEffect(() => register([
    ...DEPTHS.map((known) => ({ key: String(known), label: `Depth ${known}`, run: () => show({ depth: known === 1 ? null : known }) })),
    { key: "t", label: "Picture or table", run: () => show({ view: isTable ? null : "table" }) },
    { key: "c", label: "Closed edges", run: () => show({ closed: isClosed ? null : 1 }) },
    { key: "o", label: "Open the chosen aggregate", run: () => go(to(`/a/${encodeURIComponent(chosen)}`)) },
    { key: "+", label: "Larger", run: () => setZoom(Math.min(4, zoom * 1.3)), repeats: true },
    { key: "-", label: "Smaller", run: () => setZoom(Math.max(1, zoom / 1.3)), repeats: true },
  ]));
  const graph = useMemo(() => then.value && completed(then.value), [then.value]);
  const names = useMemo(() => new Map([...(all.value?.nodes ?? []), ...(graph?.nodes ?? [])].map((node) => [node.aggregate_id, node.label])), [all.value, graph]);
  const name = (/** @type {string} */ of) => names.get(of) || of;
  const known = [...new Set((all.value?.edges ?? []).map((/** @type {any} */ edge) => edge.kind))].sort();
  const wanted = new Set(kinds.split(",").filter(Boolean));
  const toggle = (/** @type {string} */ kind) => {
    const next = new Set(wanted.size ? wanted : known);
    if (!next.delete(kind)) next.add(kind);
    show({ kinds: next.size === known.length || next.size === 0 ? null : [...next].join(",") });
  };
  return html`<div class="page graph">
    <header class="bar"><h1><bdi>${name(id)}</bdi></h1><span class="dim">${graph && `${graph.nodes.length} nodes, ${graph.edges.length} edges`}</span>
      <div role="group" aria-label="Depth" class="choice">${DEPTHS.map((of) => html`<button aria-pressed=${of === depth} onClick=${() => show({ depth: of === 1 ? null : of })} title=${`Depth ${of} (${of})`}><span class="hidden">Depth </span>${of}</button>`)}</div>
      <button aria-pressed=${isTable} onClick=${() => show({ view: isTable ? null : "table" })} title="Picture or table (t)">Table</button>
      <label class="check"><input type="checkbox" checked=${isClosed} onChange=${() => show({ closed: isClosed ? null : 1 })} /> closed edges</label>
      ${known.length > 1 && html`<fieldset class="kinds"><legend class="hidden">Kinds of edges</legend>${known.map((kind) => html`<label class="check" key=${kind}><input type="checkbox" checked=${wanted.size === 0 || wanted.has(kind)} onChange=${() => toggle(kind)} /> ${kind}</label>`)}</fieldset>`}
      ${!isTable && html`<span><button class="quiet" aria-label="Smaller" disabled=${zoom <= 1} onClick=${() => setZoom(Math.max(1, zoom / 1.3))}>−</button><button class="quiet" aria-label="Larger" disabled=${zoom >= 4} onClick=${() => setZoom(Math.min(4, zoom * 1.3))}>+</button></span>`}
      <${Link} to="/graph">another<//></header>
    <${Growth} graph=${all.value} />
    ${then.error && html`<${Failure} error=${then.error} retry=${then.reload} />`}
    ${!graph && !then.error && html`<${Loading} />`}
    ${graph?.truncated && html`<p class="banner">The graph is larger than the limit. The farthest nodes are left out.</p>`}
    ${graph && graph.edges.length === 0 && html`<${Empty}>${now ? "No edge was open here at this moment." : "No edge begins or ends here."}<//>`}
    ${graph && (isTable ? html`<${EdgeTable} graph=${graph} name=${name} center=${center} />` : html`<div class="drawn">
      <${Picture} graph=${graph} chosen=${chosen} choose=${setChosen} center=${center} zoom=${zoom} name=${name} /><${Beside} graph=${graph} id=${chosen} root=${id} name=${name} center=${center} /></div>`)}
  </div>`;
}

/** The graph with nodes for the ends of closed edges, for which the server returns only the ids. @param {any} graph */
function completed(graph) {
  const known = new Set(graph.nodes.map((/** @type {any} */ node) => node.aggregate_id));
  const missing = new Set(graph.edges.flatMap((/** @type {any} */ edge) => [edge.from, edge.to]).filter((/** @type {string} */ id) => !known.has(id)));
  return { ...graph, nodes: [...graph.nodes, ...[...missing].map((id) => ({ aggregate_id: id, aggregate_type: "no longer connected", label: "", distance: 1, version: "–" }))] };
}

/** The times at which the edges of the graph were opened, and the shown moment. @param {{graph: any}} props */
function Growth({ graph }) {
  const now = moment.value;
  const position = now && "position" in now ? now.position : null;
  // The scrubber shows times, so a position is shown at the time of its event.
  const event = useLoad(async (abort) => (position === null ? null : (await get("/events", { after: position - 1, limit: 1 }, abort)).data[0]?.occurred_at ?? null), [position]);
  const shown = now && "time" in now ? now.time : event.value ?? null;
  const [dragged, setDragged] = useState(/** @type {{at: string | null} | null} */ (null));
  useEffect(() => {
    if (!dragged) return;
    const timer = setTimeout(() => { change({ at: dragged.at }, { replace: true }); setDragged(null); }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [dragged]);
  const spans = useMemo(() => periods(graph?.edges ?? []), [graph]);
  if (!spans) return null;
  return html`<${Scrubber} label="Edges open at" unit="new edges" ...${spans} at=${dragged ? dragged.at : shown} scrub=${(/** @type {string | null} */ at) => setDragged({ at })} />`;
}

/** Counts the edges that were opened in each period. @param {any[]} edges */
function periods(edges) {
  const times = edges.flatMap((edge) => (edge.valid_from ? [Date.parse(edge.valid_from)] : [])).sort((one, other) => one - other);
  if (times.length === 0) return null;
  const first = times[0], last = Math.max(times.at(-1) ?? 0, ...edges.map((edge) => (edge.valid_to ? Date.parse(edge.valid_to) : 0)));
  // One period before the first edge shows that no edge existed before.
  const size = Math.max(1, (last - first) / (BUCKETS - 2));
  const begin = first - size;
  const counts = new Array(BUCKETS).fill(0);
  for (const time of times) counts[Math.min(BUCKETS - 1, Math.floor((time - begin) / size))] += 1;
  const at = (/** @type {number} */ index) => new Date(begin + index * size).toISOString();
  return { from: at(0), to: at(BUCKETS), buckets: counts.map((count, index) => ({ at: at(index), count })) };
}
