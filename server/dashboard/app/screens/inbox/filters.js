// The filters of the inbox, which are in the address, and the saved views.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { post, query as run } from "../../api/client.js";
import { change, fold, go, isCompared, moment, to } from "../../state/route.js";
import { complain, say } from "../../state/toasts.js";
import { groups } from "../../state/waiting.js";
import { Link } from "../../parts/basic.js";
import { Ask } from "../../parts/dialog.js";
import { refusal } from "../../parts/refused.js";
import { Typed } from "../../parts/typed.js";
import { me, people } from "./people.js";
import { compared, status, tasks, total } from "./tasks.js";
import { countOf, FILTERS, parameters, pipeline, PRIORITIES, STATUSES, VIEWS } from "./views.js";

/** @param {{query: URLSearchParams}} props */
export function Filters({ query }) {
  const [isOpen, setOpen] = useState(["status", "priority", "unread", "project"].some((name) => query.has(name)));
  const [isNaming, setNaming] = useState(false);
  const [saved, setSaved] = useState(/** @type {any[]} */ ([]));
  const reread = () => savedViews().then(setSaved, () => {});
  useEffect(() => { reread(); }, []);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => change({ [name]: event.target.value || null });
  const choose = (/** @type {any} */ event) => {
    const value = String(event.target.value);
    const found = saved.find((view) => view._id === value);
    go(found ? to("/inbox", Object.fromEntries(new URLSearchParams(found.description.split("?")[1]))) : to("/inbox", { view: value === "waiting" ? null : value }));
  };
  const here = address(query);
  const current = saved.find((view) => view.description === here)?._id ?? query.get("view") ?? "waiting";
  const isMore = status.value.next !== null && total.value === null;
  const count = status.value.next ? Math.max(total.value ?? 0, tasks.value.length) : tasks.value.length;
  // Past values of these counts are not stored.
  const counts = moment.value || isCompared.value ? null : groups.value;
  const agents = people.value.filter((person) => person.type === "agent");
  const save = async (/** @type {string} */ name) => {
    const payload = { name, description: here, pipeline: pipeline(parameters(query, me.value), {}) };
    try {
      await post(`/aggregates/${crypto.randomUUID()}/events`, { aggregate_type: "view", event_type: "view.created", payload });
      say(`The view “${name}” is saved`);
      reread();
    } catch (error) {
      complain(error, "The view is not saved. Its address can be kept as a bookmark");
    }
  };
  return html`<header class="filters">
    <div class="bar"><h1>Inbox</h1>
      <select aria-label="View" value=${current} onChange=${choose}>
        ${Object.entries(VIEWS).map(([name, { label }]) => html`<option key=${name} value=${name}>${label}${counts ? ` (${countOf(name, counts).toLocaleString("en")})` : ""}</option>`)}
        ${saved.length > 0 && html`<optgroup label="Saved">${saved.map((view) => html`<option key=${view._id} value=${view._id}>${view.name}</option>`)}</optgroup>`}
      </select>
      <select aria-label="Assignee" value=${query.get("assignee") ?? ""} onChange=${set("assignee")}>
        <option value="">anybody</option>${me.value && html`<option value="me">me</option>`}<option value="none">nobody</option><option value="user">people</option><option value="agent">agents</option>
        ${agents.length > 0 && html`<optgroup label="Agents">${agents.map((agent) => html`<option key=${agent.id} value=${agent.id}>${agent.name}</option>`)}</optgroup>`}
      </select>
      <button class="quiet" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>Filter</button>
      <span class="dim" role="status">${compared.value ? "" : `${count.toLocaleString("en")}${isMore ? "+" : ""} ${count === 1 && !isMore ? "task" : "tasks"}`}</span>
    </div>
    ${isOpen && html`<div class="bar more">
      <label>Status <select value=${query.get("status") ?? ""} onChange=${set("status")}><option value="">any</option>${STATUSES.map((name) => html`<option key=${name} value=${name}>${name.replaceAll("_", " ")}</option>`)}</select></label>
      <label>Priority <select value=${query.get("priority") ?? ""} onChange=${set("priority")}><option value="">any</option><option value="urgent,high">high or urgent</option>${PRIORITIES.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      <label>Unread <select value=${query.get("unread") ?? ""} onChange=${set("unread")}><option value="">any</option><option value="true">unread</option><option value="false">read</option></select></label>
      <label>Project <${Typed} type="search" size="10" value=${query.get("project") ?? ""} change=${(/** @type {string} */ project) => change({ project })} /></label>
      <button class="quiet" disabled=${refusal() !== ""} title=${refusal() || "Save these filters as a view"} onClick=${() => setNaming(true)}>Save view</button>
      <${Link} to="/pipelines" query=${{ q: JSON.stringify(pipeline(parameters(query, me.value), fold.value)) }} title="Open as a pipeline" aria-label="Open as a pipeline">{ }<//>
    </div>`}
    ${isNaming && html`<${Ask} title="Save the view" label="Name" input="text" required action="Save" close=${() => setNaming(false)} submit=${save} />`}
  </header>`;
}

/** The address of a view without the moment and the open task. @param {URLSearchParams} query */
function address(query) {
  const kept = FILTERS.filter((name) => query.get(name)).map((name) => `${name}=${encodeURIComponent(String(query.get(name)))}`);
  return `/inbox?${kept.join("&")}`;
}

/** The saved views that belong to the inbox: the views with an address of the inbox. @returns {Promise<any[]>} */
async function savedViews() {
  const { results } = await run([{ $match: { aggregate_type: "view" } }, { $fold: {} }, { $sort: { name: 1 } }, { $limit: 200 }]);
  return results.filter((/** @type {any} */ view) => typeof view.description === "string" && view.description.startsWith("/inbox?"));
}
