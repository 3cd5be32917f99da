// The events of an aggregate, newest first.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { Failure, Link, Loading, short, Time } from "../../parts/basic.js";
import { useLoad } from "../../parts/load.js";
import { loadStyle } from "../../parts/style.js";
import { Table } from "../../parts/table.js";
import { complain } from "../../state/toasts.js";
import { Event } from "./event.js";

const PAGE = 100;

loadStyle("table");

/** @param {{id: string, latest: number, version: number}} props */
export function History({ id, latest, version }) {
  const page = (/** @type {string | null} */ cursor, /** @type {AbortSignal} */ abort) =>
    get(`/aggregates/${encodeURIComponent(id)}/events`, { limit: PAGE, direction: "desc", ...(cursor ? { cursor } : { after_version: latest + 1 }) }, abort);
  const { value, error, reload } = useLoad((abort) => page(null, abort), [id, latest]);
  const [rows, setRows] = useState(/** @type {{events: any[], next: string | null}} */ ({ events: [], next: null }));
  const [open, setOpen] = useState(/** @type {any} */ (null));
  useEffect(() => { if (value) setRows({ events: value.data, next: value.next_cursor }); }, [value]);
  if (error) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<${Loading} />`;
  const more = () => {
    const { next } = rows;
    if (!next) return;
    setRows((before) => ({ ...before, next: null }));
    page(next, new AbortController().signal).then((found) => setRows((before) => ({ events: [...before.events, ...found.data], next: found.next_cursor })), complain);
  };
  const events = rows.events;
  const q = JSON.stringify([{ $match: { aggregate_id: id, version: { $lte: latest } } }, { $sort: { position: -1 } }]);
  return html`<div class="history"><p><span class="dim">${latest.toLocaleString("en")} ${latest === 1 ? "event" : "events"}</span> <${Link} to="/pipelines" query=${{ q }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//></p><${Table} count=${events.length} label="Events of the aggregate" reachedEnd=${more} head=${html`<th class="version">Version</th><th class="type">Event</th><th class="wide-only">Payload</th><th class="wide-only actor">Actor</th><th class="time">Time</th><th class="narrow"><span class="hidden">Show</span></th>`} row=${(/** @type {number} */ index) => {
    const event = events[index];
    return html`<tr key=${event.event_id} class=${event.version === version ? "chosen" : ""}><td class="number"><${Link} to=${`/a/${encodeURIComponent(id)}`} query=${{ v: event.version }}>v${event.version}<//></td><td>${event.event_type}</td>
      <td class="wide-only dim"><bdi>${short(event.payload, 90)}</bdi></td><td class="wide-only dim"><bdi>${short(event.actor, 24)}</bdi></td><td class="dim"><${Time} at=${event.occurred_at} /></td>
      <td class="narrow"><button class="quiet" aria-expanded=${open?.event_id === event.event_id} aria-label=${`Show version ${event.version}`} onClick=${() => setOpen(open?.event_id === event.event_id ? null : event)}>${open?.event_id === event.event_id ? "▾" : "▸"}</button></td></tr>`;
  }} />${open && html`<${Event} event=${open} />`}</div>`;
}
