// Projects: their content, and the creation of a project.

import { html, useState } from "../vendor/ui.js";
import { get, post, query as run } from "../api/client.js";
import { fold, foldAt, go, moment, to } from "../state/route.js";
import { say } from "../state/toasts.js";
import { Badge, Copy, Empty, Failure, label, Link, Loading, Time } from "../parts/basic.js";
import { Confirm } from "../parts/confirm.js";
import { Columns, ExportAll, Heads, orderOf, shownColumns, sorted } from "../parts/listing.js";
import { useLive, useLoad } from "../parts/load.js";
import { Behind, usePages } from "../parts/pages.js";
import { Act, Reason, refusal } from "../parts/refused.js";
import { useStyle } from "../parts/style.js";
import { Table } from "../parts/table.js";

const PAGE = 200;
const LATEST = 20;
const QUIET_MS = 400;

const NEWEST = "-_created_at";
/** @type {import("../parts/listing.js").Column[]} */
const COLUMNS = [
  { id: "name", label: "Project", sort: "name" }, { id: "slug", label: "Slug", sort: "slug" }, { id: "description", label: "Description", class: "wide", sort: "description" },
  { id: "aggregates", label: "Aggregates" }, { id: "_created_at", label: "Created", class: "when", sort: "_created_at" },
];
const SORTED = COLUMNS.flatMap(({ sort }) => sort ?? []);

/** The projects as a pipeline. @param {{field: string, by: number}} order */
const listed = (order) => [{ $match: { aggregate_type: "project" } }, { $fold: fold.peek() }, sorted(order)];

/** @param {any} row a state @returns {Schemas["Project"]} */
const project = (row) => ({ id: row._id, name: row.name, slug: row.slug, description: row.description ?? null, version: row._version, created_at: row._created_at, updated_at: row._last_event_at });

/** A project at a moment, by its id or slug. @param {string} id @param {import("../state/route.js").Moment} when @param {AbortSignal} abort @returns {Promise<Schemas["Project"]>} */
async function projectAt(id, when, abort) {
  if (!when) return get(`/projects/${encodeURIComponent(id)}`, {}, abort);
  const { results: [row] } = await run([{ $match: { aggregate_type: "project" } }, { $fold: foldAt(when) }, { $match: { $or: [{ _id: id }, { slug: id }] } }, { $limit: 1 }], {}, abort);
  if (!row) throw Object.assign(new Error("this project did not exist at this moment, or it was deleted by then"), { code: "not_found", status: 404 });
  return project(row);
}

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Projects({ path: [id], query }) {
  useStyle("settings");
  return id ? html`<${Project} key=${id} id=${id} />` : html`<${List} query=${query} />`;
}

/** @param {{query: URLSearchParams}} props */
function List({ query }) {
  const now = moment.value;
  const order = orderOf(query, NEWEST, SORTED);
  const columns = shownColumns("projects", COLUMNS);
  const [isCreating, setCreating] = useState(false);
  const refused = refusal();
  const list = usePages(async (cursor, abort) => {
    const [counted, page] = await Promise.all([
      cursor ? null : run([{ $fold: fold.peek() }, { $match: { project_id: { $ne: null } } }, { $group: { _id: "$project_id", count: { $sum: 1 } } }], {}, abort),
      run(listed(order), { limit: PAGE, ...(cursor ? { cursor } : {}) }, abort),
    ]);
    return { rows: page.results.map(project), next: page.next_cursor ?? null, counts: new Map((counted?.results ?? []).map((/** @type {any} */ row) => [row._id, row.count])) };
  }, [now, order.text], now ? null : (event) => event.aggregate_type === "project" || event.version === 1, QUIET_MS);
  const { value, error, reload } = list;
  /** @type {Schemas["Project"][]} */
  const rows = list.rows;
  return html`<div class="page projects"><header class="bar"><h1>Projects</h1><${Act} class="primary" refused=${refused} onClick=${() => setCreating(true)}>Create project<//>
      <${Columns} list="projects" all=${COLUMNS} shown=${columns} /><${ExportAll} name="projects" pipeline=${listed(order)} fields=${columns.map(({ id }) => id).filter((name) => name !== "aggregates")} />
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(listed(order)) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//></header>
    <${Reason} refused=${refused} />
    ${error && html`<${Failure} error=${error} retry=${reload} />`}${!value && !error && html`<${Loading} />`}
    <${Behind} list=${list} />
    ${value && rows.length === 0 && html`<${Empty}>There is no project${now ? " at this moment" : ". A project groups articles, files and other aggregates"}.<//>`}
    ${rows.length > 0 && html`<${Table} label="Projects" count=${rows.length} width="42rem" reachedEnd=${list.more}
      head=${html`<${Heads} columns=${columns} order=${order} otherwise=${NEWEST} />`}
      row=${(/** @type {number} */ index) => { const row = rows[index]; return html`<tr key=${row.id} aria-rowindex=${index + 2}>${columns.map(({ id }) => cellOf(id, row, value?.counts.get(row.id) ?? 0))}</tr>`; }} />`}
    ${isCreating && html`<${Create} close=${() => setCreating(false)} />`}</div>`;
}

/** @param {string} id of the column @param {Schemas["Project"]} row @param {number} count */
function cellOf(id, row, count) {
  if (id === "name") return html`<td key=${id} title=${row.name}><${Link} to=${`/projects/${encodeURIComponent(row.slug)}`}><bdi>${row.name}</bdi><//></td>`;
  if (id === "slug") return html`<td key=${id} class="dim"><bdi>${row.slug}</bdi></td>`;
  if (id === "description") return html`<td key=${id} class="dim" dir="auto" title=${row.description}>${row.description}</td>`;
  if (id === "aggregates") return html`<td key=${id} class="dim">${count.toLocaleString("en")}</td>`;
  return html`<td key=${id} class="dim"><${Time} at=${row.created_at} /></td>`;
}

/** @param {{close: () => void}} props */
function Create({ close }) {
  const submit = async (/** @type {FormData} */ fields) => {
    const given = Object.fromEntries([...fields].map(([name, text]) => [name, String(text).trim()]).filter(([, text]) => text));
    const made = await post("/projects", given);
    say(`${made.name} is created`);
    go(to(`/projects/${encodeURIComponent(made.slug)}`));
  };
  return html`<${Confirm} title="Create a project" action="Create project" submit=${submit} close=${close}>
    <label>Name <input name="name" required maxlength="200" autofocus /></label>
    <label>Slug (optional) <input name="slug" spellcheck=${false} autocomplete="off" /></label>
    <p class="dim">It stands wherever a project's id may. Without it, the name makes one. It cannot be changed later.</p>
    <label>Description (optional) <textarea name="description" rows="3"></textarea></label><//>`;
}

/** @param {{id: string}} props */
function Project({ id }) {
  const now = moment.value;
  const { value, error, reload } = useLoad(async (abort) => {
    const found = await projectAt(id, now, abort);
    const within = [{ $fold: fold.peek() }, { $match: { project_id: found.id } }];
    const [counts, latest, workspace] = await Promise.all([
      run([...within, { $group: { _id: "$aggregate_type", count: { $sum: 1 } } }, { $sort: { count: -1 } }], {}, abort),
      run([...within, { $sort: { _last_event_at: -1 } }, { $limit: LATEST }], {}, abort), get("/workspace", {}, abort),
    ]);
    return { found: /** @type {Schemas["Project"]} */ (found), counts: counts.results, latest: latest.results, within, workspace: workspace.id };
  }, [id, now]);
  useLive(reload, now ? null : (event) => event.project_id === value?.found.id, QUIET_MS);
  const back = html`<p class="dim"><${Link} to="/projects">Projects<//></p>`;
  if (error && !value) return html`<div class="page projects">${back}<h1><bdi>${id}</bdi></h1><${Failure} error=${error} retry=${reload} /></div>`;
  if (!value) return html`<div class="page projects">${back}<h1><bdi>${id}</bdi></h1><${Loading} /></div>`;
  const { found, counts, latest, within, workspace } = value;
  return html`<div class="page projects">${back}<header class="bar"><h1 dir="auto">${found.name}</h1><code class="dim">${found.slug}</code>
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(within) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//></header>
    ${found.description && html`<p dir="auto" class="text">${found.description}</p>`}
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    <div class="halves"><section><h2>What it groups</h2>${counts.length === 0 ? html`<${Empty}>Nothing belongs to it${now ? " at this moment" : ""}. <code>project_id</code> puts an aggregate into it.<//>` : html`<dl class="facts">${counts.map((/** @type {any} */ row) => html`
        <div key=${row._id}><dt><${Link} to="/pipelines" query=${{ q: JSON.stringify([{ $match: { aggregate_type: row._id } }, ...within]) }}>${row._id}<//></dt><dd>${row.count.toLocaleString("en")}</dd></div>`)}</dl>`}
      <p><${Link} to="/files" query=${{ prefix: `${workspace}/${found.id}` }}>Its files<//> · <${Link} to=${`/a/${found.id}`}>Its history<//></p>
      <p class="dim">Id <code>${found.id}</code> <${Copy} text=${found.id} /></p></section>
    <section><h2>Changed last</h2>${latest.length === 0 ? html`<${Empty}>Nothing yet.<//>` : html`<ul class="plain">${latest.map((/** @type {any} */ row) => html`<li key=${row._id}>
      <${Link} to=${`/a/${encodeURIComponent(row._id)}`}><bdi>${label(row) || row.filename || row._id}</bdi><//> <${Badge} kind="type">${row.aggregate_type}<//> <span class="dim"><${Time} at=${row._last_event_at} /></span></li>`)}</ul>`}</section></div></div>`;
}
