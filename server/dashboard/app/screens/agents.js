// Agents: their work and presence, and one of them with its card, its keys, its tasks and how it connects.

import { html, useEffect, useState } from "../vendor/ui.js";
import { get, post } from "../api/client.js";
import { listen } from "../api/feed.js";
import { has } from "../api/session.js";
import { go, moment, to } from "../state/route.js";
import { Badge, Empty, Failure, Link, Loading, Time } from "../parts/basic.js";
import { Dialog } from "../parts/dialog.js";
import { useLoad } from "../parts/load.js";
import { loadStyle } from "../parts/style.js";
import { Table } from "../parts/table.js";
import { One } from "./agents/one.js";
import { agentsAt, rosterAt, workAt } from "./agents/past.js";

loadStyle("agents");
const PAGE = 200;
const QUIET_MS = 600;
/** Presence changes without an event, so the roster is read again now and then. */
const PRESENCE_MS = 15_000;

/** @param {{path: string[]}} props */
export default function Agents({ path: [id] }) {
  return id ? html`<${One} key=${id} id=${id} />` : html`<${Roster} />`;
}

function Roster() {
  const now = moment.value;
  const [isCreating, setCreating] = useState(false);
  const { value, error, reload } = useLoad(async (abort) => {
    if (now) return rosterAt(now, PAGE, abort);
    const [agents, roster] = await Promise.all([get("/agents", { limit: PAGE }, abort), get("/agents/roster", {}, abort)]);
    return { agents: agents.data, isCut: Boolean(agents.next_cursor), work: new Map(roster.data.map((/** @type {any} */ row) => [row.agent_id, row])) };
  }, [now]);
  useEffect(() => {
    if (now) return;
    /** @type {number | undefined} */
    let timer;
    const stop = listen((event) => { if (event.aggregate_type === "agent" || event.aggregate_type === "task") timer ??= setTimeout(() => { timer = undefined; reload(); }, QUIET_MS); });
    const presence = setInterval(() => { if (document.visibilityState === "visible") reload(); }, PRESENCE_MS);
    return () => { clearTimeout(timer); clearInterval(presence); stop(); };
  }, [now]);
  const why = !has("api:write") ? "This needs the scope api:write." : moment.value ? "Nothing can be changed in the past." : "";
  return html`<div class="page agents"><header class="bar"><h1>Agents</h1>${value && html`<span class="dim" role="status">${value.agents.length}${value.isCut ? "+" : ""} agents${now ? " at this moment" : `, ${value.agents.filter((/** @type {any} */ agent) => agent.status === "active").length} active`}</span>`}
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(agentsAt(now)) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//> <${Link} to="/pipelines" query=${{ q: JSON.stringify(workAt(now)) }} title="Open their work as a pipeline" aria-label="Open their work as a pipeline">{ work }<//>
      <button disabled=${Boolean(why)} title=${why} onClick=${() => setCreating(true)}>Register an agent…</button></header>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!value && !error && html`<${Loading} />`}
    ${value?.agents.length === 0 && html`<${Empty}>${now ? "No agent was registered at this moment." : "No agent is registered."} An agent is a program that gets tasks, works on them, and delivers output for approval.<//>`}
    ${value && value.agents.length > 0 && html`<${Table} class="agent-rows" label="Agents" count=${value.agents.length} width="50rem"
      head=${html`<th>Agent</th><th>State</th><th>Waiting</th><th>In progress</th><th>In review</th><th>Oldest waiting</th><th class="traits">Traits</th><th>Last heard</th>`}
      row=${(/** @type {number} */ index) => { const agent = value.agents[index]; const work = value.work.get(agent.id) ?? {}; return html`<tr key=${agent.id} aria-rowindex=${index + 2}>
        <td><${Link} to=${`/agents/${agent.id}`}><bdi>${agent.name}</bdi><//></td><td><${Badge} kind=${agent.status} /></td>
        <td class="number">${work.pending ?? 0}</td><td class="number">${work.in_progress ?? 0}</td><td class="number">${work.review ?? 0}</td><td class="dim"><${Time} at=${work.oldest_pending_at} /></td>
        <td class="dim traits">${agent.subscribed_traits.join(", ") || "–"}</td><td class="dim">${now ? html`<span title="Presence is not kept.">–</span>` : agent.plugin ? html`plugin <${Link} to=${`/plugins/${agent.plugin}`}>${agent.plugin}<//>` : html`<${Time} at=${agent.last_seen_at} />`}</td></tr>`; }} />`}
    ${isCreating && html`<${Register} close=${() => setCreating(false)} />`}
  </div>`;
}

/** @param {{close: () => void}} props */
function Register({ close }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const types = useLoad((abort) => get("/aggregate-types", {}, abort), []);
  const traits = [...new Set((types.value?.data ?? []).flatMap((/** @type {any} */ type) => type.traits))].sort();
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const body = { name: String(form.get("name")).trim(), description: String(form.get("description")).trim(), subscribed_traits: form.getAll("trait").map(String), capabilities: {} };
    post("/agents", body).then((agent) => { close(); go(to(`/agents/${agent.id}`)); }, setError);
  };
  return html`<${Dialog} title="Register an agent" close=${close}><form onSubmit=${send}>
    <label>Name <input name="name" required autofocus maxlength="200" /></label>
    <label>What it does <textarea name="description" rows="2"></textarea></label>
    ${traits.length > 0 && html`<fieldset><legend>Gets tasks for new aggregates of types with these traits</legend>${traits.map((trait) => html`<label class="check" key=${trait}><input type="checkbox" name="trait" value=${trait} /> ${trait}</label>`)}</fieldset>`}
    ${error && html`<${Failure} error=${error} />`}
    <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary">Register</button></footer></form><//>`;
}
