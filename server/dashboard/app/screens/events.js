// The log: new events as they are appended, earlier events by scrolling, and single events with causes and
// consequences.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/ui.js";
import { stringify } from "../api/json.js";
import { connection, listen } from "../api/feed.js";
import { change, moment, writeMoment } from "../state/route.js";
import { register } from "../state/keys.js";
import { complain } from "../state/toasts.js";
import { Empty, Failure, Link, Loading, short } from "../parts/basic.js";
import { clock, MILLISECONDS, SECONDS, zoned } from "../parts/clock.js";
import { Export } from "../parts/export.js";
import { useLive, useLoad } from "../parts/load.js";
import { OfNow } from "../parts/now.js";
import { Scrubber } from "../parts/scrubber.js";
import { loadStyle } from "../parts/style.js";
import { Table } from "../parts/table.js";
import { Value } from "../parts/value.js";
import { beginning, counted, filterOf, page, passes, pipelineOf } from "./events/filter.js";
import { Filters } from "./events/filters.js";
import { One } from "./events/one.js";
import { createTail } from "./events/tail.js";

loadStyle("events");
const ROW = 32;
const OPENED = 220;
const BUCKETS = 60;
const REFRESH_MS = 5_000;

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Events({ path: [id], query }) {
  return id ? html`<${One} id=${id} />` : html`<${Log} query=${query} />`;
}

/** @param {{query: URLSearchParams}} props */
function Log({ query }) {
  const text = query.toString();
  const filter = useMemo(() => filterOf(query), [text]);
  const now = moment.value;
  const isLive = !now && !filter.to && !filter.start;
  const [view, setView] = useState(/** @type {import("./events/tail.js").View} */ ({ shown: [], held: 0, isPaused: false, added: 0, isCut: false }));
  const [unfolded, setUnfolded] = useState({ all: false, positions: /** @type {Set<number>} */ (new Set()) });
  const tail = useRef(/** @type {ReturnType<typeof createTail> | null} */ (null));
  const end = useRef(false);
  /** The tail for which an older page is being read. */
  const reading = useRef(/** @type {ReturnType<typeof createTail> | null} */ (null));
  const scroll = useRef(/** @type {HTMLElement | null} */ (null));

  const first = useLoad(async (abort) => {
    // Listening begins before the page is read, so that no event is between the two.
    const own = createTail((next) => {
      if (next.isCut) end.current = false;
      setView(next);
    });
    tail.current?.stop();
    tail.current = own;
    const stop = isLive ? listen((event) => { if (passes(event, filter)) own.push(event); }) : () => {};
    abort.addEventListener("abort", () => { stop(); own.stop(); });
    const until = await beginning(writeMoment(now), abort);
    const start = await beginning(filter.start, abort);
    const before = until === null ? start : start === null ? until : Math.min(start, until);
    const found = await page(filter, before, abort);
    end.current = found.isEnd;
    own.begin(found.events);
    return true;
  }, [filter, now]);

  const older = () => {
    const own = tail.current;
    if (!own?.last() || end.current || reading.current === own) return;
    const before = own.hold();
    reading.current = own;
    const free = () => { if (reading.current === own) reading.current = null; };
    page(filter, before).then((found) => {
      free();
      if (own !== tail.current) return;
      // After a long pause, the list may have been replaced meanwhile, and another page continues the new list.
      if (own.extend(found.events, before)) end.current = found.isEnd;
      else older();
    }, (error) => { free(); own.release(); complain(error); });
  };
  const rest = (/** @type {string} */ before) => page(filter, Number(before)).then(({ events, isEnd }) => ({ rows: events, next: isEnd ? null : String(events.at(-1).position) }));
  const toggle = () => (view.isPaused ? tail.current?.resume() : tail.current?.pause());
  useEffect(() => register([
    { key: "p", label: "Pause or resume", run: toggle, enabled: () => isLive },
    { key: "o", label: "Unfold or fold all", run: () => setUnfolded({ all: !unfolded.all, positions: new Set() }) },
  ]));
  const height = (/** @type {number} */ index) => (isOpen(view.shown[index]?.position) ? ROW + OPENED : ROW);
  const isOpen = (/** @type {number} */ position) => unfolded.all !== unfolded.positions.has(position);
  // The events that the reader sees stay in place while new events are added above.
  useLayoutEffect(() => {
    const box = scroll.current;
    if (box && view.added > 0 && box.scrollTop > ROW) box.scrollTop += view.added * (unfolded.all ? ROW + OPENED : ROW);
  }, [view]);
  const flip = (/** @type {number} */ position) => setUnfolded(({ all, positions }) => {
    const next = new Set(positions);
    if (!next.delete(position)) next.add(position);
    return { all, positions: next };
  });
  return html`<div class="page events">
    <header class="bar"><h1>Events</h1>
      ${isLive ? html`<span class=${`state ${view.isPaused ? "paused" : connection.value}`}>${view.isPaused ? "paused" : connection.value}</span>
        <button onClick=${toggle} title="Pause or resume (p)">${view.isPaused ? "Resume" : "Pause"}</button>
        <span role="status">${view.isPaused && html`<strong>+${view.held.toLocaleString("en")}</strong> while paused`}</span>`
        : html`<span class="dim">${filter.start ? `from ${filter.start.startsWith("@") ? `position ${filter.start.slice(1)}` : filter.start} back` : filter.to ? "a period of the past" : "as of an earlier moment"}</span>
        ${!now && html`<button onClick=${() => change({ start: null, from: null, to: null })}>Back to live</button>`}`}
      <button onClick=${() => setUnfolded({ all: !unfolded.all, positions: new Set() })} title="Unfold or fold all (o)">${unfolded.all ? "Fold all" : "Unfold all"}</button>
      <${Link} to="/pipelines" query=${{ q: stringify(pipelineOf(filter)) }}>as a pipeline<//>
      <${Export} name="events" rows=${view.shown} cursor=${view.shown.length > 0 && !end.current ? String(view.shown.at(-1).position) : null} next=${rest} />
    </header>
    <${Filters} filter=${filter} />
    <${Histogram} filter=${filter} />
    ${first.error && html`<${Failure} error=${first.error} retry=${first.reload} />`}
    ${first.isLoading && view.shown.length === 0 && html`<${Loading} />`}
    ${first.value && view.shown.length === 0 && html`<${Empty}>${text ? "No event passes this filter." : html`The log is empty. <code>foldwork import</code> and <code>POST /aggregates/:id/events</code> fill it.`}<//>`}
    ${view.shown.length > 0 && html`<${Table} class="event-rows" label="Events, newest first" count=${view.shown.length} height=${height} scroll=${scroll} reachedEnd=${older} width="58rem"
      head=${html`<th class="narrow"><span class="hidden">Unfold</span></th><th class="position">Position</th><th class="when">Recorded</th><th>Type</th><th>Aggregate</th><th>Actor</th><th class="payload">Payload</th>`}
      row=${(/** @type {number} */ index) => row(view.shown[index], index, isOpen(view.shown[index].position), flip)} />`}
  </div>`;
}

/** @param {any} event @param {number} index @param {boolean} open @param {(position: number) => void} flip */
const row = (event, index, open, flip) => html`<tr key=${event.position} aria-rowindex=${index + 2}>
    <td class="narrow"><button class="quiet" aria-expanded=${open} aria-label=${`${open ? "Fold" : "Unfold"} event ${event.position}`} onClick=${() => flip(event.position)}>${open ? "▾" : "▸"}</button></td>
    <td class="number"><${Link} to=${`/events/${encodeURIComponent(event.event_id)}`}>${event.position}<//></td>
    <td class="when dim" title=${zoned(event.recorded_at)}>${clock(event.recorded_at, MILLISECONDS)}</td>
    <td title=${event.event_type}>${event.event_type}</td>
    <td><${Link} to=${`/a/${encodeURIComponent(event.aggregate_id)}`} query=${{ v: event.version }}><bdi>${event.aggregate_id}</bdi><//></td>
    <td class="dim" title=${event.actor}><bdi>${event.actor}</bdi></td>
    <td class="dim payload"><bdi>${short(stringify(event.payload) ?? "", 160)}</bdi></td>
  </tr>
  ${open && html`<tr key=${`${event.position} unfolded`}><td colspan="7" class="unfolded"><div tabindex="0" role="region" aria-label=${`Event ${event.position}`}>
    <p><${Link} to=${`/events/${encodeURIComponent(event.event_id)}`}>Causes and consequences<//> · version ${event.version} of <${Link} to=${`/a/${encodeURIComponent(event.aggregate_id)}`} query=${{ v: event.version }}><bdi>${event.aggregate_id}</bdi><//>${" "}
      · occurred ${event.occurred_at} · recorded ${event.recorded_at}</p>
    <${Value} value=${event.payload} />
    ${Object.keys(event.metadata ?? {}).length > 0 && html`<p class="dim">Metadata</p><${Value} value=${event.metadata} />`}</div></td></tr>`}`;

/** @param {string} time */
const bound = (time) => html`<strong title=${zoned(time)}>${clock(time, SECONDS)}</strong>`;

/** @param {{filter: import("./events/filter.js").Filter}} props */
function Histogram({ filter }) {
  const { types, except, type, project, actor, text, by, from, to } = filter;
  const now = moment.value;
  // An event that occurred before a moment may be recorded later, so a count by `occurred` uses the current log.
  const isOfNow = by === "occurred";
  const { value, error, reload } = useLoad((abort) => counted(filter, BUCKETS, isOfNow ? null : now, abort), [types, except, type, project, actor, text, by, isOfNow ? null : now]);
  useLive(reload, now && !isOfNow ? null : (event) => passes(event, filter), REFRESH_MS);
  if (error && !value) return html`<details class="dim"><summary>The histogram cannot be shown.</summary><${Failure} error=${error} retry=${reload} /></details>`;
  if (!value || value.total === 0) return null;
  return html`<section class="histogram">
    <${Scrubber} label="Period" unit="events" buckets=${value.buckets} from=${value.from} to=${value.to} range=${from || to ? { from: from || value.from, to: to || value.to } : null}
      brush=${(/** @type {any} */ range) => change({ from: range?.from ?? null, to: range?.to ?? null, start: null })} />
    <p class="dim">${value.total.toLocaleString("en")} events by the time at which they${" "}
      <select aria-label="Clock of the histogram" value=${by} onChange=${(/** @type {any} */ event) => change({ by: event.target.value === "occurred" ? "occurred" : null })}><option value="recorded">were recorded</option><option value="occurred">occurred</option></select>.${isOfNow && html`<${OfNow} title="This counts the events of the whole log." />`}
      ${(from || to) && html`Chosen: ${bound(from || value.from)} to ${bound(to || value.to)} <button class="quiet" onClick=${() => change({ from: null, to: null })}>Clear the period</button>`}</p>
  </section>`;
}
