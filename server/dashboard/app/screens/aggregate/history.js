// The events of an aggregate, newest first.

import { html, useState } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { Failure, Link, Loading, short, Time } from "../../parts/basic.js";
import { Behind, usePages } from "../../parts/pages.js";
import { loadStyle } from "../../parts/style.js";
import { Table } from "../../parts/table.js";
import { moment } from "../../state/route.js";
import { Event } from "./event.js";

const PAGE = 100;
const QUIET_MS = 150;

loadStyle("table");

/** @param {{id: string, latest: number, version: number}} props */
export function History({ id, latest, version }) {
  const now = moment.value;
  const list = usePages(async (cursor, abort) => {
    // At the current moment, the list begins with the newest event, so that the list stays while the aggregate changes.
    const page = await get(`/aggregates/${encodeURIComponent(id)}/events`, { limit: PAGE, direction: "desc", ...(cursor ? { cursor } : now ? { after_version: latest + 1 } : {}) }, abort);
    return { rows: page.data, next: page.next_cursor };
  }, [id, now && latest], now ? null : (event) => event.aggregate_id === id, QUIET_MS);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const failure = list.error && html`<${Failure} error=${list.error} retry=${list.reload} />`;
  if (!list.value) return failure ?? html`<${Loading} />`;
  const events = list.rows;
  const q = JSON.stringify([{ $match: { aggregate_id: id, version: { $lte: latest } } }, { $sort: { position: -1 } }]);
  return html`<div class="history"><p><span class="dim">${latest.toLocaleString("en")} ${latest === 1 ? "event" : "events"}</span> <${Link} to="/pipelines" query=${{ q }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//></p>${failure}<${Behind} list=${list} /><${Table} count=${events.length} label="Events of the aggregate" reachedEnd=${list.more} head=${html`<th class="version">Version</th><th class="type">Event</th><th class="wide-only">Payload</th><th class="wide-only actor">Actor</th><th class="time">Time</th><th class="narrow"><span class="hidden">Show</span></th>`} row=${(/** @type {number} */ index) => {
    const event = events[index];
    return html`<tr key=${event.event_id} class=${event.version === version ? "chosen" : ""}><td class="number"><${Link} to=${`/a/${encodeURIComponent(id)}`} query=${{ v: event.version }}>v${event.version}<//></td><td>${event.event_type}</td>
      <td class="wide-only dim"><bdi>${short(event.payload, 90)}</bdi></td><td class="wide-only dim"><bdi>${short(event.actor, 24)}</bdi></td><td class="dim"><${Time} at=${event.occurred_at} /></td>
      <td class="narrow"><button class="quiet" aria-expanded=${open?.event_id === event.event_id} aria-label=${`Show version ${event.version}`} onClick=${() => setOpen(open?.event_id === event.event_id ? null : event)}>${open?.event_id === event.event_id ? "▾" : "▸"}</button></td></tr>`;
  }} />${open && html`<${Event} event=${open} />`}</div>`;
}
