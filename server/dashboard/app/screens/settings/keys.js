// API keys and browser sessions: listed, created and rotated with the secret shown once, and revoked with their derived
// keys.

import { html, useState } from "../../vendor/ui.js";
import { call, getAll } from "../../api/client.js";
import { forget, session } from "../../api/session.js";
import { say } from "../../state/toasts.js";
import { Badge, Empty, Failure, Loading, Time } from "../../parts/basic.js";
import { Confirm } from "../../parts/confirm.js";
import { Act, Reason, refusal } from "../../parts/refused.js";
import { Table } from "../../parts/table.js";
import { CreateKey, Secret } from "./create-key.js";
import { entered, OwnKey, useReturning } from "./shared.js";

/** The prefix of the names of the keys that the dashboard creates for itself. */
const SESSION = "dashboard · ";
const NAMED = 10;

export default function Keys() {
  const { value, error, reload, removed, list } = useReturning((abort) => getAll("/keys", abort));
  const [isCreating, setCreating] = useState(false);
  const [revoked, setRevoked] = useState(/** @type {Schemas["Key"] | null} */ (null));
  const [rotated, setRotated] = useState(/** @type {Schemas["Key"] | null} */ (null));
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
    ${value && html`<${List} label="Keys" keys=${others} all=${keys} own=${own} revoke=${setRevoked} rotate=${setRotated} list=${list} refused=${refused} />
      <h2>Browser sessions</h2><p class="dim">Each sign-in to the dashboard makes a key that ends after twelve hours or when its user signs out.</p>
      ${sessions.length === 0 ? html`<${Empty}>No browser is signed in.<//>` : html`<${List} label="Browser sessions" keys=${sessions} all=${keys} own=${own} revoke=${setRevoked} refused=${refused} />`}`}
    ${isCreating && html`<${CreateKey} own=${own} close=${() => setCreating(false)} created=${reload} />`}
    ${revoked && html`<${Revoke} revoked=${revoked} all=${keys} own=${own} close=${() => setRevoked(null)} done=${removed} />`}
    ${rotated && html`<${Rotate} rotated=${rotated} own=${own} close=${() => setRotated(null)} done=${reload} />`}`;
}

/** @param {{label: string, keys: Schemas["Key"][], all: Schemas["Key"][], own?: Schemas["Key"], revoke: (key: Schemas["Key"]) => void, rotate?: (key: Schemas["Key"]) => void, list?: any, refused: string}} props */
function List({ label, keys, all, own, revoke, rotate, list, refused }) {
  const names = new Map(all.map((key) => [key.id, key.name]));
  return html`<${Table} label=${label} count=${keys.length} width="58rem" scroll=${list}
    head=${html`<th class="wide">Key</th><th>Scopes</th><th>Made with</th><th class="when">Used</th><th class="when">Expires</th><th class=${rotate ? "act two" : "act"}>Actions</th>`}
    row=${(/** @type {number} */ index) => {
      const key = keys[index];
      const origin = key.derived_from ? names.get(key.derived_from) ?? "another key" : "";
      return html`<tr key=${key.id} aria-rowindex=${index + 2}>
        <td title=${key.name}><bdi>${key.name}</bdi> <code class="dim">${key.display}</code>${key.id === own?.id && html` <${Badge} kind="trait">this session<//>`}${key.agent_ids && html` <${Badge} kind="trait">${`${key.agent_ids.length} ${key.agent_ids.length === 1 ? "agent" : "agents"}`}<//>`}${key.all_workspaces && html` <${Badge} kind="high">all workspaces<//>`}</td>
        <td class="dim" title=${key.scopes.join(", ")}>${key.scopes.length === 8 ? "all" : key.scopes.join(", ")}</td>
        <td class="dim" title=${origin}><bdi>${origin}</bdi></td><td class="dim">${key.last_used_at ? html`<${Time} at=${key.last_used_at} />` : "never"}</td><td class="dim">${key.expires_at ? html`<${Time} at=${key.expires_at} />` : "never"}</td>
        <td class="act">${rotate && html`<${Act} class="quiet" refused=${refused || (isOver(key) ? "The key has expired." : "")} aria-label=${`Rotate ${key.name}`} onClick=${() => rotate(key)}>rotate<//>`}<${Act} class="quiet" refused=${refused} aria-label=${`Revoke ${key.name}`} onClick=${() => revoke(key)}>revoke<//></td></tr>`;
    }} />`;
}

/** @param {Schemas["Key"]} key */
const isOver = (key) => key.expires_at !== null && Date.parse(key.expires_at) < Date.now();

/** Whether a key works longer than the key of this session. @param {Schemas["Key"]} key @param {Schemas["Key"]} [own] */
const outlives = (key, own) => Boolean(own?.expires_at && (!key.expires_at || Date.parse(key.expires_at) > Date.parse(own.expires_at)));

/** The times after which a rotated key ends. */
const LEFT = [["0", "at once"], ["3600", "in an hour"], ["86400", "in a day"], ["604800", "in 7 days"], ["2592000", "in 30 days"]];

/** @param {{rotated: Schemas["Key"], own?: Schemas["Key"], close: () => void, done: () => void}} props */
function Rotate({ rotated, own, close, done }) {
  const [made, setMade] = useState(/** @type {Schemas["CreatedKey"] | null} */ (null));
  if (made) return html`<${Secret} made=${made} close=${close} />`;
  const submit = async (/** @type {FormData} */ fields) => {
    setMade(await call("POST", `/keys/${rotated.id}/rotate`, { ...entered(fields), body: { ends_after_seconds: Number(fields.get("left")) } }));
    done();
    return "stay";
  };
  return html`<${Confirm} title=${`Rotate ${rotated.name}`} action="Rotate" submit=${submit} close=${close}>
    <p>A new key takes the place of <code>${rotated.display}</code>, with the same name, scopes, agents and expiry. Keys that were made with it keep working.</p>
    <label>The old key ends <select name="left" autofocus>${LEFT.map(([seconds, text]) => html`<option key=${seconds} value=${seconds} selected=${seconds === "3600"}>${text}</option>`)}</select></label>
    ${outlives(rotated, own) && html`<${OwnKey} required why="A key cannot rotate one that expires after it, and the key of this session expires first." />`}
  <//>`;
}

/** The keys that were derived from a key, directly or through other keys. @param {Schemas["Key"]} key @param {Schemas["Key"][]} all */
function derived(key, all) {
  const found = [key];
  for (const parent of found) found.push(...all.filter((other) => other.derived_from === parent.id && !found.includes(other)));
  return found.slice(1);
}

/** @param {{revoked: Schemas["Key"], all: Schemas["Key"][], own?: Schemas["Key"], close: () => void, done: () => void}} props */
function Revoke({ revoked, all, own, close, done }) {
  // The server may have derived keys that were created since the list was read.
  const [later, setLater] = useState(/** @type {Schemas["Key"][]} */ ([]));
  const children = later.length > 0 ? later : derived(revoked, all);
  const isOwn = revoked.id === own?.id;
  const endsLater = !isOwn && outlives(revoked, own);
  const isMade = children.some((key) => key.id === own?.id);
  const endsSession = isOwn || (endsLater && isMade);
  const affected = children.filter((key) => endsSession || key.id !== own?.id);
  const [keeps, setKeeps] = useState(false);
  const submit = async (/** @type {FormData} */ fields) => {
    try {
      await call("DELETE", `/keys/${revoked.id}`, { ...entered(fields), query: affected.length > 0 ? { cascade: !keeps } : {} });
    } catch (/** @type {any} */ failure) {
      if (failure.code !== "derived_keys") throw failure;
      setLater(failure.body.derived_keys ?? []);
      throw Object.assign(new Error("Keys were made with this one meanwhile. Say what happens with them."), { code: failure.code, requestId: failure.requestId });
    }
    say(`${revoked.name} is revoked`);
    if (endsSession && !(keeps && !isOwn)) forget();
    else done();
  };
  return html`<${Confirm} title=${`Revoke ${revoked.name}?`} action="Revoke" submit=${submit} close=${close}>
    <p>Requests with this key are refused at once, and streams that it opened end.</p>
    ${affected.length > 0 && html`<fieldset><legend>${affected.length === 1 ? "One key was made with it" : `${affected.length} keys were made with it`}</legend>
      <ul>${affected.slice(0, NAMED).map((key) => html`<li key=${key.id}><bdi>${key.name}</bdi> <code class="dim">${key.display}</code></li>`)}${affected.length > NAMED && html`<li>and ${affected.length - NAMED} more</li>`}</ul>
      <label class="check"><input type="radio" name="derived" checked=${!keeps} onChange=${() => setKeeps(false)} /> ${affected.length === 1 ? "ends" : "end"} as well</label>
      <label class="check"><input type="radio" name="derived" checked=${keeps} onChange=${() => setKeeps(true)} /> ${affected.length === 1 ? "keeps" : "keep"} working</label></fieldset>`}
    ${endsSession && !(keeps && !isOwn) ? html`<p class="banner">This signs you out here.</p>` : isMade && html`<p>This session was made with it, takes its place, and stays.</p>`}
    ${endsLater && html`<${OwnKey} required why="A key cannot revoke one that expires after it, and the key of this session expires first." />`}
  <//>`;
}
