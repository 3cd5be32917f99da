// The times of an aggregate's events: a bar for each part of its life, with a mark at the shown version.

import { html } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { clock, zoned } from "../../parts/clock.js";
import { useLoad } from "../../parts/load.js";

const PAGE = 200;
/** The maximum number of events that are counted. In a longer stream, only the latest events are counted. */
const MOST = 1_000;
const PARTS = 60;

/** The latest events up to a version, oldest first. @param {string} id @param {number} latest @param {AbortSignal} abort */
async function eventsOf(id, latest, abort) {
  const first = Math.max(0, latest - MOST);
  const starts = Array.from({ length: Math.ceil((latest - first) / PAGE) }, (_, index) => first + index * PAGE);
  const pages = await Promise.all(starts.map((after) => get(`/aggregates/${encodeURIComponent(id)}/events`, { after_version: after, limit: PAGE }, abort)));
  return pages.flatMap((page) => page.data).filter((event) => event.version <= latest).map((event) => ({ version: event.version, at: Date.parse(event.occurred_at) }));
}

/** @param {{id: string, latest: number, version: number, show: (version: number) => void}} props */
export function Bar({ id, latest, version, show }) {
  const { value } = useLoad((abort) => eventsOf(id, latest, abort), [id, latest]);
  if (!value || value.length < 2) return null;
  const from = Math.min(...value.map((event) => event.at));
  const until = Math.max(...value.map((event) => event.at));
  const span = Math.max(1, until - from);
  const partOf = (/** @type {number} */ at) => Math.min(PARTS - 1, Math.floor(((at - from) / span) * PARTS));
  const parts = Array.from({ length: PARTS }, () => /** @type {number[]} */ ([]));
  for (const event of value) parts[partOf(event.at)].push(event.version);
  const highest = Math.max(...parts.map((part) => part.length));
  const current = value.find((event) => event.version === version);
  return html`<figure class="life"><div class="life-bars" role="img" aria-label=${`${value.length} events between ${clock(from)} and ${clock(until)}; version ${version} is marked`}>
      ${parts.map((part, index) => html`<span key=${index} class=${current && partOf(current.at) === index ? "current" : ""} title=${part.length ? `${part.length} ${part.length === 1 ? "event" : "events"}, up to version ${part.at(-1)}` : undefined}
        onClick=${part.length ? () => show(/** @type {number} */ (part.at(-1))) : undefined}><i style=${{ height: `${part.length ? Math.max(12, (part.length / highest) * 100) : 0}%` }}></i></span>`)}
    </div><figcaption class="dim"><span title=${zoned(from)}>${clock(from)}</span>${latest > MOST && html`<span>the latest ${MOST.toLocaleString("en")} events</span>`}<span title=${zoned(until)}>${clock(until)}</span></figcaption></figure>`;
}
