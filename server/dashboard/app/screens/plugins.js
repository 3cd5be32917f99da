// Plugins: their statistics, one plugin with its source and its failures, and the bench for its script.

import { html, useEffect } from "../vendor/ui.js";
import { get } from "../api/client.js";
import { listen } from "../api/feed.js";
import { Badge, Empty, Failure, Link, Loading, short } from "../parts/basic.js";
import { useLoad } from "../parts/load.js";
import { NowNote } from "../parts/now.js";
import { loadStyle } from "../parts/style.js";
import { Bench } from "./plugins/bench.js";
import { Plugin } from "./plugins/one.js";

loadStyle("plugins");
const QUIET_MS = 1_000;

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Plugins({ path: [name, part], query }) {
  if (!name) return html`<${List} />`;
  return part === "bench" ? html`<${Bench} key=${name} name=${name} query=${query} />` : html`<${Plugin} key=${name} name=${name} />`;
}

/** @param {any} value */
export const ms = (value) => (typeof value === "number" ? `${value.toFixed(1)} ms` : "–");

function List() {
  const { value, error, reload } = useLoad(async (abort) => {
    const [plugins, consumers] = await Promise.all([get("/plugins", {}, abort), get("/system/consumers", {}, abort)]);
    return { data: plugins.data, lag: consumers.consumers.find((/** @type {any} */ known) => known.name === "graph")?.lag ?? 0 };
  }, []);
  useEffect(() => {
    /** @type {number | undefined} */
    let timer;
    const stop = listen(() => { timer ??= setTimeout(() => { timer = undefined; reload(); }, QUIET_MS); });
    return () => { clearTimeout(timer); stop(); };
  }, []);
  return html`<div class="page"><header class="bar"><h1>Plugins</h1>${value && html`<span class="dim" role="status">${value.lag === 0 ? "called for all events" : html`<strong>${value.lag.toLocaleString("en")}</strong> ${value.lag === 1 ? "event" : "events"} behind`}</span>`}<${Link} to="/parked">Parked steps<//></header>
    <${NowNote}>Plugins are shown as of now: the past of their calls is not kept.<//>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!value && !error && html`<${Loading} />`}
    ${value?.data.length === 0 && html`<${Empty}>No plugin is enabled. <code>[plugins] enabled</code> in <code>config.toml</code> lists them.<//>`}
    ${value && value.data.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Plugins"><table class="rows"><thead><tr><th>Plugin</th><th>State</th><th>Hooks</th><th>Called for</th><th class="number">Calls</th><th class="number">Errors</th><th class="number">Parked</th><th class="number">p50</th><th class="number">p99</th><th>Last error</th></tr></thead><tbody>
      ${value.data.map((/** @type {any} */ plugin) => html`<tr key=${plugin.name}><td><${Link} to=${`/plugins/${plugin.name}`}>${plugin.name}<//> <span class="dim">${plugin.version}</span></td>
        <td><${Badge} kind=${plugin.status} />${plugin.status === "stopped" && html` <span class="dim">circuit open</span>`}</td><td class="dim">${plugin.hooks.join(", ")}</td><td class="dim">${(plugin.on?.events ?? []).join(", ") || "–"}</td>
        <td class="number">${plugin.runs.toLocaleString("en")}</td><td class="number">${plugin.errors.toLocaleString("en")}</td><td class="number">${plugin.parked > 0 ? html`<${Link} to="/parked" query=${{ plugin: plugin.name }}>${plugin.parked}<//>` : 0}</td><td class="number dim">${ms(plugin.p50_ms)}</td><td class="number dim">${ms(plugin.p99_ms)}</td><td class="dim">${plugin.last_error ? short(plugin.last_error.message, 60) : ""}</td></tr>`)}
    </tbody></table></div>`}</div>`;
}
