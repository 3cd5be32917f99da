// One plugin: its state, its parked groups, its source, and its operations.

import { html, useState } from "../../vendor/ui.js";
import { get, post } from "../../api/client.js";
import { has } from "../../api/session.js";
import { moment } from "../../state/route.js";
import { complain, say } from "../../state/toasts.js";
import { Badge, Copy, Empty, Failure, Link, Loading } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { Editor } from "../../parts/editor.js";
import { useLive, useLoad } from "../../parts/load.js";
import { NowNote } from "../../parts/now.js";
import { Value } from "../../parts/value.js";
import { useAgain } from "../parked/again.js";
import { Group } from "../parked/group.js";
import { readGroups } from "../parked/groups.js";
import { ms } from "../plugins.js";

/** The time between two reads while events arrive. */
const QUIET_MS = 1_000;
/** The hooks that a replay calls. */
const REPLAYED = new Set(["enrich", "route", "work"]);

/** @param {{name: string}} props */
export function Plugin({ name }) {
  const { value: plugin, error, reload } = useLoad((abort) => get(`/plugins/${encodeURIComponent(name)}`, {}, abort), [name]);
  const groups = useLoad((abort) => readGroups(name, abort), [name]);
  const [open, setOpen] = useState("");
  const [refused, setRefused] = useState(/** @type {any} */ (null));
  const again = () => { reload(); groups.reload(); };
  const { edit, dialog } = useAgain(again);
  useLive(again, () => true, QUIET_MS);
  const heading = html`<p class="dim"><${Link} to="/plugins">Plugins<//></p><${NowNote}>The plugin is shown as of now: the past of its calls is not kept.<//>`;
  if (error && !plugin) return html`<div class="page">${heading}<h1>${name}</h1><${Failure} error=${error} retry=${reload} /></div>`;
  if (!plugin) return html`<div class="page">${heading}<h1>${name}</h1><${Loading} /></div>`;
  const why = !has("api:write") ? "This needs the scope api:write." : moment.value ? "Nothing can be changed in the past." : "";
  const resume = () => post(`/plugins/${name}/resume`).then(() => { say(`${name} is called again`); again(); }, complain);
  const load = () => { setRefused(null); post(`/plugins/${name}/reload`).then((answer) => { say(answer.changed ? `${name} ${answer.version} processes events from position ${answer.from_position}` : `The files of ${name} have not changed`); again(); }, setRefused); };
  const isScripted = Boolean(plugin.digest);
  const canReplay = plugin.hooks.some((/** @type {string} */ hook) => REPLAYED.has(hook));
  const failure = plugin.last_error;
  return html`<div class="page plugin">${heading}${error && html`<${Failure} error=${error} retry=${reload} />`}<header class="bar"><h1>${plugin.name}</h1> <span class="dim">${plugin.version}</span> <${Badge} kind=${plugin.status} />
      ${plugin.status === "stopped" && html`<button class="primary" disabled=${Boolean(why)} title=${why} onClick=${resume}>Resume</button>`}
      ${canReplay && html`<button disabled=${Boolean(why)} title=${why} onClick=${() => setOpen("replay")}>Replay…</button>`}
      ${isScripted && html`<button disabled=${Boolean(why)} title=${why || "Loads the plugin's current files"} onClick=${load}>Reload</button>
        <${Link} class="button" to=${`/plugins/${name}/bench`}>Script bench<//>`}</header>
    <p>${plugin.description}</p>
    ${plugin.status === "stopped" && html`<p class="banner">The circuit is open: after failures for several aggregates in a row, the plugin is no longer called.${plugin.stopped_by && html` The last of them was the event <${Link} to=${`/events/${encodeURIComponent(plugin.stopped_by)}`}><code>${plugin.stopped_by}</code><//>.`} Mend the cause, then resume.</p>`}
    ${refused && html`<${Refused} error=${refused} name=${name} />`}
    ${failure && html`<div class="failure"><p>Last error: ${failure.message}</p><p class="dim"><code>${failure.kind}${failure.line ? ` at line ${failure.line}, column ${failure.column ?? 1}` : ""}</code>
      ${isScripted && failure.line && html` <${Link} to=${`/plugins/${name}/bench`} query=${{ line: failure.line }}>show the line<//>`}</p></div>`}
    <section><h2>Parked steps</h2>
      ${groups.error && html`<${Failure} error=${groups.error} retry=${groups.reload} />`}
      ${groups.value?.length === 0 && html`<${Empty}>No step of this plugin is parked.<//>`}
      ${groups.value?.map((group) => html`<${Group} key=${[group.hook, group.kind, group.line].join(" ")} group=${group} reload=${again} edit=${edit} isLone />`)}</section>${dialog}
    <div class="halves"><section><h2>State</h2><dl class="facts">
        <div><dt>Hooks</dt><dd>${plugin.hooks.join(", ")}</dd></div><div><dt>Called for events</dt><dd>${(plugin.on?.events ?? []).join(", ") || "–"}</dd></div><div><dt>of types with the traits</dt><dd>${(plugin.on?.traits ?? []).join(", ") || "–"}</dd></div>
        <div><dt>Calls</dt><dd class="number">${plugin.runs.toLocaleString("en")}</dd></div><div><dt>Errors</dt><dd class="number">${plugin.errors.toLocaleString("en")}</dd></div><div><dt>Parked</dt><dd class="number">${plugin.parked.toLocaleString("en")}</dd></div>
        <div><dt>Median, 99th percentile</dt><dd>${ms(plugin.p50_ms)}, ${ms(plugin.p99_ms)}</dd></div><div><dt>After a failed step</dt><dd>${plugin.on_error}</dd></div>
        <div><dt>Source since position</dt><dd class="number">${plugin.from_position}</dd></div></dl></section>
      <section><h2>Settings</h2>${Object.keys(plugin.settings ?? {}).length ? html`<${Value} value=${plugin.settings} />` : html`<p class="dim">The plugin has no settings.</p>`}</section></div>
    ${isScripted ? html`<${Source} name=${name} line=${failure?.line ?? null} />` : html`<h2>Source</h2><p class="dim">The plugin is a part of the program.</p>`}
    ${open === "replay" && html`<${Replay} plugin=${plugin} close=${() => setOpen("")} done=${again} />`}
  </div>`;
}

/** The error of a reload, with a link to its line. @param {{error: any, name: string}} props */
export function Refused({ error, name }) {
  const { file, line, column } = { ...error.body, ...error.body?.details?.[0] };
  return html`<${Failure} error=${error} />${line && html`<p><code>${[file, line, column].filter(Boolean).join(":")}</code> <${Link} to=${`/plugins/${name}/bench`} query=${{ line }}>Open line ${line} in the bench<//></p>`}`;
}

/** @param {{name: string, line: number | null}} props */
function Source({ name, line }) {
  const { value, error, reload } = useLoad((abort) => get(`/plugins/${encodeURIComponent(name)}/source`, {}, abort), [name]);
  const [path, setPath] = useState("");
  if (error) return html`<h2>Source</h2><${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<h2>Source</h2><${Loading} />`;
  const file = value.files.find((/** @type {any} */ known) => known.path === path) ?? value.files.find((/** @type {any} */ known) => known.path.endsWith(".rhai")) ?? value.files[0];
  return html`<section class="source"><h2>Source</h2>
    <div class="tabs" role="tablist" aria-label="Files">${value.files.map((/** @type {any} */ known) => html`<button role="tab" aria-selected=${known === file} onClick=${() => setPath(known.path)}>${known.path}</button>`)}</div>
    ${file && html`<${Editor} key=${file.path} label=${file.path} value=${file.text ?? "The file is too large to be shown."} language="text" readOnly numbers line=${file.path.endsWith(".rhai") ? line : null} /><${Copy} text=${file.text ?? ""}>copy the file<//>`}</section>`;
}

/** Shows the number of events of a replay, which a dry run counts, before the plugin is called again. @param {{plugin: any, close: () => void, done: () => void}} props */
function Replay({ plugin, close, done }) {
  const [from, setFrom] = useState(1);
  const hooks = plugin.hooks.filter((/** @type {string} */ known) => REPLAYED.has(known));
  const isWorker = hooks.length === 1 && hooks[0] === "work";
  const [hook, setHook] = useState(isWorker ? "work" : "");
  const [isBusy, setBusy] = useState(false);
  const chosen = { from_position: from, ...(hook ? { hook } : {}) };
  const { value, error, isLoading } = useLoad((abort) => post(`/plugins/${plugin.name}/replay`, { ...chosen, dry_run: true }, { signal: abort }).then(({ events }) => Number(events)), [from, hook]);
  const what = hook === "work" ? "task" : "event";
  const start = async () => {
    setBusy(true);
    try {
      const result = await post(`/plugins/${plugin.name}/replay`, chosen);
      say(hook === "work" ? `${result.events} tasks replayed: ${result.delivered} answers delivered` : `${result.events} events replayed: ${result.changed} aggregates changed, ${result.edges_opened} edges opened, ${result.edges_closed} closed, ${result.assigned} tasks assigned`, result.failed ? { kind: "error", detail: `${result.failed} calls failed and are parked` } : {}, 15_000);
      close();
      done();
    } catch (failure) { setBusy(false); complain(failure); }
  };
  return html`<${Dialog} title=${`Replay ${plugin.name}`} close=${close}>
    <p>${hook === "work" ? "The plugin is called for the tasks that wait for its agent or have failed." : "The plugin is called again for old events. New facts replace the old ones. Work is assigned only from events from which none was assigned before."}</p>
    <form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); start(); }}>
      <label>From position <input type="number" min="1" value=${from} onInput=${(/** @type {any} */ event) => setFrom(Math.max(1, Number(event.target.value) || 1))} /></label>
      ${hooks.length > 1 && html`<label>Hook <select value=${hook} onChange=${(/** @type {any} */ event) => setHook(event.target.value)}><option value="">${hooks.filter((/** @type {string} */ known) => known !== "work").join(" and ")}</option>${hooks.map((/** @type {string} */ known) => html`<option>${known}</option>`)}</select></label>`}
      ${error && html`<${Failure} error=${error} />`}
      <p role="status">${error ? "" : value === undefined || isLoading ? "Counting…" : html`The plugin is called for <strong>${value.toLocaleString("en")}</strong> ${what}${value === 1 ? "" : "s"}.`}</p>
      <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary" disabled=${isBusy || isLoading || !value}>${isBusy ? "Replaying…" : `Replay ${value === undefined ? "" : value.toLocaleString("en")} ${what}${value === 1 ? "" : "s"}`}</button></footer>
    </form><//>`;
}
