// The edges of the graph as a table, and those of one node beside the picture: each names its event and its plugin.

import { html } from "../../vendor/ui.js";
import { Badge, Empty, Link, Time } from "../../parts/basic.js";
import { Table } from "../../parts/table.js";

/** The event that opened an edge. @param {{edge: any}} props */
function Origin({ edge }) {
  const event = edge.event_id ?? edge.source?.event_id;
  const plugin = edge.plugin ?? edge.source?.plugin;
  return html`<span class="dim">${plugin ? html`by <${Link} to=${`/plugins/${plugin}`}>${plugin}<//>` : "by no plugin"}${event && html`, <${Link} to=${`/events/${encodeURIComponent(event)}`}>${edge.position ? `event ${edge.position}` : "event"}<//>`}</span>`;
}

/** @param {{graph: any, name: (id: string) => string, center: (id: string) => void}} props */
export function EdgeTable({ graph, name }) {
  const { edges } = graph;
  if (edges.length === 0) return html`<${Empty}>No edge is open here.<//>`;
  const end = (/** @type {string} */ id) => html`<${Link} to=${`/graph/${encodeURIComponent(id)}`} title=${name(id)}><bdi>${name(id)}</bdi><//>`;
  return html`<${Table} class="edge-rows" label="Edges" count=${edges.length} width="52rem"
    head=${html`<th>From</th><th>Kind</th><th>To</th><th>Drawn by</th><th>Since</th><th>Until</th>`}
    row=${(/** @type {number} */ index) => { const edge = edges[index]; return html`<tr key=${index} aria-rowindex=${index + 2}>
      <td>${end(edge.from)}</td><td>${edge.kind}</td><td>${end(edge.to)}</td><td><${Origin} edge=${edge} /></td><td class="dim"><${Time} at=${edge.valid_from} /></td><td class="dim">${edge.valid_to ? html`<${Time} at=${edge.valid_to} />` : "open"}</td></tr>`; }} />`;
}

const SHOWN = 40;

/** @param {{graph: any, id: string, root: string, name: (id: string) => string, center: (id: string) => void}} props */
export function Beside({ graph, id, root, name, center }) {
  const node = graph.nodes.find((/** @type {any} */ known) => known.aggregate_id === id);
  if (!node) return html`<aside class="beside"><p class="dim">This node is not in the graph at this moment.</p></aside>`;
  const edges = graph.edges.filter((/** @type {any} */ edge) => edge.from === id || edge.to === id);
  return html`<aside class="beside" aria-label="The chosen node">
    <h2><bdi>${name(id)}</bdi></h2>
    <p><${Badge} kind="type">${node.aggregate_type}<//> ${node.deleted && html`<${Badge} kind="deleted" />`} <span class="dim">version ${node.version}, ${node.distance === 0 ? "in the middle" : `distance ${node.distance}`}</span></p>
    <p><${Link} to=${`/a/${encodeURIComponent(id)}`}>Open the aggregate<//> ${id !== root && html`<button onClick=${() => center(id)}>Put in the middle</button>`}</p>
    <h3>${edges.length} ${edges.length === 1 ? "edge" : "edges"}</h3>
    <ul class="plain">${edges.slice(0, SHOWN).map((/** @type {any} */ edge, /** @type {number} */ index) => html`<li key=${index} class=${edge.valid_to ? "closed" : ""}>
      ${edge.from === id ? html`<strong>${edge.kind}</strong> <span aria-hidden="true">→</span><span class="hidden">to</span> <bdi>${name(edge.to)}</bdi>` : html`<strong>${edge.kind}</strong> <span aria-hidden="true">←</span><span class="hidden">from</span> <bdi>${name(edge.from)}</bdi>`}<br />
      <${Origin} edge=${edge} /> <span class="dim"><${Time} at=${edge.valid_from} />${edge.valid_to && html` to <${Time} at=${edge.valid_to} />`}</span></li>`)}</ul>
    ${edges.length > SHOWN && html`<p class="dim">and ${edges.length - SHOWN} more in the table</p>`}
  </aside>`;
}
