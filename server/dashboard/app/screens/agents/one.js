// One agent: its card, what it works on, the keys that act for it, and how its program connects.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { API, get, getAll } from "../../api/client.js";
import { listen } from "../../api/feed.js";
import { session } from "../../api/session.js";
import { moment } from "../../state/route.js";
import { Badge, Copy, Empty, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { useLoad } from "../../parts/load.js";
import { Act, Reason, refusal } from "../../parts/refused.js";
import { loadStyle } from "../../parts/style.js";
import { Value } from "../../parts/value.js";
import { CreateKey } from "../settings/create-key.js";
import { agentAt, tasksAt } from "./past.js";

loadStyle("call");
const QUIET_MS = 600;
const TASKS = 50;
const LEASE_S = 90;

/** @param {{id: string}} props */
export function One({ id }) {
  const path = `/agents/${encodeURIComponent(id)}`;
  const now = moment.value;
  const { value, error, reload } = useLoad(async (abort) => {
    if (now) return { agent: await agentAt(id, now, abort), card: null };
    const [agent, card] = await Promise.all([get(path, {}, abort), get(`${path}/card`, {}, abort)]);
    return { agent, card };
  }, [id, now]);
  const tasks = useLoad((abort) => (now ? tasksAt(id, now, TASKS, abort) : get("/mailbox", { assignee_id: id, status: "open", limit: TASKS }, abort)), [id, now]);
  useEffect(() => {
    if (now) return;
    /** @type {number | undefined} */
    let timer;
    const stop = listen((event) => { if (event.aggregate_type === "task" || event.aggregate_id === id) timer ??= setTimeout(() => { timer = undefined; reload(); tasks.reload(); }, QUIET_MS); });
    return () => { clearTimeout(timer); stop(); };
  }, [id, now]);
  const heading = html`<p class="dim"><${Link} to="/agents">Agents<//></p>`;
  if (error && !value) return html`<div class="page">${heading}<h1>Agent</h1>${error.status === 404 && now && html`<p>This agent was not registered at this moment.</p>`}<${Failure} error=${error} retry=${reload} /></div>`;
  if (!value) return html`<div class="page">${heading}<h1>Agent</h1><${Loading} /></div>`;
  const { agent, card } = value;
  return html`<div class="page agent">${heading}${error && html`<${Failure} error=${error} retry=${reload} />`}
    <header class="bar"><h1><bdi>${agent.name}</bdi></h1> <${Badge} kind=${agent.status} /> <span class="dim">${now ? "as of the moment; presence is not kept" : agent.plugin ? html`the plugin <${Link} to=${`/plugins/${agent.plugin}`}>${agent.plugin}<//> does its work` : html`last heard <${Time} at=${agent.last_seen_at} />`}</span>
      <${Link} to=${`/a/${encodeURIComponent(id)}`}>history<//></header>
    ${agent.description && html`<p dir="auto">${agent.description}</p>`}
    <div class="halves">
      <section><h2>Open tasks</h2>
        ${tasks.error && html`<${Failure} error=${tasks.error} retry=${tasks.reload} />`}
        ${!tasks.value && !tasks.error && html`<${Loading} />`}
        ${tasks.value?.data.length === 0 && html`<${Empty}>No task is open.<//>`}
        <ul class="plain">${tasks.value?.data.map((/** @type {any} */ task) => html`<li key=${task.id}><${Link} to=${`/inbox/${task.id}`} class=${task.unread ? "unread" : ""}><bdi>${task.title}</bdi><//> <${Badge} kind=${task.status} /> <span class="dim"><${Time} at=${task.updated_at} /></span></li>`)}</ul>
        ${tasks.value?.next_cursor && html`<p class="dim">The latest ${TASKS} are shown.</p>`}
      </section>
      ${!card ? html`<section><h2>State</h2><${Value} value=${state(agent)} /></section>` : html`<section><h2>Card</h2>
        <dl class="tree"><div><dt>Skills</dt><dd>${card.skills.length === 0 ? html`<span class="dim">none: the agent subscribes to no trait</span>` : html`<ul class="plain">${card.skills.map((/** @type {any} */ skill) => html`<li key=${skill.id}><strong>${skill.name}</strong> <span class="dim">${skill.description}</span></li>`)}</ul>`}</dd></div>
          <div><dt>Capabilities</dt><dd>${Object.keys(card.capabilities).length ? html`<${Value} value=${card.capabilities} />` : html`<span class="dim">none stated</span>`}</dd></div>
          <div><dt>Version</dt><dd>${card.version}</dd></div><div><dt>Id</dt><dd><code>${card.id}</code> <${Copy} text=${card.id} /></dd></div></dl>
      </section>`}
    </div>
    ${now ? html`<p class="dim">Its keys, and how it connects, are shown as of now only.</p>` : !agent.plugin && html`<${Keys} agent=${agent} /><${Connect} agent=${agent} />`}
  </div>`;
}

/** The fields of an agent's past state, without the fields that the page shows elsewhere. @param {any} agent */
const state = ({ id, name, description, status, ...rest }) => Object.fromEntries(Object.entries(rest).filter(([field]) => !field.startsWith("_") && field !== "aggregate_type"));

/** @param {{agent: any}} props */
function Keys({ agent }) {
  const { value, error, reload } = useLoad((abort) => getAll("/keys", abort), [agent.id]);
  const [isCreating, setCreating] = useState(false);
  const keys = (value?.data ?? []).filter((/** @type {any} */ key) => (key.agent_ids ?? []).includes(agent.id));
  const refused = refusal();
  return html`<section><h2>Keys bound to it</h2><p class="dim">Such a key reads, works on the tasks of its agents, and decides nothing.</p>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${value && keys.length === 0 && html`<${Empty}>No key is bound to this agent.<//>`}
    <ul class="plain">${keys.map((/** @type {any} */ key) => html`<li key=${key.id}><bdi>${key.name}</bdi> <code>${key.display}</code> <span class="dim">${key.scopes.join(", ")}, used <${Time} at=${key.last_used_at} /></span></li>`)}</ul>
    <${Act} refused=${refused} onClick=${() => setCreating(true)}>Create a key for it<//> <${Link} to="/settings/keys">all keys<//><${Reason} refused=${refused} />
    ${isCreating && html`<${CreateKey} agent=${agent} own=${value?.data.find((/** @type {any} */ key) => key.id === session.value?.id)} close=${() => setCreating(false)} created=${reload} />`}
  </section>`;
}

/** The steps of a program as commands, in order. @param {any} agent */
function commands(agent) {
  const base = location.origin + API;
  const call = (/** @type {string} */ path, /** @type {object} */ body) => `curl -sS ${base}${path} -H "Authorization: Bearer $AGENT_KEY" -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  return [
    ["Receive tasks as they come. The stream continues after what was acknowledged.", `curl -sSN ${base}/agents/${agent.id}/events -H "Authorization: Bearer $AGENT_KEY" -H 'Accept: text/event-stream'`],
    ["Or get a socket for clients of Supabase Realtime and Phoenix.", call("/agents/connect", { agent_ids: [agent.id] })],
    ["Report presence.", call("/agents/heartbeat", { agent_ids: [agent.id] })],
    ["Claim the next task.", call("/mailbox/claim-next", { agent_id: agent.id, lease_seconds: LEASE_S })],
    ["Deliver output for approval.", call("/mailbox/$TASK/artifacts", { agent_id: agent.id, name: "summary", text: "…" })],
    ["Complete the task.", call("/mailbox/$TASK/complete", { agent_id: agent.id })],
  ];
}

/** @param {{agent: any}} props */
function Connect({ agent }) {
  return html`<section class="connect"><h2>Connect</h2><p class="dim">A program works as this agent with a key that is bound to it, here <code>$AGENT_KEY</code>. <code>$TASK</code> is the id of a claimed task.</p>
    <ol>${commands(agent).map(([what, command]) => html`<li key=${what}>${what}<div class="call"><pre tabindex="0"><code>${command}</code></pre><${Copy} text=${command} /></div></li>`)}</ol></section>`;
}
