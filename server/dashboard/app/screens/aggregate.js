// One aggregate: its state at any version, what each event changed, and its edges.

import { html, useState } from "../vendor/ui.js";
import { call, get } from "../api/client.js";
import { change, earlier, go, isCompared, moment, parametersAt, to } from "../state/route.js";
import { complain, say } from "../state/toasts.js";
import { Badge, Failure, label, Link, Loading } from "../parts/basic.js";
import { Dialog } from "../parts/dialog.js";
import { useLive, useLoad } from "../parts/load.js";
import { Act, refusal } from "../parts/refused.js";
import { loadStyle } from "../parts/style.js";
import { Append } from "./aggregate/append.js";
import { Edges } from "./aggregate/edges.js";
import { History } from "./aggregate/history.js";
import { Stepper } from "./aggregate/stepper.js";
import { arrows } from "../parts/tabs.js";

const QUIET_MS = 150;
const TABS = /** @type {const} */ ([["state", "State"], ["events", "Events"], ["graph", "Edges"]]);

loadStyle("aggregate");

/**
 * Returns the newest state at a moment. For a deleted aggregate, returns the version before the deletion, or an empty
 * state if there is no such version.
 *
 * @param {string} id @param {import("../state/route.js").Moment} when @param {AbortSignal} abort
 */
async function headOf(id, when, abort) {
  const path = `/aggregates/${encodeURIComponent(id)}`;
  try {
    return { state: await get(path, parametersAt(when), abort), isDeleted: false };
  } catch (/** @type {any} */ error) {
    if (error.status !== 404 || when) throw error;
    const { data: [last] } = await get(`${path}/events`, { limit: 1, direction: "desc" }, abort);
    if (!last) throw error;
    const state = last.version > 1 ? await get(path, { version: last.version - 1 }, abort).catch(() => ({})) : {};
    return { state: { ...state, aggregate_type: last.aggregate_type, _version: last.version }, isDeleted: true };
  }
}

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Aggregate({ path: [id = ""], query }) {
  const now = moment.value;
  const before = earlier.value;
  const [dialog, setDialog] = useState("");
  const head = useLoad(async (abort) => {
    const [newest, older] = await Promise.all([
      headOf(id, now, abort),
      isCompared.peek() ? headOf(id, before, abort).then(({ state }) => Number(state._version), () => 0) : null,
    ]);
    return { ...newest, older };
  }, [id, now, before]);
  useLive(head.reload, now ? null : (event) => event.aggregate_id === id, QUIET_MS);
  if (head.error && !head.value) {
    const isAbsent = head.error.status === 404;
    return html`<div class="page"><h1><bdi>${id}</bdi></h1>${isAbsent && now && html`<p>This aggregate did not exist at this moment, or it was deleted by then.</p>`}<${Failure} error=${head.error} retry=${head.reload} /></div>`;
  }
  if (!head.value) return html`<div class="page"><h1><bdi>${id}</bdi></h1><${Loading} /></div>`;
  const { state, isDeleted, older } = head.value;
  const latest = Number(state._version ?? 0);
  const version = Math.max(1, Math.min(Number(query.get("v")) || latest, latest));
  const compared = Math.min(Math.max(0, Number(query.get("compare") ?? (query.has("v") ? version - 1 : older ?? version - 1))), latest);
  const tab = query.get("tab") ?? "state";
  const refused = refusal() || (isDeleted ? "The aggregate is deleted." : "");
  const remove = async () => {
    setDialog("");
    try {
      await call("DELETE", `/aggregates/${encodeURIComponent(id)}`, { headers: { "If-Match": `"${latest}"` } });
      say("The aggregate is deleted. Its history stays in the log.");
      go(to(`/types/${encodeURIComponent(state.aggregate_type)}`));
    } catch (error) {
      complain(error, "The aggregate is not deleted");
    }
  };
  return html`<div class="page aggregate">${head.error && html`<${Failure} error=${head.error} retry=${head.reload} />`}
    <header class="bar"><h1 dir="auto">${label(state) || id}</h1> <${Link} to=${`/types/${encodeURIComponent(state.aggregate_type)}`}><${Badge} kind="type">${state.aggregate_type}<//><//> <code class="dim">${id}</code>
      ${isDeleted && html`<${Badge} kind="stopped">deleted<//>`}
      ${state.aggregate_type === "article" && !isDeleted && html`<${Link} to=${`/articles/${encodeURIComponent(id)}`}>Open in the editor<//>`}
      ${state.aggregate_type === "task" && html`<${Link} to=${`/inbox/${encodeURIComponent(id)}`}>Open in the inbox<//>`}
      <span class="buttons"><${Act} refused=${refused} onClick=${() => setDialog("append")}>Append event<//>
        <${Act} refused=${refused} onClick=${() => setDialog("delete")}>Delete<//></span></header>
    <div class="tabs" role="tablist" aria-label="Views of the aggregate">${TABS.map(([name, text]) => html`<button key=${name} role="tab" id=${`tab-${name}`} aria-controls="tab-panel" aria-selected=${tab === name} tabindex=${tab === name ? 0 : -1}
      onKeyDown=${arrows} onClick=${() => change({ tab: name === "state" ? null : name }, { replace: true })}>${text}</button>`)}</div>
    <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${tab}`}>
      ${tab !== "events" && html`<${Stepper} id=${id} latest=${latest} version=${version} compared=${compared} isPlain=${tab === "graph"} isDeleted=${isDeleted} />`}
      ${tab === "events" && html`<${History} id=${id} latest=${latest} version=${version} />`}
      ${tab === "graph" && html`<${Edges} id=${id} version=${version} isLatest=${version === latest} />`}
    </div>
    ${dialog === "append" && html`<${Append} id=${id} type=${state.aggregate_type} version=${latest} close=${() => setDialog("")} done=${() => change({ v: null, compare: null }, { replace: true })} />`}
    ${dialog === "delete" && html`<${Dialog} title=${`Delete ${label(state) || id}?`} close=${() => setDialog("")}>
      <p>Lists, searches and pipelines no longer include it. Its ${latest.toLocaleString("en")} ${latest === 1 ? "event stays" : "events stay"} in the log.</p>
      <footer class="choices"><button class="quiet" onClick=${() => setDialog("")}>Cancel</button><button class="primary" autofocus onClick=${remove}>Delete version ${latest}</button></footer><//>`}
  </div>`;
}
