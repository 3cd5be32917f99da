// API keys and browser sessions: listed, created with the secret shown once, and revoked with what derives from them.

import { html, useState } from "../../vendor/ui.js";
import { call, get } from "../../api/client.js";
import { forget, session } from "../../api/session.js";
import { say } from "../../state/toasts.js";
import { Badge, Empty, Failure, Loading, Time } from "../../parts/basic.js";
import { Confirm } from "../../parts/confirm.js";
import { Act, Reason, refusal } from "../../parts/refused.js";
import { Table } from "../../parts/table.js";
import { CreateKey } from "./create-key.js";
import { entered, OwnKey, useReturning } from "./shared.js";

/** The names of the keys that the dashboard makes for itself begin with this. */
const SESSION = "dashboard · ";
const NAMED = 10;

export default function Keys() {
  const { value, error, reload, removed, list } = useReturning((abort) => get("/keys", {}, abort));
  const [isCreating, setCreating] = useState(false);
  const [revoked, setRevoked] = useState(/** @type {Schemas["Key"] | null} */ (null));
  const refused = refusal();
  /** @type {Schemas["Key"][]} */
  const keys = value?.data ?? [];
  const own = keys.find((key) => key.id === session.value?.id);
  const sessions = keys.filter((key) => key.name.startsWith(SESSION));
  const others = keys.filter((key) => !key.name.startsWith(SESSION));
  return html`<header class="bar"><p class="dim lead">A key opens this workspace to a program. Its secret is shown once, and the server keeps only a hash of it.</p>
      <${Act} class="primary" refused=${refused} onClick=${() => setCreating(true)}>Create key<//></header>
    <${Reason} refused=${refused} />
    ${error && html`<${Failure} error=${error} retry=${reload} />`}${!value && !error && html`<${Loading} />`}
    ${value && html`<${List} label="Keys" keys=${others} all=${keys} own=${own} revoke=${setRevoked} list=${list} refused=${refused} />
      <h2>Browser sessions</h2><p class="dim">Each sign-in to the dashboard makes a key that ends after twelve hours or when its user signs out.</p>
      ${sessions.length === 0 ? html`<${Empty}>No browser is signed in.<//>` : html`<${List} label="Browser sessions" keys=${sessions} all=${keys} own=${own} revoke=${setRevoked} refused=${refused} />`}`}
    ${isCreating && html`<${CreateKey} own=${own} close=${() => setCreating(false)} created=${reload} />`}
    ${revoked && html`<${Revoke} revoked=${revoked} all=${keys} own=${own} close=${() => setRevoked(null)} done=${removed} />`}`;
}

/** @param {{label: string, keys: Schemas["Key"][], all: Schemas["Key"][], own?: Schemas["Key"], revoke: (key: Schemas["Key"]) => void, list?: any, refused: string}} props */
function List({ label, keys, all, own, revoke, list, refused }) {
  const names = new Map(all.map((key) => [key.id, key.name]));
  return html`<${Table} label=${label} count=${keys.length} width="58rem" scroll=${list}
    head=${html`<th class="wide">Key</th><th>Scopes</th><th>Made with</th><th class="when">Used</th><th class="when">Expires</th><th class="act">Actions</th>`}
    row=${(/** @type {number} */ index) => {
      const key = keys[index];
      const origin = key.derived_from ? names.get(key.derived_from) ?? "another key" : "";
      return html`<tr key=${key.id} aria-rowindex=${index + 2}>
        <td title=${key.name}><bdi>${key.name}</bdi> <code class="dim">${key.display}</code>${key.id === own?.id && html` <${Badge} kind="trait">this session<//>`}${key.agent_ids && html` <${Badge} kind="trait">${`${key.agent_ids.length} agents`}<//>`}${key.all_workspaces && html` <${Badge} kind="high">all workspaces<//>`}</td>
        <td class="dim" title=${key.scopes.join(", ")}>${key.scopes.length === 8 ? "all" : key.scopes.join(", ")}</td>
        <td class="dim" title=${origin}><bdi>${origin}</bdi></td><td class="dim">${key.last_used_at ? html`<${Time} at=${key.last_used_at} />` : "never"}</td><td class="dim">${key.expires_at ? html`<${Time} at=${key.expires_at} />` : "never"}</td>
        <td class="act"><${Act} class="quiet" refused=${refused} aria-label=${`Revoke ${key.name}`} onClick=${() => revoke(key)}>revoke<//></td></tr>`;
    }} />`;
}

/** The keys that were made with a key, and with those. @param {Schemas["Key"]} key @param {Schemas["Key"][]} all */
function derived(key, all) {
  const found = [key];
  for (const parent of found) found.push(...all.filter((other) => other.derived_from === parent.id && !found.includes(other)));
  return found.slice(1);
}

/** @param {{revoked: Schemas["Key"], all: Schemas["Key"][], own?: Schemas["Key"], close: () => void, done: () => void}} props */
function Revoke({ revoked, all, own, close, done }) {
  const children = derived(revoked, all);
  const isOwn = revoked.id === own?.id;
  const endsLater = !isOwn && own?.expires_at && (!revoked.expires_at || Date.parse(revoked.expires_at) > Date.parse(own.expires_at));
  const endsSession = isOwn || (endsLater && children.some((key) => key.id === own?.id));
  const affected = children.filter((key) => endsSession || key.id !== own?.id);
  const submit = async (/** @type {FormData} */ fields) => {
    await call("DELETE", `/keys/${revoked.id}`, { ...entered(fields), query: { cascade: true } });
    say(`${revoked.name} is revoked`);
    if (endsSession) forget();
    else done();
  };
  return html`<${Confirm} title=${`Revoke ${revoked.name}?`} action="Revoke" submit=${submit} close=${close}>
    <p>Requests with this key are refused at once, and streams that it opened end.</p>
    ${affected.length > 0 && html`<p>${affected.length === 1 ? "One key was" : `${affected.length} keys were`} made with it and ${affected.length === 1 ? "stops" : "stop"} working as well:</p>
      <ul>${affected.slice(0, NAMED).map((key) => html`<li key=${key.id}><bdi>${key.name}</bdi> <code class="dim">${key.display}</code></li>`)}${affected.length > NAMED && html`<li>and ${affected.length - NAMED} more</li>`}</ul>`}
    ${endsSession ? html`<p class="banner">This signs you out here.</p>` : children.some((key) => key.id === own?.id) && html`<p>This session was made with it, takes its place, and stays.</p>`}
    ${endsLater && html`<${OwnKey} required why="A key cannot revoke one that expires after it, and the key of this session expires first." />`}
  <//>`;
}
