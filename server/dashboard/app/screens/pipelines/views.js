// Saved pipelines. A view is an aggregate, so that it has a history and can be shown as of any moment.

import { html, useState } from "../../vendor/ui.js";
import { get, post, query as run } from "../../api/client.js";
import { has } from "../../api/session.js";
import { foldAt, go, moment, parametersAt, to } from "../../state/route.js";
import { complain, say } from "../../state/toasts.js";
import { Empty, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { Ask, Dialog } from "../../parts/dialog.js";
import { useLoad } from "../../parts/load.js";

const PAGE = 200;
const TYPE = "view";

/** The reason why views cannot be written now, or an empty text. */
export const refusal = () => (!has("api:write") ? "This needs the scope api:write." : moment.value ? "Nothing can be changed in the past." : "");

/** @param {string} id @param {string} event @param {object} payload @param {number | "none"} expected */
const append = (id, event, payload, expected) =>
  post(`/aggregates/${encodeURIComponent(id)}/events`, { aggregate_type: TYPE, event_type: `${TYPE}.${event}`, payload, expected_version: expected });

/** Reads a view at the moment of the application, or a version of it. @param {string} id @param {string | null} version @param {AbortSignal} abort */
export const readView = (id, version, abort) => get(`/aggregates/${encodeURIComponent(id)}`, version ? { version } : parametersAt(moment.peek()), abort);

/** Saves a pipeline under a name, and returns the id of the view. @param {string} name @param {any[]} pipeline */
export async function create(name, pipeline) {
  const id = `view-${[...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  await append(id, "created", { name, pipeline }, "none");
  return id;
}

/** @param {any} view @param {object} payload */
export const update = (view, payload) => append(view._id, "updated", payload, view._version);

/** @param {{view: any, pipeline: () => any[] | null, saved: () => void, stored: () => void}} props `view` is the opened one, or undefined; `stored` is called before a new one is opened */
export function Views({ view, pipeline, saved, stored }) {
  const [open, setOpen] = useState("");
  const close = () => setOpen("");
  const why = refusal();
  const save = (/** @type {string} */ name) => {
    const stages = pipeline();
    if (!stages) return say("The pipeline is not JSON yet, so it cannot be saved.", { kind: "error" });
    create(name, stages).then((id) => { say(`Saved as ${name}`); stored(); go(to(`/pipelines/${id}`)); }, complain);
  };
  const overwrite = () => {
    const stages = pipeline();
    if (!stages) return say("The pipeline is not JSON yet, so it cannot be saved.", { kind: "error" });
    // After a conflict, the view is read again, so that the next attempt uses the version of the other writer.
    update(view, { pipeline: stages }).then(() => say(`Saved ${view.name}`), (error) => complain(error, error.code === "version_conflict" ? "Somebody else has saved this view. Save again to replace that" : "")).finally(saved);
  };
  return html`<button onClick=${() => setOpen("list")}>Views</button>
    ${view && html`<button disabled=${Boolean(why)} title=${why} onClick=${overwrite}>Save</button>`}
    <button disabled=${Boolean(why)} title=${why || "Save the pipeline under a name"} onClick=${() => setOpen("save")}>${view ? "Save as" : "Save"}…</button>
    ${view && html`<button class="quiet" disabled=${Boolean(why)} title=${why} onClick=${() => setOpen("rename")}>Rename</button>
      <button class="quiet" onClick=${() => setOpen("history")}>History</button>
      <button class="quiet" disabled=${Boolean(why)} title=${why} onClick=${() => setOpen("delete")}>Delete</button>`}
    ${open === "list" && html`<${List} close=${close} />`}
    ${open === "save" && html`<${Ask} title="Save the pipeline" label="Name" action="Save" input="text" required close=${close} submit=${save} />`}
    ${open === "rename" && html`<${Ask} title="Rename the view" label="Name" action="Rename" input="text" required value=${view.name} close=${close}
      submit=${(/** @type {string} */ name) => update(view, { name }).then(saved, complain)} />`}
    ${open === "history" && html`<${History} view=${view} close=${close} />`}
    ${open === "delete" && html`<${Delete} view=${view} close=${close} />`}`;
}

/** @param {{close: () => void}} props */
function List({ close }) {
  const { value, error, reload } = useLoad(async (abort) => {
    if (!moment.peek()) return get("/aggregates", { type: TYPE, limit: PAGE }, abort);
    const found = await run([{ $match: { aggregate_type: TYPE } }, { $fold: foldAt(moment.peek()) }, { $sort: { _last_event_at: -1, _id: 1 } }], { limit: PAGE }, abort);
    return { data: found.results };
  }, []);
  return html`<${Dialog} title="Views" close=${close}>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!value && !error && html`<${Loading} />`}
    ${value?.data.length === 0 && html`<${Empty}>${moment.value ? "No pipeline was saved at this moment." : "No pipeline is saved yet."}<//>`}
    ${value && html`<ul class="plain">${value.data.map((/** @type {any} */ view) => html`<li key=${view._id} onClick=${close}><${Link} to=${`/pipelines/${encodeURIComponent(view._id)}`}><bdi>${view.name ?? view._id}</bdi><//>
      <span class="dim"> ${view.pipeline?.length ?? 0} stages, changed <${Time} at=${view._last_event_at} /></span></li>`)}</ul>`}
  <//>`;
}

/** @param {{view: any, close: () => void}} props */
function History({ view, close }) {
  const { value, error, reload } = useLoad((abort) => get(`/aggregates/${encodeURIComponent(view._id)}/events`, { direction: "desc", limit: 50 }, abort), [view._id]);
  const target = `/pipelines/${encodeURIComponent(view._id)}`;
  return html`<${Dialog} title=${`History of ${view.name}`} close=${close}>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!value && !error && html`<${Loading} />`}
    ${value && html`<ol class="plain">${value.data.map((/** @type {any} */ event) => html`<li key=${event.event_id} onClick=${close}><${Link} to=${target} query=${{ version: event.version }}>Version ${event.version}<//>
      ${Object.keys(event.payload).join(", ")} <span class="dim"><bdi>${event.actor}</bdi>, <${Time} at=${event.recorded_at} /></span></li>`)}</ol>`}
    <p><${Link} to=${`/a/${encodeURIComponent(view._id)}`}>The view as an aggregate<//></p>
  <//>`;
}

/** @param {{view: any, close: () => void}} props */
function Delete({ view, close }) {
  const remove = () => { close(); append(view._id, "deleted", {}, view._version).then(() => { say(`Deleted ${view.name}`); go(to("/pipelines")); }, complain); };
  return html`<${Dialog} title="Delete the view?" close=${close}>
    <p><bdi>${view.name}</bdi> is no longer listed. Its history stays in the log.</p>
    <footer class="bar"><button class="quiet" onClick=${close}>Cancel</button><button class="primary" autofocus onClick=${remove}>Delete</button></footer><//>`;
}
