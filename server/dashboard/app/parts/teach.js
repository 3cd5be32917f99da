// The requests of a screen: the operation of the API, the command that anybody can run, and the pipeline in it.

import { html } from "../vendor/ui.js";
import { API, calls } from "../api/client.js";
import { curl } from "../api/curl.js";
import { stringify } from "../api/json.js";
import { Copy, Failure, Link } from "./basic.js";
import { Dialog } from "./dialog.js";
import { useLoad } from "./load.js";
import { loadStyle } from "./style.js";

loadStyle("call");
const SHOWN = 10;

/** @typedef {{method: string, id: string, summary: string, scopes: string[], pattern: RegExp, isExact: boolean}} Operation */

/** @type {Promise<Operation[]> | null} */
let loading = null;

/** Reads the operations from the document of the API, once. @returns {Promise<Operation[]>} */
function operations() {
  loading ??= fetch("/openapi.json").then(async (response) => {
    if (!response.ok) throw new Error(`the document of the API answered with status ${response.status}`);
    const { paths } = await response.json();
    return Object.entries(paths).flatMap(([path, methods]) => Object.entries(/** @type {Record<string, any>} */ (methods)).filter(([, operation]) => operation.operationId).map(([method, operation]) => ({
      method: method.toUpperCase(), id: operation.operationId, summary: operation.summary ?? "", scopes: operation["x-required-scope"] ?? [],
      pattern: new RegExp(`^${path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, "[^/]+")}$`), isExact: !path.includes("{"),
    })));
  }).catch((error) => { loading = null; throw error; });
  return loading;
}

/** @param {Operation[]} known @param {{method: string, path: string}} call */
function operationOf(known, { method, path }) {
  const [plain] = path.split("?");
  const found = known.filter((operation) => operation.method === method && operation.pattern.test(plain));
  return found.find(({ isExact }) => isExact) ?? found[0];
}

/** The stream that keeps every screen live. The module `feed.js` opens the stream without `call`. */
const STREAM = { method: "GET", path: "/events?after=0", body: undefined };

/** @param {{close: () => void}} props */
export default function Teach({ close }) {
  const { value, error } = useLoad(operations, []);
  const here = location.pathname;
  const own = calls.value.filter((made) => made.screen === here);
  // The same request again, as a live screen makes it, teaches nothing new.
  const seen = new Set();
  const distinct = own.filter((made) => { const key = curl(made); return !seen.has(key) && seen.add(key); }).slice(0, SHOWN);
  return html`<${Dialog} title="This screen as API calls" close=${close} class="wide">
    <p>The dashboard is a client of the API and nothing else. These are the requests of this screen, newest first. The${" "}
      <a href="/docs" target="_blank" rel="noopener">documentation</a> describes every operation.</p>
    ${error && html`<${Failure} error=${error} />`}
    ${distinct.length === 0 && html`<p class="dim">This screen has made no request yet.</p>`}
    ${distinct.map((made) => html`<${Call} key=${curl(made)} made=${made} operation=${operationOf(value ?? [], made)} close=${close} />`)}
    <h3>What keeps it live</h3>
    <${Call} made=${STREAM} operation=${operationOf(value ?? [], STREAM)} close=${close} more="-N -H 'Accept: text/event-stream'" />
  <//>`;
}

/** @param {{made: any, operation: Operation | undefined, close: () => void, more?: string}} props */
function Call({ made, operation, close, more = "" }) {
  const command = more ? `${curl(made)} ${more}` : curl(made);
  const pipeline = made.path === "/aggregates/query" && Array.isArray(made.body?.pipeline) ? made.body.pipeline : null;
  return html`<section class="taught">
    <p><strong>${made.method}</strong> <code>${API}${made.path.split("?")[0]}</code> ${operation && html`<span><code class="operation">${operation.id}</code> <span class="dim">${operation.summary}${operation.scopes.length ? ` Scope ${operation.scopes.join(" or ")}.` : ""}</span></span>`}</p>
    ${pipeline && html`<div class="call"><pre tabindex="0"><code>${stringify(pipeline, 2)}</code></pre><${Copy} text=${() => stringify(pipeline, 2)} /></div>
      <p onClick=${close}><${Link} to="/pipelines" query=${{ q: stringify(pipeline) }}>Open in Pipelines<//></p>`}
    <div class="call"><pre tabindex="0"><code>${command}</code></pre><${Copy} text=${command} /></div>
  </section>`;
}
