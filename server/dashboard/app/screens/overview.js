// An overview of the workspace, the most urgent items first: decisions, stopped plugins, parked steps, lag, and the
// latest events.

import { html, useEffect, useState } from "../vendor/ui.js";
import { connection, listen } from "../api/feed.js";
import { moment } from "../state/route.js";
import { groups } from "../state/waiting.js";
import { Empty, Failure, label, Link, Loading, short, Time } from "../parts/basic.js";
import { useLoad } from "../parts/load.js";
import { NowNote } from "../parts/now.js";
import { loadStyle } from "../parts/style.js";
import { Lag, Parked, Projects, Roster, Stopped, System, Tasks, Verdict, Views } from "./overview/cards.js";
import { latest, LATEST, read } from "./overview/read.js";

loadStyle("overview");
/** The time between two reads while events arrive. */
const QUIET_MS = 1_000;
/** Plugins, parked steps and consumers change without an event, so everything is read again after this time. */
const REFRESH_MS = 10_000;

export default function Overview() {
  const now = moment.value;
  const { value, error, reload } = useLoad(read, [now]);
  const [fresh, setFresh] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    setFresh([]);
    if (now) return;
    /** @type {number | undefined} */
    let timer;
    /** @type {any[]} */
    let arrived = [];
    const stop = listen((event) => {
      arrived = [event, ...arrived].slice(0, LATEST);
      timer ??= setTimeout(() => { timer = undefined; setFresh(arrived); reload(); }, QUIET_MS);
    });
    const refresh = setInterval(() => { if (document.visibilityState === "visible") reload(); }, REFRESH_MS);
    return () => { clearTimeout(timer); clearInterval(refresh); stop(); };
  }, [now]);
  // If only the stream of events has ended, everything can still be read.
  useEffect(() => { if (!now && connection.value === "offline") reload(); }, [now, connection.value]);
  if (error && !value) return html`<div class="page"><h1>Overview</h1><${Failure} error=${error} retry=${reload} /></div>`;
  if (!value) return html`<div class="page"><h1>Overview</h1><${Loading} /></div>`;
  const failed = (groups.value ?? []).reduce((sum, group) => sum + (group.status === "failed" && group.unread ? group.count : 0), 0);
  const known = new Set();
  const events = [...fresh, ...value.events].filter(({ position }) => !known.has(position) && known.add(position)).sort((one, other) => other.position - one.position).slice(0, LATEST);
  return html`<div class="page overview">
    <h1><bdi>${value.workspace.name}</bdi></h1>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!now && (error ? html`<p class="verdict wrong" role="status">The server cannot be asked. What is shown was read before.</p>` : html`<${Verdict} found=${value} failed=${failed} />`)}
    ${value.consumers.head === 0 && html`<${Begin} />`}
    <${NowNote}>The past of plugins, parked steps, lag and the system is not kept. Their cards are of now.<//>
    <div class="cards">
      <${Tasks} tasks=${value.tasks} />
      <${Stopped} plugins=${value.plugins} />
      <${Parked} parked=${value.parked} />
      <${Views} found=${value.views} />
      <${Projects} found=${value.projects} />
      <${Lag} consumers=${value.consumers} parked=${value.parked} />
      <${Roster} roster=${value.roster} />
      <${System} info=${value.info} storage=${value.storage} plugins=${value.plugins} />
    </div>
    <section><h2><${Link} to="/events">Latest events<//> <${Link} to="/pipelines" query=${{ q: JSON.stringify(latest(value.end)) }} class="pipeline-link" title="Open as a pipeline" aria-label="Open the latest events as a pipeline">{ }<//></h2>
      ${events.length === 0 ? html`<${Empty}>${now ? "No event was recorded by this moment." : "The log is empty."}<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Latest events"><table class="rows"><thead class="hidden"><tr><th>Position</th><th>Type</th><th>Aggregate</th><th>Actor</th><th>Recorded</th></tr></thead><tbody>${events.map((event) => html`
        <tr key=${event.event_id}><td class="number"><${Link} to=${`/events/${encodeURIComponent(event.event_id)}`}>${event.position}<//></td><td>${event.event_type}</td>
          <td><${Link} to=${`/a/${encodeURIComponent(event.aggregate_id)}`} query=${{ v: event.version }}><bdi title=${event.aggregate_id}>${short(label(event.payload) || event.aggregate_id, 60)}</bdi><//></td><td class="dim"><bdi>${event.actor}</bdi></td><td class="dim"><${Time} at=${event.recorded_at} /></td></tr>`)}</tbody></table></div>`}
    </section>
  </div>`;
}

/** The first steps in an empty workspace. */
function Begin() {
  const append = `curl -sS ${location.origin}/api/v1/aggregates/first/events -H "Authorization: Bearer $FOLDWORK_TOKEN" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"aggregate_type": "article", "event_type": "article.created", "payload": {"title": "Hello"}}'`;
  return html`<section class="card begin" aria-label="What to do first"><h2>This workspace is empty</h2>
    <ol>
      <li><${Link} to="/settings/keys">Create a key<//> for your programs, and export it as <code>FOLDWORK_TOKEN</code>.</li>
      <li>Append the first event, or import a log or a git repository with <code>foldwork import</code>:<pre tabindex="0"><code>${append}</code></pre></li>
      <li><${Link} to="/types">Define a type of your own<//>: its fields, checks, and how each field folds.</li>
      <li><${Link} to="/pipelines">Query the states with a pipeline<//>, as of now or of any moment.</li>
      <li><${Link} to="/agents">Register an agent<//>, whose output waits for approval in the <${Link} to="/inbox">inbox<//>.</li>
    </ol></section>`;
}
