// One group of parked steps: its cause, the result of a replay, and its steps.

import { html, useEffect, useRef, useState } from "../../vendor/ui.js";
import { stringify } from "../../api/json.js";
import { has } from "../../api/session.js";
import { moment } from "../../state/route.js";
import { complain, detailOf, say } from "../../state/toasts.js";
import { Badge, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { usePages } from "../../parts/pages.js";
import { Table } from "../../parts/table.js";
import { deleteGroup, deleteStep, dryRun, readSteps, replayGroup, replayStep } from "./groups.js";

/** The reason why parked steps cannot be changed now, or an empty text. */
const refusal = () => (!has("api:write") ? "This needs the scope api:write." : moment.value ? "Nothing can be changed in the past." : "");

/** @param {number} count */
const steps = (count) => `${count.toLocaleString("en")} ${count === 1 ? "step" : "steps"}`;

/** @param {{group: import("./groups.js").Group, reload: () => void, edit: (step: any) => void, isLone?: boolean}} props */
export function Group({ group, reload, edit, isLone = false }) {
  const [open, setOpen] = useState("");
  const [tried, setTried] = useState(/** @type {any} */ (null));
  const why = refusal();
  const { plugin, hook, kind, line, message, count, first, last } = group;
  const title = `${plugin} · ${hook}${line ? ` · line ${line}` : ""}`;
  const attempt = async () => {
    setTried({ isRunning: true });
    try {
      const { results } = await dryRun(group, {});
      setTried({ results, failed: results.filter((/** @type {any} */ result) => result.error) });
    } catch (failure) { setTried({ failure }); }
  };
  const act = async (/** @type {() => Promise<any>} */ run, /** @type {(answer: any) => string} */ told) => {
    setOpen("");
    try { say(told(await run())); } catch (/** @type {any} */ error) {
      if (error.code === "count_mismatch") say("The number of steps has changed meanwhile. Nothing was done.", { kind: "error", detail: `${error.message} · ${detailOf(error)}` }, 15_000);
      else complain(error, title);
    }
    setTried(null);
    reload();
  };
  return html`<section class="card group" aria-label=${title}>
    <header class="bar"><h2>${isLone ? title : html`<${Link} to=${`/plugins/${plugin}`}>${plugin}<//> · ${hook}${line ? ` · line ${line}` : ""}`}</h2> <${Badge} kind="failed">${kind.replaceAll("_", " ")}<//> <strong>${steps(count)}</strong>
      <span class="dim">first <${Time} at=${first.parked_at} />, last <${Time} at=${last.parked_at} />${first.retry_at && html`, next retry ${Date.parse(first.retry_at) > Date.now() ? html`<${Time} at=${first.retry_at} />` : "now"}`}</span></header>
    <pre class="reason">${message}</pre>
    <div class="actions">
      <button disabled=${!has("api:write")} title=${has("api:write") ? "Calls the plugin again and writes nothing" : why} onClick=${attempt}>Dry run</button>
      <${Link} class="button" to=${`/plugins/${plugin}/bench`} query=${{ hook, kind, line }}>Script bench${line ? `, line ${line}` : ""}<//>
      <button disabled=${Boolean(why)} title=${why} onClick=${() => setOpen("replay")}>Replay ${count.toLocaleString("en")}…</button>
      <button disabled=${Boolean(why)} title=${why} onClick=${() => setOpen("delete")}>Give up ${count.toLocaleString("en")}…</button>
      <button class="quiet" aria-expanded=${open === "steps"} onClick=${() => setOpen(open === "steps" ? "" : "steps")}>${open === "steps" ? "Hide the steps" : "Show the steps"}</button>
    </div>
    <div role="status">${tried?.isRunning && html`<${Loading} what="Running" />`}
      ${tried?.results && html`<p>${tried.failed.length === 0 ? html`<strong>All ${tried.results.length} calls work now.</strong> A replay would settle them.` : html`<strong>${tried.failed.length} of ${tried.results.length}</strong> calls fail again: ${tried.failed[0].error.message}`}${count > group.ids.length ? html` <span class="dim">The first ${group.ids.length} steps were tried.</span>` : ""}</p>`}</div>
    ${tried?.failure && html`<${Failure} error=${tried.failure} />`}
    ${open === "steps" && html`<${Steps} group=${group} reload=${reload} why=${why} edit=${edit} />`}
    ${open === "replay" && html`<${Confirm} title=${`Replay ${steps(count)}?`} action=${`Replay ${steps(count)}`} close=${() => setOpen("")}
      act=${() => act(() => replayGroup(group), (answer) => `${answer.done} replayed${answer.failed ? `, ${answer.failed} failed again` : ""}`)}>
      The plugin <strong>${plugin}</strong> is called again for ${steps(count)}. Steps that fail again stay parked. If the number of steps has changed until then, nothing is done.<//>`}
    ${open === "delete" && html`<${Confirm} title=${`Give up ${steps(count)}?`} action=${`Give up ${steps(count)}`} close=${() => setOpen("")} act=${() => act(() => deleteGroup(group), () => `${steps(count)} given up`)}>
      What <strong>${plugin}</strong> would have found in these events stays missing until the plugin is replayed over the log.<//>`}
  </section>`;
}

/** @param {{title: string, action: string, act: () => void, close: () => void, children?: any}} props */
export function Confirm({ title, action, act, close, children }) {
  return html`<${Dialog} title=${title} close=${close}><p>${children}</p>
    <footer class="bar"><button class="quiet" onClick=${close}>Cancel</button><button class="primary" autofocus onClick=${act}>${action}</button></footer><//>`;
}

/** @param {{group: import("./groups.js").Group, reload: () => void, why: string, edit: (step: any) => void}} props */
function Steps({ group, reload, why, edit }) {
  const { plugin, hook, kind, line } = group;
  const list = usePages((cursor, abort) => readSteps(group, cursor, abort), [plugin, hook, kind, line]);
  const state = stringify([group.count, group.first, group.last]);
  const known = useRef(state);
  // The groups are read again after every event, and the steps only after a change of their group.
  useEffect(() => { if (known.current !== state) list.reload(); known.current = state; }, [state]);
  const failure = list.error && html`<${Failure} error=${list.error} retry=${list.reload} />`;
  if (!list.value) return failure ?? html`<${Loading} />`;
  const all = list.rows;
  const each = (/** @type {Promise<any>} */ call, /** @type {string} */ told) => call.then(() => { say(told); reload(); }, complain);
  return html`${failure}<${Table} class="step-rows" label="Steps" count=${all.length} reachedEnd=${list.more} width="58rem"
    head=${html`<th>Position</th><th>Event</th><th>Aggregate</th><th>Attempts</th><th>Parked</th><th>Next retry</th><th class="action">Action</th>`}
    row=${(/** @type {number} */ index) => { const step = all[index]; return html`<tr key=${step.id} aria-rowindex=${index + 2}>
      <td class="number"><${Link} to=${`/events/${encodeURIComponent(step.event_id)}`}>${step.position}<//></td><td>${step.event_type}</td><td><${Link} to=${`/a/${encodeURIComponent(step.aggregate_id)}`}><bdi>${step.aggregate_id}</bdi><//></td>
      <td class="number">${step.attempts}</td><td class="dim"><${Time} at=${step.parked_at} /></td><td class="dim">${step.retry_at ? html`<${Time} at=${step.retry_at} />` : "none"}</td>
      <td><button class="quiet" disabled=${Boolean(why)} title=${why} aria-label=${`Replay the step at ${step.position}`} onClick=${() => each(replayStep(step), "Replayed")}>replay</button><button class="quiet" disabled=${Boolean(why)} title=${why} aria-label=${`Give up the step at ${step.position}`} onClick=${() => each(deleteStep(step), "Given up")}>give up</button><button
        class="quiet" disabled=${Boolean(why)} title=${why || "Append the event again, edited"} aria-label=${`Edit the event at ${step.position} and append it again`} onClick=${() => edit(step)}>edit</button></td></tr>`; }} />`;
}
