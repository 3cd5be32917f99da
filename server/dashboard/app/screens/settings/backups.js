// The backups of the installation: the archived position of each workspace, the result of its verification, and the
// restores.

import { html } from "../../vendor/ui.js";
import { getAll, get } from "../../api/client.js";
import { Badge, Empty, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { bytes } from "../../parts/size.js";
import { Table } from "../../parts/table.js";
import { useReturning } from "./shared.js";

/** @param {any} value */
const number = (value) => (value === null || value === undefined ? "–" : Number(value).toLocaleString("en"));
const OUTCOMES = /** @type {Record<string, string>} */ ({ equal: "equal", different: "states differ", damaged: "damaged", partial: "segments only" });

/** Reads all pages of the backups. @param {AbortSignal} abort */
async function backups(abort) {
  const first = await get("/system/backups", { limit: 200 }, abort);
  const workspaces = [...first.workspaces];
  for (let cursor = first.next_cursor; cursor;) {
    const page = /** @type {any} */ (await get("/system/backups", { limit: 200, cursor }, abort));
    workspaces.push(...page.workspaces);
    cursor = page.next_cursor;
  }
  return { url: first.url, control_at: first.control_at, workspaces };
}

export default function Backups() {
  const { value, error, reload } = useReturning(async (abort) => {
    const [archive, restores] = await Promise.all([backups(abort), getAll("/system/restores", abort)]);
    return { archive, restores: restores.data };
  });
  if (error?.code === "backup_disabled") return html`<h2>Backups</h2><${Empty}>This server has no backup. <code>[backup] url</code> in <code>config.toml</code> names the bucket for the archive.<//>`;
  if (error && !value) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<${Loading} />`;
  const { archive, restores } = value;
  const failed = archive.workspaces.filter((/** @type {any} */ row) => row.error);
  return html`${error && html`<${Failure} error=${error} retry=${reload} />`}<h2>Backups</h2><dl class="facts"><div><dt>Archive</dt><dd><bdi>${archive.url}</bdi></dd></div>
      <div><dt>Keys, members and workspaces</dt><dd>${archive.control_at ? html`as of <${Time} at=${archive.control_at} />` : html`<strong>not archived yet</strong>`}</dd></div></dl>
    ${failed.map((/** @type {any} */ row) => html`<p class="banner" role="status" key=${row.workspace_id}>The last attempt to archive <code>${row.workspace_id}</code> failed: ${row.error}</p>`)}
    ${archive.workspaces.length === 0 && html`<${Empty}>No workspace is archived yet.<//>`}
    ${archive.workspaces.length > 0 && html`<${Table} label="Backups of workspaces" class="backups" count=${archive.workspaces.length} width="58rem"
      head=${html`<th>Workspace</th><th class="number">Archived to</th><th class="number">Behind</th><th>Newest event</th><th>Oldest event</th><th class="number">Size</th><th>Verified</th>`}
      row=${(/** @type {number} */ index) => { const row = archive.workspaces[index]; return html`<tr key=${row.workspace_id} aria-rowindex=${index + 2}><td title=${row.workspace_id}><code>${row.workspace_id}</code></td>
        <td class="number" title=${`Epoch ${row.epoch}, ${number(row.segments)} segments`}>${number(row.position)}</td><td class="number">${row.lag ? html`<strong>${number(row.lag)}</strong>` : number(row.lag)}</td>
        <td class="dim"><${Time} at=${row.to} /></td><td class="dim"><${Time} at=${row.from} /></td><td class="number">${bytes(row.bytes)}</td>
        <td>${row.verified ? html`<${Badge} kind=${row.verified.outcome === "different" || row.verified.outcome === "damaged" ? "failed" : "done"}>${OUTCOMES[row.verified.outcome] ?? row.verified.outcome}<//> <span class="dim"><${Time} at=${row.verified.at} /></span>` : html`<span class="dim">never</span>`}</td></tr>`; }} />
      <p class="dim">Only the server that archives a workspace knows how far it is behind. <code>foldwork backup verify</code> compares an archive with its states.</p>`}
    ${archive.workspaces.filter((/** @type {any} */ row) => row.verified?.problems?.length).map((/** @type {any} */ row) => html`<details key=${row.workspace_id}><summary>${row.verified.problems.length} problems of <code>${row.workspace_id}</code></summary><ul>${row.verified.problems.slice(0, 50).map((/** @type {string} */ problem) => html`<li>${problem}</li>`)}</ul></details>`)}
    <h2>Restores</h2>
    ${restores.length === 0 ? html`<${Empty}>No workspace was restored.<//>` : html`<ul class="plain" aria-label="Restores">${restores.slice(0, 50).map((/** @type {any} */ restore) => html`<li key=${restore.id}><strong><bdi>${restore.name}</bdi></strong> <${Badge} kind=${restore.status} />
      <span class="dim">${number(restore.position)} of ${number(restore.end)} events, begun <${Time} at=${restore.started_at} />${restore.ended_at && html`, ended <${Time} at=${restore.ended_at} />`}</span> ${restore.message && html`<span>${restore.message}</span>`}</li>`)}</ul>`}
    <p><${Link} to="/settings/server">The server<//></p>`;
}
