// The state of an aggregate at a version: stepping, playing, comparing, and the event that created the version.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { change } from "../../state/route.js";
import { register } from "../../state/keys.js";
import { Failure, Loading } from "../../parts/basic.js";
import { StateDiff } from "../../parts/diff.js";
import { useLoad } from "../../parts/load.js";
import { Typed } from "../../parts/typed.js";
import { Raw, Value } from "../../parts/value.js";
import { Bar } from "./bar.js";
import { Event } from "./event.js";

const STEP_MS = 900;

/** @param {string} id @param {number} version @param {AbortSignal} abort */
const stateAt = (id, version, abort) => (version > 0 ? get(`/aggregates/${encodeURIComponent(id)}`, { version }, abort) : Promise.resolve({}));

/** @param {{id: string, latest: number, version: number, compared: number, isPlain: boolean, isDeleted: boolean}} props */
export function Stepper({ id, latest, version, compared, isPlain, isDeleted }) {
  const [isPlaying, setPlaying] = useState(false);
  // An address without a version always shows the newest version.
  const show = (/** @type {number} */ next) => change({ v: next >= latest ? null : Math.max(next, 1), compare: null }, { replace: true });
  useEffect(() => {
    if (!isPlaying) return;
    if (version >= latest) return setPlaying(false);
    const timer = setTimeout(() => show(version + 1), STEP_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, version, latest]);
  const play = () => { if (!isPlaying && version >= latest) show(1); setPlaying(!isPlaying); };
  useEffect(() => register([
    { key: "h", label: "Earlier version", run: () => show(version - 1), repeats: true },
    { key: "l", label: "Later version", run: () => show(version + 1), repeats: true },
    { key: "H", label: "First version", run: () => show(1) },
    { key: "L", label: "Last version", run: () => show(latest) },
    { key: "p", label: "Play or stop", run: play },
  ]), [version, latest, isPlaying]);
  return html`<div class="stepper" role="group" aria-label="Versions">
      <button onClick=${() => show(1)} disabled=${version <= 1} title="First version (H)" aria-label="First version">|◀</button>
      <button onClick=${() => show(version - 1)} disabled=${version <= 1} title="Earlier version (h)" aria-label="Earlier version">◀</button>
      <button onClick=${play} disabled=${latest <= 1} title="Play or stop (p)">${isPlaying ? "Stop" : "Play"}</button>
      <button onClick=${() => show(version + 1)} disabled=${version >= latest} title="Later version (l)" aria-label="Later version">▶</button>
      <button onClick=${() => show(latest)} disabled=${version >= latest} title="Last version (L)" aria-label="Last version">▶|</button>
      <label>Version <${Typed} type="number" min="1" max=${latest} value=${version} change=${(/** @type {string} */ text) => show(Number(text))} /></label>
      <span class="dim" role="status">of ${latest.toLocaleString("en")}</span>
      ${!isPlain && html`<label>compared with <${Typed} type="number" min="0" max=${latest} value=${compared} change=${(/** @type {string} */ text) => change({ v: version, compare: Math.min(Math.max(0, Number(text)), latest) }, { replace: true })} /></label>`}
      ${latest > 1 && html`<input type="range" min="1" max=${latest} value=${version} aria-label="Version of the state" onInput=${(/** @type {any} */ event) => show(Number(event.target.value))} />`}
    </div>
    <${Bar} id=${id} latest=${latest} version=${version} show=${show} />
    ${!isPlain && html`<${Version} id=${id} version=${version} compared=${compared} isDeletion=${isDeleted && version === latest} />`}`;
}

/** @param {{id: string, version: number, compared: number, isDeletion: boolean}} props */
function Version({ id, version, compared, isDeletion }) {
  const [isRaw, setRaw] = useState(false);
  const { value, error, reload } = useLoad(async (abort) => {
    const [after, before, events] = await Promise.all([
      isDeletion ? {} : stateAt(id, version, abort), stateAt(id, compared, abort),
      get(`/aggregates/${encodeURIComponent(id)}/events`, { after_version: version - 1, limit: 1 }, abort),
    ]);
    return { after, before, event: events.data[0], version, compared };
  }, [id, version, compared, isDeletion]);
  // When another version is chosen, the previous version stays until the new version is loaded.
  const [kept, setKept] = useState(value);
  useEffect(() => { if (value) setKept(value); }, [value]);
  const shown = value ?? kept;
  if (error) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!shown) return html`<${Loading} />`;
  return html`<div class="halves" aria-busy=${!value}>
    <section><header class="bar"><h2>State at version ${shown.version}</h2><button class="quiet" aria-pressed=${isRaw} onClick=${() => setRaw(!isRaw)}>JSON</button></header>
      ${isDeletion ? html`<p class="dim">The aggregate is deleted, so it has no state.</p>` : isRaw ? html`<${Raw} value=${shown.after} />` : html`<${Value} value=${shown.after} before=${shown.before} />`}</section>
    <section>
      <h2>${shown.compared === shown.version - 1 ? `Changed by version ${shown.version}` : `Changed since version ${shown.compared}`}</h2><${StateDiff} before=${shown.before} after=${shown.after} />
      ${shown.event && html`<${Event} event=${shown.event} />`}
    </section>
  </div>`;
}
