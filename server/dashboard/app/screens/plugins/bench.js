// The script bench: a script is changed here, called for real events, and compared with the loaded version. Nothing is written.

import { html, useEffect, useMemo, useState } from "../../vendor/ui.js";
import { get, post } from "../../api/client.js";
import { has, isLeaving } from "../../api/session.js";
import { register } from "../../state/keys.js";
import { Badge, Copy, Empty, Failure, Link, Loading, short } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { StateDiff, TextDiff } from "../../parts/diff.js";
import { Editor } from "../../parts/editor.js";
import { useLoad } from "../../parts/load.js";
import { Table } from "../../parts/table.js";
import { Value } from "../../parts/value.js";
import { dryRun, keyOf, readGroups } from "../parked/groups.js";
import { compareRuns } from "./compare.js";

const EVENTS = 100;

/** Files that are changed here, by plugin, so that they are not lost on another screen. @type {Map<string, {script: string, manifest: string}>} */
const changed = new Map();
// These files are lost with the page, so the browser asks before the page is left.
addEventListener("beforeunload", (event) => { if (changed.size > 0 && !isLeaving.peek()) event.preventDefault(); });

/** @param {{name: string, query: URLSearchParams}} props */
export function Bench({ name, query }) {
  const heading = html`<p class="dim"><${Link} to="/plugins">Plugins<//> / <${Link} to=${`/plugins/${name}`}>${name}<//></p><h1>Script bench</h1>`;
  const { value, error, reload } = useLoad(async (abort) => {
    const optional = (/** @type {Promise<any>} */ call) => call.catch((failure) => ({ failure }));
    const [plugin, source, groups] = await Promise.all([
      get(`/plugins/${encodeURIComponent(name)}`, {}, abort), optional(get(`/plugins/${encodeURIComponent(name)}/source`, {}, abort)), optional(readGroups(name, abort)),
    ]);
    return { plugin, source, groups: Array.isArray(groups) ? groups : [] };
  }, [name]);
  if (error) return html`<div class="page">${heading}<${Failure} error=${error} retry=${reload} /></div>`;
  if (!value) return html`<div class="page">${heading}<${Loading} /></div>`;
  return html`<div class="page bench">${heading}<${Work} ...${value} name=${name} query=${query} /></div>`;
}

/** @param {{name: string, plugin: any, source: any, groups: any[], query: URLSearchParams}} props */
function Work({ name, plugin, source, groups, query }) {
  const file = (/** @type {string} */ end) => source.files?.find((/** @type {any} */ known) => known.path.endsWith(end))?.text ?? "";
  const [original, manifestBefore] = [file(".rhai"), file(".toml") && (source.files.find((/** @type {any} */ known) => known.path.endsWith("plugin.toml"))?.text ?? "")];
  const [script, setScript] = useState(changed.get(name)?.script ?? original);
  const [manifest, setManifest] = useState(changed.get(name)?.manifest ?? manifestBefore);
  const [tab, setTab] = useState("script");
  const asked = groups.find((group) => group.hook === query.get("hook") && group.kind === query.get("kind") && String(group.line ?? "") === (query.get("line") ?? "")) ?? null;
  const [over, setOver] = useState(asked ? JSON.stringify(keyOf(asked)) : "last");
  const [outcome, setOutcome] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const line = Number(query.get("line")) || null;
  const isChanged = script !== original || manifest !== manifestBefore;
  useEffect(() => { isChanged ? changed.set(name, { script, manifest }) : changed.delete(name); }, [script, manifest, isChanged]);
  const refused = refusedAt(outcome?.failure);
  const failed = line && script === original && !refused ? { file: "script", line, message: asked?.message ?? plugin.last_error?.message ?? "The step failed here." } : null;
  const place = [refused, failed].find((known) => known?.file === tab) ?? null;
  const start = async () => {
    if (isBusy || !has("api:write")) return;
    setBusy(true);
    try {
      const version = { ...(script !== original || !original ? { script } : { source: "loaded" }), ...(manifest !== manifestBefore ? { manifest } : {}) };
      const group = groups.find((known) => JSON.stringify(keyOf(known)) === over);
      const call = (/** @type {object} */ of) => (group ? dryRun(group, of) : post(`/plugins/${name}/dry-run`, { last: EVENTS, ...of }));
      const runs = await overBoth(call, version);
      setOutcome({ rows: compareRuns(runs.before, runs.after), ended: runs.ended });
    } catch (failure) {
      setOutcome({ failure });
      setTab(refusedAt(failure)?.file ?? tab);
    }
    setBusy(false);
  };
  useEffect(() => register([{ key: "ctrl+enter", label: "Dry run", run: start }]));
  const marks = (/** @type {any} */ state) => {
    if (!place || place.line > state.doc.lines) return [];
    const { from, to } = state.doc.line(place.line);
    return [{ from, to: Math.max(to, from + 1), message: place.message }];
  };
  return html`${source.failure && html`<${Failure} error=${source.failure} /><p class="dim">The source cannot be read here. Paste the script to try it.</p>`}
    <div class="halves"><section>
      <div class="tabs" role="tablist" aria-label="Files"><button role="tab" aria-selected=${tab === "script"} onClick=${() => setTab("script")}>plugin.rhai${script !== original ? " (changed)" : ""}</button>
        <button role="tab" aria-selected=${tab === "manifest"} onClick=${() => setTab("manifest")}>plugin.toml${manifest !== manifestBefore ? " (changed)" : ""}</button></div>
      ${place && html`<p class="fault"><span aria-hidden="true">✗ </span>Line ${place.line}: ${place.message}</p>`}
      ${tab === "script" ? html`<${Editor} key="script" label="Script" value=${script} onChange=${setScript} language="text" numbers run=${start} line=${place?.line ?? null} marked=${place?.line} marks=${marks} />`
        : html`<${Editor} key="manifest" label="Manifest" value=${manifest} onChange=${setManifest} language="text" numbers run=${start} line=${place?.line ?? null} marked=${place?.line} marks=${marks} />`}
      <div class="bar"><${Copy} text=${() => (tab === "script" ? script : manifest)}>copy the ${tab === "script" ? "script" : "manifest"}<//>
        ${isChanged && html`<button class="quiet" onClick=${() => { setScript(original); setManifest(manifestBefore); }}>Start over</button>`}</div>
      ${script !== original && original && html`<details><summary>What was changed</summary><${TextDiff} before=${original} after=${script} /></details>`}
      <p class="dim">To keep a change, copy it into the plugin's folder on the server and reload the plugin.</p>
    </section><section>
      <div class="bar"><label>Over <select value=${over} onChange=${(/** @type {any} */ event) => setOver(event.target.value)}>
          <option value="last">the last ${EVENTS} events of the plugin</option>
          ${groups.map((group) => html`<option value=${JSON.stringify(keyOf(group))}>${group.ids.length} parked steps: ${group.hook}${group.line ? `, line ${group.line}` : ""}, ${short(group.message, 40)}</option>`)}</select></label>
        <button class="primary" disabled=${isBusy || !has("api:write")} title=${has("api:write") ? "Dry run (Ctrl Enter)" : "This needs the scope api:write."} onClick=${start}>${isBusy ? "Running…" : "Dry run"}</button></div>
      <p class="dim">Calls ${isChanged ? "the loaded and the changed version" : "the loaded version"} for these events and writes nothing.</p>
      ${outcome?.failure && html`<${Failure} error=${outcome.failure} />`}
      ${outcome?.rows && html`<${Differences} rows=${outcome.rows} ended=${outcome.ended} />`}
    </section></div>`;
}

/** The line of a text that the server rejects. @param {any} failure @returns {{file: string, line: number, message: string} | null} */
function refusedAt(failure) {
  const found = failure?.code === "plugin_refused" ? /^(script|manifest):(\d+):\d+: (.*)$/s.exec(failure.message) : null;
  return found && { file: found[1], line: Number(found[2]), message: found[3] };
}

/** Calls both versions for the same events. @param {(version: object) => Promise<any>} call @param {object} changed */
async function overBoth(call, changed) {
  const before = await call({ source: "loaded" });
  const after = await call(changed);
  return { before: before.results, after: after.results, ended: after.ended_at ?? before.ended_at ?? null };
}

const WORDS = { mended: "mended", broken: "broken", failing: "still failing", changed: "changed", same: "the same" };

/** @param {{rows: ReturnType<typeof compareRuns>, ended: number | null}} props */
function Differences({ rows, ended }) {
  const [opened, setOpened] = useState(/** @type {any} */ (null));
  const counts = useMemo(() => Map.groupBy(rows, ({ kind }) => kind), [rows]);
  if (rows.length === 0) return html`<${Empty}>The plugin is called for none of these events.<//>`;
  return html`<p role="status">${Object.entries(WORDS).filter(([kind]) => counts.has(/** @type {any} */ (kind))).map(([kind, word], index) => html`${index > 0 && ", "}<strong>${counts.get(/** @type {any} */ (kind))?.length}</strong> ${word}`)}${ended ? html` <span class="dim">The time of a dry run ended at position ${ended}.</span>` : ""}</p>
    <${Table} class="bench-rows" label="Differences" count=${rows.length} width="38rem" head=${html`<th class="narrow"><span class="hidden">Show</span></th><th>Position</th><th>Hook</th><th>Result</th><th>Time</th><th class="payload">Facts</th>`}
      row=${(/** @type {number} */ index) => { const { kind, before, after } = rows[index]; const result = after ?? before; return html`<tr key=${index} aria-rowindex=${index + 2}>
        <td class="narrow"><button class="quiet" aria-label=${`Show the difference at ${result.position}`} onClick=${() => setOpened(rows[index])}>▸</button></td>
        <td class="number"><${Link} to=${`/events/${encodeURIComponent(result.event_id)}`}>${result.position}<//></td><td>${result.hook}</td><td><${Badge} kind=${kind === "broken" || kind === "failing" ? "failed" : kind}>${WORDS[kind]}<//></td><td class="number dim">${result.ms?.toFixed(1)} ms</td>
        <td class="dim payload">${short(result.error?.message ?? rows[index].right, 120)}</td></tr>`; }} />
    ${opened && html`<${Dialog} title=${`Position ${(opened.after ?? opened.before).position}: ${WORDS[/** @type {keyof typeof WORDS} */ (opened.kind)]}`} class="wide" close=${() => setOpened(null)}>
      <${StateDiff} before=${opened.left} after=${opened.right} none="Both versions return the same." />
      <h3>Result of the changed version</h3><${Value} value=${opened.after} /><//>`}`;
}
