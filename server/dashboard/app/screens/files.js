// Files: listed below any part of their paths, uploaded, downloaded, deleted, and the storage that they use.

import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { call, get, query as run } from "../api/client.js";
import { fileAddress } from "../api/upload.js";
import { change, fold, moment } from "../state/route.js";
import { complain, say } from "../state/toasts.js";
import { Empty, Failure, Link, Loading, Time } from "../parts/basic.js";
import { Confirm } from "../parts/confirm.js";
import { Columns, ExportAll, Heads, orderOf, shownColumns, sorted } from "../parts/listing.js";
import { useLive, useLoad } from "../parts/load.js";
import { Behind, usePages } from "../parts/pages.js";
import { Act, Reason, refusal } from "../parts/refused.js";
import { bytes, Usage } from "../parts/size.js";
import { useStyle } from "../parts/style.js";
import { Table } from "../parts/table.js";
import { Upload } from "./files/upload.js";

const PAGE = 200;
const QUIET_MS = 300;
/** The placeholder in a path for a part that a file does not have. */
const NONE = "_";

/** @typedef {{path: string, file_id: string, filename: string, mime_type: string, size: any, aggregate_id: string | null, aggregate_type: string | null, updated_at: string}} Row */

const NEWEST = "-_last_event_at";
/** @type {(import("../parts/listing.js").Column & {fields: string[]})[]} */
const COLUMNS = [
  { id: "filename", label: "File", class: "wide", sort: "filename", fields: ["filename", "path"] }, { id: "belongs", label: "Belongs to", fields: ["attached_type", "attached_id"] }, { id: "size", label: "Size", class: "size", sort: "size", fields: ["size"] },
  { id: "mime_type", label: "Kind", sort: "mime_type", fields: ["mime_type"] }, { id: "changed", label: "Changed", class: "when", sort: "_last_event_at", fields: ["_last_event_at"] },
];
const SORTED = COLUMNS.flatMap(({ sort }) => sort ?? []);

/** The files as a pipeline. @param {string} prefix @param {{field: string, by: number}} order */
const listed = (prefix, order) => [
  { $match: { aggregate_type: "file" } }, { $fold: fold.peek() },
  ...(prefix ? [{ $match: { $or: [{ path: prefix }, { path: { $gte: `${prefix}/`, $lt: `${prefix}0` } }] } }] : []),
  sorted(order),
];

/** A page of the files. The list of the API supports only one order and the current moment. @param {string} prefix @param {{text: string, field: string, by: number}} order @param {string | null} cursor @param {AbortSignal} abort */
async function pageOf(prefix, order, cursor, abort) {
  if (!moment.peek() && order.text === NEWEST) return get("/files", { prefix, limit: PAGE, cursor }, abort).then(({ data, next_cursor: next }) => ({ rows: data, next }));
  const found = await run(listed(prefix, order), { limit: PAGE, ...(cursor ? { cursor } : {}) }, abort);
  return { rows: found.results.map((/** @type {any} */ row) => ({ ...row, file_id: row._id, aggregate_id: row.attached_id ?? null, aggregate_type: row.attached_type ?? null, updated_at: row._last_event_at })), next: found.next_cursor ?? null };
}

/** @param {{query: URLSearchParams}} props */
export default function Files({ query }) {
  useStyle("settings");
  const prefix = query.get("prefix") ?? "";
  const now = moment.value;
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const isRemoved = useRef(false);
  const [isOver, setOver] = useState(false);
  const [given, setGiven] = useState(/** @type {File[] | null} */ (null));
  const [deleted, setDeleted] = useState(/** @type {Row | null} */ (null));
  const refused = refusal();
  const order = orderOf(query, NEWEST, SORTED);
  const columns = shownColumns("files", COLUMNS);
  const concerns = now ? null : (/** @type {any} */ event) => event.aggregate_type === "file";
  const files = usePages((cursor, abort) => pageOf(prefix, order, cursor, abort), [prefix, now, order.text], concerns, QUIET_MS);
  const about = useLoad(async (abort) => {
    const [workspace, storage, projects] = await Promise.all([get("/workspace", {}, abort), get("/system/storage", {}, abort), get("/projects", { limit: PAGE }, abort)]);
    return { workspace: /** @type {string} */ (workspace.id), storage, projects: /** @type {Schemas["Project"][]} */ (projects.data) };
  }, []);
  useLive(about.reload, concerns, QUIET_MS);
  useEffect(() => {
    if (isRemoved.current && document.activeElement === document.body) (list.current ?? document.getElementById("main"))?.focus();
    isRemoved.current = false;
  }, [files.value]);
  /** @type {Row[]} */
  const rows = files.rows;
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    const dropped = [...(event.dataTransfer?.files ?? [])];
    if (dropped.length > 0 && !refused && about.value) setGiven(dropped);
  };
  const download = async (/** @type {Row} */ row) => {
    try {
      const { url } = await get(fileAddress(row.path));
      const link = document.createElement("a");
      link.href = url;
      link.download = row.filename;
      link.click();
    } catch (failure) { complain(failure, row.filename); }
  };
  return html`<div class=${`page files drop ${isOver ? "over" : ""}`} onDragOver=${(/** @type {DragEvent} */ event) => { event.preventDefault(); setOver(!refused); }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
    <header class="bar"><h1>Files</h1><${Act} class="primary" refused=${refused || (about.value ? "" : "Loading")} onClick=${() => setGiven([])}>Upload<//>
      <${Columns} list="files" all=${COLUMNS} shown=${columns} /><${ExportAll} name="files" pipeline=${listed(prefix, order)} fields=${columns.flatMap(({ fields }) => fields)} />
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(listed(prefix, order)) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//></header>
    <${Reason} refused=${refused} />
    ${about.error ? html`<${Failure} error=${about.error} retry=${about.reload} />` : about.value && html`<${Room} storage=${about.value.storage} />`}
    ${about.value && html`<${Crumbs} prefix=${prefix} projects=${about.value.projects} workspace=${about.value.workspace} />`}
    ${files.error && html`<${Failure} error=${files.error} retry=${files.reload} />`}
    ${!files.value && !files.error && html`<${Loading} />`}
    <${Behind} list=${files} />
    ${files.value && rows.length === 0 && html`<${Empty}>No file is ${prefix ? "below this path" : "stored"}${now ? " at this moment" : ". Drop files here, or press Upload"}.<//>`}
    ${rows.length > 0 && html`<${Table} label="Files" count=${rows.length} width="44rem" reachedEnd=${files.more} scroll=${list}
      head=${html`<${Heads} columns=${columns} order=${order} otherwise=${NEWEST} /><th class="act two">Actions</th>`}
      row=${(/** @type {number} */ index) => {
        const row = rows[index];
        return html`<tr key=${row.path} aria-rowindex=${index + 2}>
          ${columns.map(({ id }) => cellOf(id, row))}
          <td class="act"><${Act} class="quiet" refused=${now ? "The bytes of an earlier moment may be gone." : ""} aria-label=${`Download ${row.filename}`} onClick=${() => download(row)}>download<//>
            <${Act} class="quiet" refused=${refused} aria-label=${`Delete ${row.filename}`} onClick=${() => setDeleted(row)}>delete<//></td></tr>`;
      }} />`}
    ${given && about.value && html`<${Upload} given=${given} prefix=${prefix} ...${about.value} close=${() => setGiven(null)} done=${() => { files.reload(); about.reload(); }} />`}
    ${deleted && html`<${Confirm} title=${`Delete ${deleted.filename}?`} action="Delete" close=${() => setDeleted(null)} submit=${async () => {
      await call("POST", "/files/delete", { body: { path: deleted.path } });
      say(`${deleted.filename} is deleted`);
      isRemoved.current = true;
      files.reload();
      about.reload();
    }}><p>Its ${bytes(deleted.size)} are freed and cannot be brought back. That the file existed stays in the log.</p><//>`}
  </div>`;
}

/** @param {string} id of the column @param {Row} row */
function cellOf(id, row) {
  if (id === "filename") return html`<td key=${id} title=${row.path}><${Link} to=${`/a/${encodeURIComponent(row.file_id)}`}><bdi>${row.filename}</bdi><//></td>`;
  if (id === "belongs") return html`<td key=${id} title=${row.aggregate_id}>${row.aggregate_id ? html`<span class="dim">${row.aggregate_type}</span> <${Link} to=${`/a/${encodeURIComponent(row.aggregate_id)}`}><bdi>${row.aggregate_id}</bdi><//>` : html`<span class="dim">–</span>`}</td>`;
  if (id === "size") return html`<td key=${id} class="dim">${bytes(row.size)}</td>`;
  if (id === "mime_type") return html`<td key=${id} class="dim" title=${row.mime_type}>${row.mime_type}</td>`;
  return html`<td key=${id} class="dim"><${Time} at=${row.updated_at} /></td>`;
}

/** @param {{storage: Schemas["StorageUsage"]}} props */
function Room({ storage }) {
  const [used, files] = [Number(String(storage.used_bytes)), Number(String(storage.file_bytes))];
  const most = storage.quota_bytes === null ? null : Number(String(storage.quota_bytes));
  return html`<div class="room"><${Usage} label=${`${storage.files.toLocaleString("en")} ${storage.files === 1 ? "file" : "files"}, storage`} used=${used} most=${most} text=${bytes} />
    ${used > files && html`<p class="dim">${bytes(used - files)} belong to uploads under way and to deleted files that the store still holds.</p>`}</div>`;
}

/** The parts of the path, each of which leads to the files below it. @param {{prefix: string, workspace: string, projects: Schemas["Project"][]}} props */
function Crumbs({ prefix, workspace, projects }) {
  const parts = prefix.split("/").slice(1);
  const [project = "", type = "", aggregate = ""] = parts;
  const names = new Map(projects.map((known) => [known.id, known.name]));
  const choose = (/** @type {any} */ event) => change({ prefix: event.target.value ? `${workspace}/${event.target.value}` : null });
  return html`<nav class="crumbs tabs" aria-label="Part of the files">
    <label>project <select value=${project} onChange=${choose}><option value="">all files</option><option value=${NONE}>without a project</option>
      ${projects.map((known) => html`<option key=${known.id} value=${known.id}>${known.name}</option>`)}
      ${project && project !== NONE && !names.has(project) && html`<option value=${project}>${project}</option>`}</select></label>
    ${type && html`<${Link} to="/files" query=${{ prefix: [workspace, project, type].join("/") }}>/ ${type === NONE ? "without a type" : type}<//>`}
    ${aggregate && html`<${Link} to="/files" query=${{ prefix }}>/ <bdi>${aggregate === NONE ? "without an aggregate" : aggregate}</bdi><//>`}
    ${type && html`<${Link} to="/files">all files<//>`}</nav>`;
}
