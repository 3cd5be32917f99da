// One event: its content, its cause, and its consequences.

import { html } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { stringify } from "../../api/json.js";
import { Badge, Copy, Empty, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { useLive, useLoad } from "../../parts/load.js";
import { OfNow } from "../../parts/now.js";
import { Value } from "../../parts/value.js";

const QUIET_MS = 300;

/** @param {{id: string}} props */
export function One({ id }) {
  const { value: event, error, reload } = useLoad((abort) => get(`/events/${encodeURIComponent(id)}`, {}, abort), [id]);
  useLive(reload, (other) => other.metadata?.caused_by === id || (event !== undefined && other.metadata?.task_id === event.aggregate_id), QUIET_MS);
  const heading = html`<p class="dim"><${Link} to="/events">Events<//></p>`;
  if (error && !event) return html`<div class="page">${heading}<h1>Event</h1><${Failure} error=${error} retry=${reload} /></div>`;
  if (!event) return html`<div class="page">${heading}<h1>Event</h1><${Loading} /></div>`;
  const { metadata = {}, caused = [] } = event;
  const cause = typeof metadata.caused_by === "string" ? metadata.caused_by : "";
  const isDerived = metadata.source === "plugin" && cause;
  const causing = html`<${Link} to=${`/events/${encodeURIComponent(cause)}`}><code>${cause}</code><//>`;
  return html`<div class="page event">${heading}${error && html`<${Failure} error=${error} retry=${reload} />`}
    <header class="bar"><h1>${event.event_type}</h1> <span class="dim">position ${event.position}</span> <${Copy} text=${() => stringify(event, 2)}>copy JSON<//>
      <span class="grow"></span><${Link} to="/events" query=${{ start: `@${event.position}` }}>in the log<//></header>
    <dl class="tree">
      <div><dt>Aggregate</dt><dd><${Link} to=${`/a/${encodeURIComponent(event.aggregate_id)}`} query=${{ v: event.version }}><bdi>${event.aggregate_id}</bdi><//> at version ${event.version} <${Badge} kind="type">${event.aggregate_type}<//></dd></div>
      <div><dt>Actor</dt><dd><${Link} to="/events" query=${{ actor: event.actor }}><bdi>${event.actor}</bdi><//></dd></div>
      <div><dt>Occurred</dt><dd>${event.occurred_at} (<${Time} at=${event.occurred_at} />)</dd></div>
      <div><dt>Recorded</dt><dd>${event.recorded_at} (<${Time} at=${event.recorded_at} />)</dd></div>
      <div><dt>Event id</dt><dd><code>${event.event_id}</code></dd></div>
    </dl>
    <div class="halves">
      <section><h2>Payload</h2><${Value} value=${event.payload} />
        ${Object.keys(metadata).length > 0 && html`<h2>Metadata</h2><${Value} value=${metadata} />`}</section>
      <section>
        <h2>Cause</h2>
        ${isDerived ? html`<p>Derived by the plugin <${Link} to=${`/plugins/${metadata.plugin}`}>${metadata.plugin}<//> from the event ${causing}.</p>`
          : cause ? html`<p>Appended by <bdi>${event.actor}</bdi>, who named the event ${causing} as the cause.</p>`
          : html`<p>Appended by <bdi>${event.actor}</bdi>. No plugin derived it from another event.</p>`}
        <h2>Consequences<${OfNow} title="This also lists what followed after the moment." /></h2>
        ${caused.length === 0 && html`<${Empty}>No other event, edge or task is known to follow from this one.<//>`}
        ${caused.length > 0 && html`<ol class="plain" aria-label="Consequences">${caused.map((/** @type {any} */ effect) => html`<li key=${effect.event_id ?? effect.aggregate_id}>
          ${effect.position && html`<span class="number dim">${effect.position}</span> `}${effect.event_id ? html`<${Link} to=${`/events/${encodeURIComponent(effect.event_id)}`}>${effect.event_type}<//>` : effect.event_type}
          of <${Link} to=${`/a/${encodeURIComponent(effect.aggregate_id)}`}><bdi>${effect.aggregate_id}</bdi><//> ${effect.plugin && html`<span class="dim">by the plugin <${Link} to=${`/plugins/${effect.plugin}`}>${effect.plugin}<//></span>`}</li>`)}</ol>`}
      </section>
    </div>
  </div>`;
}
