// Agents: their work and presence, and one of them with its card, its keys, its tasks and how it connects.

import { html, useEffect, useState } from "../vendor/ui.js";
import { get, getAll, post } from "../api/client.js";
import { listen } from "../api/feed.js";
import { has } from "../api/session.js";
import { go, moment, to } from "../state/route.js";
import { Badge, Empty, Failure, Link, Loading, Time } from "../parts/basic.js";
import { Confirm } from "../parts/confirm.js";
import { Columns, ExportAll, Heads, inOrder, orderOf, shownColumns } from "../parts/listing.js";
import { useLoad } from "../parts/load.js";
import { loadStyle } from "../parts/style.js";
import { Table } from "../parts/table.js";
import { One } from "./agents/one.js";
import { agentsAt, rosterAt, workAt } from "./agents/past.js";

loadStyle("agents");
const PAGE = 200;
const QUIET_MS = 600;
/** Presence changes without an event, so the roster is read again at intervals. */
const PRESENCE_MS = 15_000;

const FIRST = "created_at";
/** @type {import("../parts/listing.js").Column[]} */
const COLUMNS = [
  { id: "name", label: "Agent", sort: "name" }, { id: "status", label: "State", sort: "status" }, { id: "pending", label: "Waiting", sort: "pending" }, { id: "in_progress", label: "In progress", sort: "in_progress" },
  { id: "review", label: "In review", sort: "review" }, { id: "oldest", label: "Oldest waiting", sort: "oldest_pending_at" }, { id: "traits", label: "Traits", class: "traits" }, { id: "seen", label: "Last heard", sort: "last_seen_at" },
];
const SORTED = [FIRST, ...COLUMNS.flatMap(({ sort }) => sort ?? [])];

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Agents({ path: [id], query }) {
  return id ? html`<${One} key=${id} id=${id} />` : html`<${Roster} query=${query} />`;
}

/** @param {{query: URLSearchParams}} props */
function Roster({ query }) {
  const now = moment.value;
  const order = orderOf(query, FIRST, SORTED);
  const columns = shownColumns("agents", COLUMNS);
  const [isCreating, setCreating] = useState(false);
  const { value, error, reload } = useLoad(async (abort) => {
    if (now) return rosterAt(now, PAGE, abort);
    const [agents, roster] = await Promise.all([get("/agents", { limit: PAGE }, abort), getAll("/agents/roster", abort)]);
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
  const rows = inOrder((value?.agents ?? []).map((/** @type {any} */ agent) => ({ pending: 0, in_progress: 0, review: 0, ...value?.work.get(agent.id), ...agent })), order);
  const why = !has("api:write") ? "This needs the scope api:write." : moment.value ? "Nothing can be changed in the past." : "";
  return html`<div class="page agents"><header class="bar"><h1>Agents</h1>${value && html`<span class="dim" role="status">${value.agents.length}${value.isCut ? "+" : ""} agents${now ? " at this moment" : `, ${value.agents.filter((/** @type {any} */ agent) => agent.status === "active").length} active`}</span>`}
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(agentsAt(now)) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//> <${Link} to="/pipelines" query=${{ q: JSON.stringify(workAt(now)) }} title="Open their work as a pipeline" aria-label="Open their work as a pipeline">{ work }<//>
      <${Columns} list="agents" all=${COLUMNS} shown=${columns} /><${ExportAll} name="agents" pipeline=${agentsAt(now)} fields=${["name", "description", "status", "subscribed_traits", "_created_at"]} />
      <button disabled=${Boolean(why)} title=${why} onClick=${() => setCreating(true)}>Register an agent…</button></header>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!value && !error && html`<${Loading} />`}
    ${value?.agents.length === 0 && html`<${Empty}>${now ? "No agent was registered at this moment." : "No agent is registered."} An agent is a program that gets tasks, works on them, and delivers output for approval.<//>`}
    ${value && value.agents.length > 0 && html`<${Table} class="agent-rows" label="Agents" count=${value.agents.length} width="50rem"
      head=${html`<${Heads} columns=${columns} order=${order} otherwise=${FIRST} />`}
      row=${(/** @type {number} */ index) => html`<tr key=${rows[index].id} aria-rowindex=${index + 2}>${columns.map(({ id }) => cellOf(id, rows[index], now !== null))}</tr>`} />`}
    ${isCreating && html`<${Register} close=${() => setCreating(false)} />`}
  </div>`;
}

/** @param {string} id of the column @param {any} agent with its work @param {boolean} isPast */
function cellOf(id, agent, isPast) {
  if (id === "name") return html`<td key=${id}><${Link} to=${`/agents/${agent.id}`}><bdi>${agent.name}</bdi><//></td>`;
  if (id === "status") return html`<td key=${id}><${Badge} kind=${agent.status} /></td>`;
  if (id === "oldest") return html`<td key=${id} class="dim"><${Time} at=${agent.oldest_pending_at} /></td>`;
  if (id === "traits") return html`<td key=${id} class="dim traits">${agent.subscribed_traits.join(", ") || "–"}</td>`;
  if (id === "seen") return html`<td key=${id} class="dim">${isPast ? html`<span title="Presence is not kept.">–</span>` : agent.plugin ? html`plugin <${Link} to=${`/plugins/${agent.plugin}`}>${agent.plugin}<//>` : html`<${Time} at=${agent.last_seen_at} />`}</td>`;
  return html`<td key=${id} class="number">${agent[id]}</td>`;
}

/** @param {{close: () => void}} props */
function Register({ close }) {
  const types = useLoad((abort) => getAll("/aggregate-types", abort), []);
  const traits = [...new Set((types.value?.data ?? []).flatMap((/** @type {any} */ type) => type.traits))].sort();
  const submit = async (/** @type {FormData} */ form) => {
    const body = { name: String(form.get("name")).trim(), description: String(form.get("description")).trim(), subscribed_traits: form.getAll("trait").map(String), capabilities: {} };
    const agent = await post("/agents", body);
    go(to(`/agents/${agent.id}`));
  };
  return html`<${Confirm} title="Register an agent" action="Register" submit=${submit} close=${close}>
    <label>Name <input name="name" required autofocus maxlength="200" /></label>
    <label>What it does <textarea name="description" rows="2"></textarea></label>
    ${traits.length > 0 && html`<fieldset><legend>Gets tasks for new aggregates of types with these traits</legend>${traits.map((trait) => html`<label class="check" key=${trait}><input type="checkbox" name="trait" value=${trait} /> ${trait}</label>`)}</fieldset>`}
  <//>`;
}
