// The edges from and to an aggregate at a version.

import { html } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { moment, parametersAt } from "../../state/route.js";
import { Badge, Empty, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { useLive, useLoad } from "../../parts/load.js";

/** Plugins find edges shortly after an event. */
const QUIET_MS = 1_000;

/** @param {{id: string, version: number, isLatest: boolean}} props */
export function Edges({ id, version, isLatest }) {
  const { value, error, reload } = useLoad(async (abort) => {
    const path = `/aggregates/${encodeURIComponent(id)}`;
    let when = parametersAt(moment.peek());
    if (!isLatest) {
      const { data: [event] } = await get(`${path}/events`, { after_version: version - 1, limit: 1 }, abort);
      when = { position: event.position };
    }
    return get(`${path}/graph`, { depth: 1, ...when }, abort);
  }, [id, isLatest ? 0 : version, moment.value]);
  // An event of any aggregate may open or close an edge of this aggregate.
  useLive(reload, isLatest && !moment.value ? () => true : null, QUIET_MS);
  const failure = error && html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return failure ?? html`<${Loading} />`;
  const out = value.edges.filter((/** @type {any} */ edge) => edge.from === id);
  const into = value.edges.filter((/** @type {any} */ edge) => edge.to === id && edge.from !== id);
  return html`${failure}<p class="bar"><${Link} to=${`/graph/${encodeURIComponent(id)}`}>Open as a graph<//>${value.truncated && html`<span class="dim">Only some of the edges are listed.</span>`}</p>
    ${value.edges.length === 0 ? html`<${Empty}>No edge begins or ends here${isLatest && !moment.value ? "" : " at this version"}.<//>` : html`<div class="halves">
      <section><h2>Points to <span class="dim">${out.length}</span></h2><${List} edges=${out} end="to" nodes=${value.nodes} /></section>
      <section><h2>Is pointed to by <span class="dim">${into.length}</span></h2><${List} edges=${into} end="from" nodes=${value.nodes} /></section></div>`}`;
}

/** @param {{edges: any[], end: "from" | "to", nodes: any[]}} props */
function List({ edges, end, nodes }) {
  const known = new Map(nodes.map((node) => [node.aggregate_id, node]));
  if (edges.length === 0) return html`<${Empty}>No edge.<//>`;
  return html`<ul class="plain edges">${edges.map((edge) => {
    const node = known.get(edge[end]);
    const plugin = edge.plugin ?? edge.source?.plugin;
    const event = edge.event_id ?? edge.source?.event_id;
    return html`<li key=${`${edge.from} ${edge.kind} ${edge.to}`}><${Badge} kind="kind">${edge.kind}<//> <${Link} to=${`/a/${encodeURIComponent(edge[end])}`}><bdi>${node?.label || edge[end]}</bdi><//>
      ${node && html`<span class="dim">${node.aggregate_type}</span>`} ${node?.deleted && html`<${Badge} kind="stopped">deleted<//>`}
      <span class="dim">${plugin ? `by ${plugin}, ` : ""}${event ? html`<${Link} to=${`/events/${event}`}>since <${Time} at=${edge.valid_from} /><//>` : html`since <${Time} at=${edge.valid_from} />`}</span></li>`;
  })}</ul>`;
}
