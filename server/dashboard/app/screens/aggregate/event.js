// An event with its cause and its consequences.

import { html, useState } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { Link, Time } from "../../parts/basic.js";
import { useLoad } from "../../parts/load.js";
import { OfNow } from "../../parts/now.js";
import { Raw, Value } from "../../parts/value.js";

/** @param {{event: any}} props */
export function Event({ event }) {
  const [isRaw, setRaw] = useState(false);
  return html`<article class="card event"><header class="bar"><h2><code>${event.event_type}</code></h2><button class="quiet" aria-pressed=${isRaw} onClick=${() => setRaw(!isRaw)}>Event as JSON</button></header>
    <p class="dim"><${Link} to=${`/events/${event.event_id}`}>position ${event.position.toLocaleString("en")}<//> · <bdi>${event.actor}</bdi> · <${Time} at=${event.occurred_at} />
      ${event.recorded_at !== event.occurred_at && html` · recorded <${Time} at=${event.recorded_at} />`}</p>
    ${isRaw ? html`<${Raw} value=${event} />` : html`<${Value} value=${event.payload} />`}
    <${Causes} key=${event.event_id} event=${event} />
  </article>`;
}

/** @param {{event: any}} props */
function Causes({ event }) {
  const cause = event.metadata?.caused_by;
  const { value } = useLoad(async (abort) => {
    const [own, causing] = await Promise.all([
      get(`/events/${event.event_id}`, {}, abort).catch(() => null),
      cause ? get(`/events/${cause}`, {}, abort).catch(() => null) : null,
    ]);
    return { caused: own?.caused ?? [], causing };
  }, [event.event_id]);
  const place = (/** @type {any} */ other) => html`<${Link} to=${`/a/${encodeURIComponent(other.aggregate_id)}`} query=${{ v: other.version }}><code>${other.event_type}</code> of <bdi>${other.aggregate_id}</bdi><//>`;
  const task = event.metadata?.task_id;
  return html`<dl class="causes">
    ${(cause || event.metadata?.plugin) && html`<div><dt>Caused by</dt><dd>${value?.causing ? place(value.causing) : cause && html`<${Link} to=${`/events/${cause}`}><code>${cause}</code><//>`}${event.metadata.plugin && html` <span class="dim">through the plugin ${event.metadata.plugin}</span>`}</dd></div>`}
    ${task && html`<div><dt>Approved in</dt><dd><${Link} to=${`/inbox/${encodeURIComponent(task)}`}>task <bdi>${task}</bdi><//></dd></div>`}
    ${value && value.caused.length > 0 && html`<div><dt>Caused<${OfNow} title="This also lists what followed after the moment." /></dt><dd><ul class="plain">${value.caused.map((/** @type {any} */ other, /** @type {number} */ index) => html`<li key=${other.event_id ?? index}>${other.event_type ? place(other) : html`<${Link} to=${`/a/${encodeURIComponent(other.aggregate_id)}`}><bdi>${other.aggregate_id}</bdi><//>`}${other.plugin && html` <span class="dim">by ${other.plugin}</span>`}</li>`)}</ul></dd></div>`}
  </dl>`;
}
