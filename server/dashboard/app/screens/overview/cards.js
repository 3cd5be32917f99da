// The cards of the first screen.

import { html } from "../../vendor/ui.js";
import { moment } from "../../state/route.js";
import { Badge, Empty, Failure, label, Link, short, Time } from "../../parts/basic.js";
import { OfNow } from "../../parts/now.js";
import { bytes } from "../../parts/size.js";
import { agentsAt } from "../agents/past.js";
import { newest, SHOWN, waiting } from "./read.js";

/** The columns of a saved pipeline's rows. */
const COLUMNS = 3;

/** @param {{title: string, to?: string, kind?: string, q?: any[], isNow?: boolean, children?: any}} props `q` is the pipeline that the card shows */
const Card = ({ title, to, kind = "", q, isNow, children }) => html`<section class=${`card ${kind}`}><h2>${to ? html`<${Link} to=${to}>${title}<//>` : title}${isNow && html`<${OfNow} />`}${q && html` <${Link} to="/pipelines" query=${{ q: JSON.stringify(q) }} class="pipeline-link" title="Open as a pipeline" aria-label=${`Open as a pipeline: ${title}`}>{ }<//>`}</h2>${children}</section>`;

/** The lag from which a consumer counts as behind. A smaller lag is normal right after an append. */
const BEHIND = 100;
/** The share of used storage from which the storage counts as full. */
const FULL = 0.9;

/** The problems that need attention, each with the screen that solves the problem. @param {any} found @param {number} failed the number of unread failed tasks @returns {[string, string][]} */
function problems({ workspace, consumers, plugins, parked, storage }, failed) {
  const many = (/** @type {number} */ count, /** @type {string} */ one, /** @type {string} */ some) => `${count.toLocaleString("en")} ${count === 1 ? one : some}`;
  const stopped = (plugins.data ?? []).filter((/** @type {any} */ plugin) => plugin.status !== "running").length;
  const steps = (parked.data ?? []).reduce((/** @type {number} */ sum, /** @type {any} */ group) => sum + group.count, 0);
  const behind = consumers.consumers.filter((/** @type {any} */ consumer) => consumer.lag > BEHIND);
  const share = storage.quota_bytes ? Number(String(storage.used_bytes)) / Number(String(storage.quota_bytes)) : 0;
  return /** @type {[string, string][]} */ ([
    workspace.delete_at && ["/settings/workspace", "This workspace is about to be deleted"],
    stopped > 0 && ["/plugins", many(stopped, "plugin is stopped", "plugins are stopped")],
    steps > 0 && ["/parked", many(steps, "step is parked", "steps are parked")],
    ...behind.map((/** @type {any} */ consumer) => ["/settings/server", `${consumer.name} is ${many(consumer.lag, "event", "events")} behind`]),
    failed > 0 && ["/inbox?view=failed", many(failed, "task has failed", "tasks have failed")],
    share >= FULL && ["/files", `${Math.round(100 * share)} % of the storage is used`],
  ].filter(Boolean));
}

/** Whether all is well, in one line. @param {{found: any, failed: number}} props */
export function Verdict({ found, failed }) {
  const wrong = problems(found, failed);
  const unread = [found.plugins, found.parked, found.storage].some((part) => part.error);
  if (wrong.length === 0) return html`<p class="verdict" role="status">${unread ? "Not everything could be read. What could be read is well." : html`<strong>All is well.</strong> <span class="dim">No plugin is stopped, no step is parked, no task has failed, and every consumer is up to date.</span>`}</p>`;
  return html`<div class="verdict wrong" role="status"><ul class="plain" aria-label="What needs somebody">${wrong.map(([to, text]) => { const [path, query = ""] = to.split("?"); return html`<li key=${text}><${Link} to=${path} query=${Object.fromEntries(new URLSearchParams(query))}>${text}<//></li>`; })}</ul></div>`;
}

/** @param {{plugins: any}} props */
export function Stopped({ plugins }) {
  const stopped = (plugins.data ?? []).filter((/** @type {any} */ plugin) => plugin.status !== "running");
  if (stopped.length === 0) return null;
  return html`<${Card} title=${`${stopped.length} ${stopped.length === 1 ? "plugin is" : "plugins are"} stopped`} to="/plugins" kind="urgent" isNow><ul class="plain">${stopped.map((/** @type {any} */ plugin) => html`
    <li key=${plugin.name}><${Link} to=${`/plugins/${plugin.name}`}>${plugin.name}<//> <${Badge} kind=${plugin.status} /> <span class="dim">${plugin.last_error?.message}</span></li>`)}</ul><//>`;
}

/** The saved pipelines, and the first rows of the pipeline that changed last. @param {{found: any}} props */
export function Views({ found }) {
  const q = newest("view", moment.value);
  if (found.error) return html`<${Card} title="Saved pipelines" to="/pipelines" q=${q}><${Failure} error=${found.error} /><//>`;
  const [first, ...others] = found.views;
  if (!first) return html`<${Card} title="Saved pipelines" to="/pipelines" q=${q}><${Empty}>${moment.value ? "No pipeline was saved at this moment." : html`No pipeline is saved. <${Link} to="/pipelines">Write one<//>`}<//><//>`;
  const name = (/** @type {any} */ view) => html`<${Link} to=${`/pipelines/${encodeURIComponent(view._id)}`}><bdi>${view.name ?? view._id}</bdi><//>`;
  return html`<${Card} title="Saved pipelines" to="/pipelines" q=${q}>
    <p>${name(first)} <span class="dim">${first.pipeline?.length ?? 0} stages</span></p>
    ${found.rows.error ? html`<${Failure} error=${found.rows.error} />` : html`<${FirstRows} rows=${found.rows} />`}
    ${others.length > 0 && html`<ul class="plain">${others.map((/** @type {any} */ view) => html`<li key=${view._id}>${name(view)} <span class="dim">changed <${Time} at=${view._last_event_at} /></span></li>`)}</ul>`}<//>`;
}

/** @param {{rows: any[]}} props */
function FirstRows({ rows }) {
  if (rows.length === 0) return html`<${Empty}>No row comes out of it.<//>`;
  const isTable = rows.every((row) => typeof row === "object" && row !== null && !Array.isArray(row));
  const columns = isTable ? [...new Set(rows.flatMap(Object.keys))].filter((name) => name !== "_id" || !label(rows[0])).slice(0, COLUMNS) : ["value"];
  return html`<table class="rows first-rows"><thead><tr>${columns.map((column) => html`<th key=${column}>${column}</th>`)}</tr></thead><tbody>${rows.map((row, index) => html`
    <tr key=${index}>${columns.map((column) => html`<td key=${column}><bdi>${cell(isTable ? row[column] : row)}</bdi></td>`)}</tr>`)}</tbody></table>`;
}

/** @param {any} value */
const cell = (value) => (typeof value === "number" && !Number.isInteger(value) ? value.toFixed(1) : value === null || value === undefined ? "" : short(value, 60));

/** @param {{found: any}} props */
export function Projects({ found }) {
  const projects = found.results ?? [];
  return html`<${Card} title="Projects" to="/projects" q=${newest("project", moment.value)}>${found.error ? html`<${Failure} error=${found.error} />` : projects.length === 0 ? html`<${Empty}>${moment.value ? "There was no project at this moment." : "There is no project."}<//>` : html`<ul class="plain">${projects.map((/** @type {any} */ project) => html`
    <li key=${project._id}><${Link} to=${`/projects/${encodeURIComponent(project.slug ?? project._id)}`}><bdi>${project.name ?? project._id}</bdi><//> <span class="dim"><bdi>${short(project.description ?? "", 80)}</bdi></span></li>`)}</ul>`}<//>`;
}

/** @param {{tasks: any}} props */
export function Tasks({ tasks }) {
  if (tasks.error) return html`<${Card} title="Waiting for a decision" to="/inbox"><${Failure} error=${tasks.error} /><//>`;
  const count = tasks.data.length;
  return html`<${Card} title=${count === 0 ? "Waiting for a decision" : `${count}${tasks.next_cursor ? "+" : ""} ${count === 1 ? "task waits" : "tasks wait"} for a decision`} to="/inbox" kind=${count ? "waiting" : ""} q=${waiting(moment.value)}>
    ${count === 0 ? html`<${Empty}>${moment.value ? "Nothing waited for people at this moment." : "Nothing waits for people."}<//>` : html`<ul class="plain">${tasks.data.slice(0, SHOWN).map((/** @type {any} */ task) => html`
      <li key=${task.id}><${Link} to=${`/inbox/${task.id}`} class=${task.unread ? "unread" : ""}><bdi>${task.title}</bdi><//> <${Badge} kind=${task.status} />${task.overdue && html` <${Badge} kind="overdue" />`} <span class="dim"><${Time} at=${task.updated_at} /></span></li>`)}</ul>`}<//>`;
}

/** @param {{parked: any}} props */
export function Parked({ parked: { data: groups = [], error } }) {
  if (groups.length === 0 && !error) return null;
  const count = groups.reduce((/** @type {number} */ sum, /** @type {any} */ group) => sum + group.count, 0);
  return html`<${Card} title=${count ? `${count.toLocaleString("en")} parked ${count === 1 ? "step" : "steps"}` : "Parked steps"} to="/parked" kind=${count ? "urgent" : ""} isNow>
    ${error ? html`<${Failure} error=${error} />` : html`<ul class="plain">${groups.slice(0, SHOWN).map((/** @type {any} */ group) => html`
      <li key=${[group.plugin, group.hook, group.kind, group.line].join(" ")}><strong class="number">${group.count}</strong> <${Link} to="/parked" query=${{ plugin: group.plugin }}>${group.plugin}<//> <span class="dim">${group.hook}${group.line ? `, line ${group.line}` : ""}: ${group.message.slice(0, 120)}</span></li>`)}</ul>
      ${groups.length > SHOWN && html`<p class="dim">and ${groups.length - SHOWN} more groups</p>`}`}<//>`;
}

/** @param {{consumers: any, parked: any}} props */
export function Lag({ consumers, parked }) {
  const behind = consumers.consumers.filter((/** @type {any} */ consumer) => consumer.lag > 0);
  return html`<${Card} title="The log" to="/events" isNow><dl class="facts"><div><dt>Events</dt><dd class="number">${consumers.head.toLocaleString("en")}</dd></div>
    ${consumers.consumers.map((/** @type {any} */ consumer) => html`<div key=${consumer.name} title=${consumer.keeps}><dt>${consumer.name}</dt><dd>${consumer.lag === 0 ? html`<span class="dim">up to date</span>` : html`<strong>${consumer.lag.toLocaleString("en")} behind</strong>`}</dd></div>`)}
    ${parked.data?.length === 0 && html`<div><dt><${Link} to="/parked">Parked steps<//></dt><dd><span class="dim">none</span></dd></div>`}</dl>
    ${behind.length > 0 && html`<p class="dim">A consumer that is behind has not applied all events yet.</p>`}<//>`;
}

/** @param {{roster: any}} props */
export function Roster({ roster }) {
  const agents = roster.data ?? [];
  return html`<${Card} title="Agents" to="/agents" q=${agentsAt(moment.value)}>${roster.error ? html`<${Failure} error=${roster.error} />` : agents.length === 0 ? html`<${Empty}>${moment.value ? "No agent was registered at this moment." : "No agent is registered."}<//>` : html`<ul class="plain">${agents.slice(0, SHOWN).map((/** @type {any} */ row) => html`
      <li key=${row.agent_id}><${Link} to=${`/agents/${row.agent_id}`}><bdi>${row.name}</bdi><//> <span class="dim">${row.pending} waiting, ${row.in_progress} in progress, ${row.review} in review</span></li>`)}</ul>
    ${agents.length > SHOWN && html`<p class="dim">and ${agents.length - SHOWN} more</p>`}`}<//>`;
}

/** @param {number} seconds */
const span = (seconds) => (seconds < 120 ? `${seconds} s` : seconds < 7_200 ? `${Math.round(seconds / 60)} min` : seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`);

/** @param {{info: any, storage: any, plugins: any}} props */
export function System({ info, storage, plugins }) {
  return html`<${Card} title="System" isNow><dl class="facts">
      ${!info.error && html`<div><dt>Version</dt><dd>${info.version}</dd></div><div><dt>Running</dt><dd title=${info.started_at}>${span(info.uptime_s)}</dd></div><div><dt>Store</dt><dd>${info.store}</dd></div>`}
      ${!storage.error && html`<div><dt>Files</dt><dd>${storage.files.toLocaleString("en")}</dd></div><div><dt>Storage</dt><dd>${bytes(storage.used_bytes)}${storage.quota_bytes ? ` of ${bytes(storage.quota_bytes)}` : ""}</dd></div>`}
      ${plugins.data && html`<div><dt>Plugins</dt><dd>${plugins.data.length}</dd></div>`}</dl>
    ${!storage.error && storage.quota_bytes && html`<meter min="0" max=${storage.quota_bytes} value=${storage.used_bytes} aria-label="Storage"></meter>`}
    ${info.error && html`<details><summary class="dim">The system cannot be described.</summary><${Failure} error=${info.error} /></details>`}
    ${storage.error && html`<${Failure} error=${storage.error} />`}<//>`;
}
