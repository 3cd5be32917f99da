// The graph as a picture in which the arrow keys move from node to node.

import { html, useEffect, useLayoutEffect, useRef } from "../../vendor/ui.js";
import { bounds, createLayout, towards } from "./layout.js";

/** The maximum number of edges at which all edges show their kinds, if there are several kinds. */
const NAMED = 40;
/**
 * The maximum number of nodes at which all nodes show their names. Above it, only nodes near the chosen node and the
 * middle do.
 */
const LABELLED = 120;
const LABEL = 26;
/** The distance between the end of an edge and the middle of its node. */
const GAP = 13;

/** @typedef {Map<string, {x: number, y: number}>} Places */

/** @param {string} text */
const cut = (text) => (text.length > LABEL ? `${text.slice(0, LABEL)}…` : text);

/**
 * Moves the drawn elements to their places. The layout moves the elements many times per second, and rendering them
 * each time would be too slow.
 *
 * @param {SVGSVGElement} svg @param {Places} places
 */
function move(svg, places) {
  const box = bounds(places);
  svg.setAttribute("viewBox", `${box.left} ${box.top} ${box.width} ${box.height}`);
  for (const element of svg.querySelectorAll(".node")) {
    const place = places.get(/** @type {SVGElement} */ (element).dataset.id ?? "");
    if (place) element.setAttribute("transform", `translate(${place.x} ${place.y})`);
  }
  for (const element of svg.querySelectorAll(".edge")) {
    const { from: begin = "", to: end = "" } = /** @type {SVGElement} */ (element).dataset;
    const from = places.get(begin), to = places.get(end);
    if (!from || !to) continue;
    const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
    const share = Math.max(0, length - GAP) / length;
    const line = /** @type {SVGLineElement} */ (element.firstElementChild);
    line.setAttribute("x1", String(from.x));
    line.setAttribute("y1", String(from.y));
    line.setAttribute("x2", String(from.x + (to.x - from.x) * share));
    line.setAttribute("y2", String(from.y + (to.y - from.y) * share));
    const text = element.querySelector("text");
    text?.setAttribute("x", String((from.x + to.x) / 2));
    text?.setAttribute("y", String((from.y + to.y) / 2 - 4));
  }
}

/**
 * @param {{graph: any, chosen: string, choose: (id: string) => void, center: (id: string) => void, zoom: number, name: (id: string) => string}} props
 */
export function Picture({ graph, chosen, choose, center, zoom, name }) {
  const places = useRef(/** @type {Places} */ (new Map()));
  const layout = useRef(/** @type {ReturnType<typeof createLayout> | null} */ (null));
  const svg = useRef(/** @type {SVGSVGElement | null} */ (null));
  const hasFocus = useRef(false);
  useEffect(() => {
    layout.current = createLayout((next) => { places.current = next; if (svg.current) move(svg.current, next); });
    return () => layout.current?.stop();
  }, []);
  useEffect(() => {
    layout.current?.set(graph.nodes.map((/** @type {any} */ node) => ({ id: node.aggregate_id, distance: node.distance })), graph.edges);
  }, [graph]);
  useLayoutEffect(() => { if (svg.current && places.current.size > 0) move(svg.current, places.current); });
  useEffect(() => {
    if (hasFocus.current) /** @type {SVGElement | null | undefined} */ (svg.current?.querySelector('[tabindex="0"]'))?.focus();
  }, [chosen]);
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") { event.preventDefault(); return center(chosen); }
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const next = towards(places.current, chosen, event.key);
    if (next) choose(next);
  };
  const degree = new Map();
  const near = new Set([chosen]);
  for (const { from, to } of graph.edges) {
    for (const id of [from, to]) degree.set(id, (degree.get(id) ?? 0) + 1);
    if (from === chosen) near.add(to);
    if (to === chosen) near.add(from);
  }
  const kinds = new Set(graph.edges.map((/** @type {any} */ edge) => edge.kind)).size;
  const tabbed = graph.nodes.some((/** @type {any} */ node) => node.aggregate_id === chosen) ? chosen : graph.nodes[0]?.aggregate_id;
  return html`<div class="picture"><svg ref=${svg} role="group" aria-label="Nodes of the graph. The arrow keys lead from node to node, Enter puts a node in the middle."
      style=${{ width: `${zoom * 100}%`, height: `${zoom * 100}%` }} onKeyDown=${keys}
      onFocusIn=${() => { hasFocus.current = true; }} onFocusOut=${() => { hasFocus.current = false; }}>
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" /></marker></defs>
    <g aria-hidden="true">${graph.edges.map((/** @type {any} */ edge, /** @type {number} */ index) => {
      const isNear = edge.from === chosen || edge.to === chosen;
      return html`<g key=${`${edge.from} ${edge.to} ${edge.kind} ${index}`} data-from=${edge.from} data-to=${edge.to} class=${`edge ${edge.valid_to ? "closed" : ""} ${isNear ? "near" : ""}`}>
        <line marker-end="url(#arrow)"><title>${`${name(edge.from)} ${edge.kind} ${name(edge.to)}`}</title></line>
        ${(isNear || (kinds > 1 && graph.edges.length <= NAMED)) && html`<text>${edge.kind}</text>`}</g>`;
    })}</g>
    ${graph.nodes.map((/** @type {any} */ node) => {
      const id = node.aggregate_id;
      const isChosen = id === chosen;
      const isNamed = graph.nodes.length <= LABELLED || node.distance === 0 || near.has(id);
      return html`<g key=${id} data-id=${id} class=${`node ${node.distance === 0 ? "middle" : ""} ${isChosen ? "chosen" : ""} ${node.deleted ? "deleted" : ""}`}
          role="button" tabindex=${id === tabbed ? 0 : -1} aria-pressed=${isChosen} aria-label=${`${name(id)}, ${node.aggregate_type}, ${degree.get(id) ?? 0} edges${node.deleted ? ", deleted" : ""}`}
          onClick=${() => choose(id)} onDblClick=${() => center(id)} onFocus=${() => { if (!isChosen) choose(id); }}>
        <circle r=${node.distance === 0 ? 13 : 9} />${isNamed && html`<text y=${node.distance === 0 ? 28 : 23}>${cut(name(id))}</text>`}<title>${`${name(id)} (${node.aggregate_type})`}</title></g>`;
    })}
  </svg></div>`;
}
