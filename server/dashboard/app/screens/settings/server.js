// The server that responds: its version, its store, whether other servers share the store, and its limits.

import { html } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { Failure, Loading, Time } from "../../parts/basic.js";
import { bytes } from "../../parts/size.js";
import { useReturning } from "./shared.js";

/** @param {any} value */
const number = (value) => Number(value).toLocaleString("en");
/** The limits in the order of the page, with the format of their values. @type {[string, string, (value: any) => string][]} */
const LIMITS = [
  ["body_bytes", "Body of a request", bytes], ["page_rows", "Rows of a page", number], ["page_bytes", "Page of events", bytes],
  ["pipeline_ms", "Time of a pipeline", (value) => `${number(value)} ms`], ["pipeline_bytes", "Memory of a pipeline", bytes],
  ["event_streams", "Event streams of a workspace", number], ["sockets", "Sockets of agents of a workspace", number],
  ["requests_per_minute", "Requests of a key in a minute", (value) => (value === null ? "no limit" : number(value))],
];
/** The number of servers that a store allows, in words. @type {Record<string, string>} */
const SERVERS = {
  one: "This server alone works on the store.",
  several: "Several servers may work on the store. Each request is answered by one of them, and this page is about the one that answered.",
};

export default function Server() {
  const { value, error, reload } = useReturning(async (abort) => {
    const [info, consumers] = await Promise.all([get("/system/info", {}, abort), get("/system/consumers", {}, abort)]);
    return { info: /** @type {Schemas["SystemInfo"]} */ (info), consumers: consumers.consumers };
  });
  if (error && !value) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<${Loading} />`;
  const { info, consumers } = value;
  return html`${error && html`<${Failure} error=${error} retry=${reload} />`}<h2>Servers</h2><p>${SERVERS[info.servers] ?? info.servers}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Servers"><table class="rows"><thead><tr><th>Server</th><th>Version</th><th>Started</th><th>Store</th></tr></thead>
      <tbody><tr><td>${location.host}</td><td>${info.version}</td><td><${Time} at=${info.started_at} /></td><td>${info.store}</td></tr></tbody></table></div>
    <h2>Consumers of the log</h2><div class="scroll" tabindex="0" role="region" aria-label="Consumers of the log"><table class="rows"><thead><tr><th>Consumer</th><th>Keeps</th><th class="number">Position</th><th class="number">Behind</th><th class="number">Parked</th></tr></thead>
      <tbody>${consumers.map((/** @type {Schemas["Consumer"]} */ consumer) => html`<tr key=${consumer.name}><td>${consumer.name}</td><td class="dim">${consumer.keeps}</td><td class="number">${number(consumer.position)}</td><td class="number">${number(consumer.lag)}</td><td class="number">${number(consumer.parked)}</td></tr>`)}</tbody></table></div>
    <h2>Limits</h2><dl class="facts">${LIMITS.map(([name, label, text]) => html`<div key=${name}><dt>${label}</dt><dd>${text(/** @type {any} */ (info.limits)[name])}</dd></div>`)}</dl>
    <p class="dim">The configuration of the server sets these limits. <code>foldwork export</code> writes a workspace into one file, from which <code>foldwork import</code> restores it.</p>`;
}
