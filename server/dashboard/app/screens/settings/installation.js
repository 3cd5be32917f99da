// The installation: its users with their plans, and its workspaces. Only owners of the first workspace may see it.

import { html, useState } from "../../vendor/ui.js";
import { call, get, post } from "../../api/client.js";
import { moment } from "../../state/route.js";
import { complain, say } from "../../state/toasts.js";
import { Badge, Failure, Loading, Time } from "../../parts/basic.js";
import { Confirm } from "../../parts/confirm.js";
import { bytes } from "../../parts/size.js";
import { usePages } from "../../parts/pages.js";
import { Act } from "../../parts/refused.js";
import { Table } from "../../parts/table.js";
import { useReturn, useReturning } from "./shared.js";

const PAGE = 200;
const STATUSES = ["active", "trialing", "past_due", "canceled"];
const LIMITS = /** @type {const} */ ([["storage_bytes", "Storage in bytes"], ["projects", "Projects"], ["agents", "Agents"], ["activations", "Devices"]]);

/** Reads a list page by page while it is scrolled. @param {string} path */
const useList = (path) => useReturn(usePages((cursor, abort) => get(path, { limit: PAGE, cursor }, abort).then(({ data, next_cursor: next }) => ({ rows: data, next })), [path]));

export default function Installation() {
  const users = useList("/users");
  const workspaces = useList("/workspaces");
  // Operators are owners of the first workspace, which is the workspace of their session and cannot be deleted.
  const own = useReturning((abort) => get("/workspace", {}, abort));
  const [asking, setAsking] = useState(/** @type {{what: "plan" | "name" | "delete", row: any} | null} */ (null));
  const refused = moment.value ? "Nothing can be changed in the past." : "";
  const close = () => setAsking(null);
  if (users.error?.code === "operator_required") return html`<p class="empty">Only owners of the installation's first workspace manage its users and workspaces.</p>`;
  const error = users.error ?? workspaces.error;
  const failure = error && html`<${Failure} error=${error} retry=${() => { users.reload(); workspaces.reload(); }} />`;
  if (!users.value || !workspaces.value) return failure ?? html`<${Loading} />`;
  const restore = (/** @type {Schemas["Workspace"]} */ row) => post(`/workspaces/${row.id}/restore`).then(() => { say(`${row.name} stays`); workspaces.reload(); }, complain);
  return html`${failure}<h2>Workspaces</h2><${Table} label="Workspaces" count=${workspaces.rows.length} width="44rem" reachedEnd=${workspaces.more} scroll=${workspaces.list}
      head=${html`<th class="wide">Workspace</th><th>Id</th><th class="when">Created</th><th>Deletion</th><th class="act two">Actions</th>`}
      row=${(/** @type {number} */ index) => { /** @type {Schemas["Workspace"]} */ const row = workspaces.rows[index]; return html`<tr key=${row.id} aria-rowindex=${index + 2}>
        <td title=${row.name}><bdi>${row.name}</bdi> <span class="dim">${row.slug}</span></td><td class="dim" title=${row.id}><code>${row.id}</code></td><td class="dim"><${Time} at=${row.created_at} /></td><td>${row.delete_at ? html`<${Badge} kind="stopped"><${Time} at=${row.delete_at} /><//>` : html`<span class="dim">–</span>`}</td>
        <td class="act"><${Act} class="quiet" refused=${refused} aria-label=${`Rename ${row.name}`} onClick=${() => setAsking({ what: "name", row })}>rename<//>
          ${row.delete_at ? html`<${Act} class="quiet" refused=${refused} aria-label=${`Keep ${row.name}`} onClick=${() => restore(row)}>keep<//>` : html`<${Act} class="quiet" refused=${row.id === own.value?.id ? "The first workspace cannot be deleted." : refused} aria-label=${`Delete ${row.name}`} onClick=${() => setAsking({ what: "delete", row })}>delete<//>`}</td></tr>`; }} />
    <h2>Users</h2><${Table} label="Users" count=${users.rows.length} width="44rem" reachedEnd=${users.more} scroll=${users.list}
      head=${html`<th class="wide">User</th><th class="plan">Plan</th><th>Limits</th><th>Workspaces</th><th class="act">Actions</th>`}
      row=${(/** @type {number} */ index) => { /** @type {Schemas["User"]} */ const row = users.rows[index]; return html`<tr key=${row.id} aria-rowindex=${index + 2}>
        <td title=${row.id}><bdi>${row.name || row.email || row.id}</bdi>${row.email && !row.email_verified && html` <${Badge} kind="overdue">not verified<//>`}</td><td><bdi>${row.plan.name}</bdi> <${Badge} kind=${row.plan.status === "active" ? "active" : row.plan.status === "trialing" ? "high" : "stopped"}>${row.plan.status.replace("_", " ")}<//></td>
        <td class="dim">${limits(row.plan.limits)}</td><td class="dim">${row.workspaces.length}</td>
        <td class="act"><${Act} class="quiet" refused=${refused} aria-label=${`Set the plan of ${row.name || row.email || row.id}`} onClick=${() => setAsking({ what: "plan", row })}>plan<//></td></tr>`; }} />
    ${asking?.what === "plan" && html`<${Plan} user=${asking.row} close=${close} done=${users.reload} />`}
    ${asking?.what === "name" && html`<${Confirm} title=${`Rename ${asking.row.name}`} action="Rename" close=${close} submit=${async (/** @type {FormData} */ fields) => { await call("PATCH", `/workspaces/${asking.row.id}`, { body: { name: fields.get("name") } }); workspaces.reload(); }}>
      <label>Name <input name="name" required defaultValue=${asking.row.name} autofocus /></label><//>`}
    ${asking?.what === "delete" && html`<${Confirm} title=${`Delete ${asking.row.name}?`} action="Delete" close=${close} submit=${async () => { const row = await call("DELETE", `/workspaces/${asking.row.id}`); say(`${asking.row.name} is deleted ${row?.delete_at ? `at ${row.delete_at}` : "later"}`); workspaces.reload(); }}>
      <p>Its events, files, keys and memberships are deleted after the grace period. Until then it works as before, its owners are told, and you can keep it.</p><//>`}`;
}

/** @param {Schemas["Limits"]} given */
function limits(given) {
  const set = LIMITS.filter(([name]) => given[name] !== null && given[name] !== undefined);
  return set.length === 0 ? "none" : set.map(([name, label]) => (name === "storage_bytes" ? bytes(given[name] ?? 0) : `${given[name]} ${label.toLowerCase()}`)).join(", ");
}

/** @param {{user: Schemas["User"], close: () => void, done: () => void}} props */
function Plan({ user, close, done }) {
  const submit = async (/** @type {FormData} */ fields) => {
    const given = LIMITS.map(([name]) => [name, fields.get(name) ? Number(fields.get(name)) : null]);
    const ends = String(fields.get("ends") ?? "");
    await call("PUT", `/users/${user.id}/plan`, { body: { id: fields.get("id"), status: fields.get("status"), limits: Object.fromEntries(given), ...(ends ? { trial_ends_at: new Date(ends).toISOString() } : {}) } });
    say("The plan is set");
    done();
  };
  return html`<${Confirm} title=${`Plan of ${user.name || user.email || user.id}`} action="Set plan" submit=${submit} close=${close}>
    <label>Plan <input name="id" required defaultValue=${user.plan.id} /></label>
    <label>Status <select name="status">${STATUSES.map((status) => html`<option key=${status} value=${status} selected=${status === user.plan.status}>${status.replace("_", " ")}</option>`)}</select></label>
    <label>The trial ends (optional) <input type="datetime-local" name="ends" /></label>
    <fieldset><legend>Limits; an empty field is no limit</legend>${LIMITS.map(([name, label]) => html`<label key=${name}>${label} <input type="number" min="0" name=${name} defaultValue=${user.plan.limits[name] ?? ""} /></label>`)}</fieldset>
  <//>`;
}
