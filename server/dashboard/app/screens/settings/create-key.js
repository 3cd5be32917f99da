// Creating a key: its scopes, its lifetime, its agents, and the secret that is shown once.

import { html, useState } from "../../vendor/ui.js";
import { get, post } from "../../api/client.js";
import { session } from "../../api/session.js";
import { Copy, Failure } from "../../parts/basic.js";
import { Confirm } from "../../parts/confirm.js";
import { Dialog } from "../../parts/dialog.js";
import { useLoad } from "../../parts/load.js";
import { useStyle } from "../../parts/style.js";
import { entered, OwnKey, PAID, SCOPES } from "./shared.js";

const DAY_MS = 86_400_000;
const LIVES = [["7", "in 7 days"], ["30", "in 30 days"], ["90", "in 90 days"], ["365", "in a year"], ["date", "on a date"], ["never", "never"]];
const AGENTS = 200;

/**
 * @param {{own?: Schemas["Key"], agent?: {id: string, name: string}, close: () => void, created: () => void}} props `own`
 * is the key of this session, and `agent` is the only agent of the key
 */
export function CreateKey({ own, agent, close, created }) {
  useStyle("settings");
  const isDerived = session.value?.derived ?? false;
  const [made, setMade] = useState(/** @type {Schemas["CreatedKey"] | null} */ (null));
  const [life, setLife] = useState("30");
  const [isForAgents, setForAgents] = useState(false);
  const needsOwn = isDerived && life !== "session";
  const submit = async (/** @type {FormData} */ fields) => {
    const scopes = fields.getAll("scope");
    if (scopes.length === 0) throw Object.assign(new Error("a key needs at least one scope"), { code: "" });
    const agents = agent ? [agent.id] : fields.getAll("agent");
    const body = { name: String(fields.get("name")).trim(), scopes, expires_at: expiry(fields), ...(agents.length > 0 ? { agent_ids: agents } : {}) };
    setMade(await post("/keys", body, entered(fields)));
    created();
    return "stay";
  };
  const expiry = (/** @type {FormData} */ fields) => {
    if (life === "session") return own?.expires_at;
    if (life === "never") return undefined;
    return new Date(life === "date" ? String(fields.get("date")) : Date.now() + Number(life) * DAY_MS).toISOString();
  };
  if (made) return html`<${Secret} made=${made} close=${close} />`;
  return html`<${Confirm} title="Create a key" action="Create key" submit=${submit} close=${close} class="create-key">
    <label>Name <input name="name" required maxlength="100" autofocus placeholder="what it is for" defaultValue=${agent?.name ?? ""} /></label>
    <fieldset><legend>Scopes</legend>${Object.entries(SCOPES).map(([scope, what]) => { const isHeld = session.value?.scopes.includes(scope); return html`
      <label class="check" key=${scope}><input type="checkbox" name="scope" value=${scope} disabled=${!isHeld} defaultChecked=${scope === "api:read" || (agent && scope === "api:write")} />
        <span><code>${scope}</code> <span class="dim">${what}${PAID.includes(scope) ? ", with an active plan" : ""}${isHeld ? "" : " (this session lacks it)"}</span></span></label>`; })}</fieldset>
    <label>Expires <select name="life" value=${life} onChange=${(/** @type {any} */ event) => setLife(event.target.value)}>
      ${isDerived && html`<option value="session">with this session</option>`}${LIVES.map(([days, text]) => html`<option key=${days} value=${days}>${text}</option>`)}</select></label>
    ${life === "date" && html`<label>Date <input type="datetime-local" name="date" required /></label>`}
    ${agent ? html`<p class="dim">The key works on the tasks of <bdi>${agent.name}</bdi>, and changes and decides nothing else.</p>` : html`<label class="check"><input type="checkbox" checked=${isForAgents} onChange=${(/** @type {any} */ event) => setForAgents(event.target.checked)} /> For agents: work on their tasks, change and decide nothing else</label>`}
    ${isForAgents && html`<${Agents} />`}
    ${needsOwn && html`<${OwnKey} required why="A key ends with the key that made it, and the key of this session ends when you sign out." />`}
  <//>`;
}

/** The secret of a new key. @param {{made: Schemas["CreatedKey"], close: () => void}} props */
export function Secret({ made, close }) {
  return html`<${Dialog} title=${`Key ${made.name}`} close=${close} isKept>
    <p>This is the secret of the key. <strong>It is shown only now.</strong></p>
    <p class="secret"><code>${made.key}</code> <${Copy} text=${made.key ?? ""} /></p>
    <footer><button class="primary" onClick=${close} autofocus>Done</button></footer><//>`;
}

function Agents() {
  const { value, error, reload } = useLoad((abort) => get("/agents", { limit: AGENTS }, abort), []);
  if (error) return html`<${Failure} error=${error} retry=${reload} />`;
  return html`<label>Agents <select name="agent" multiple size="5" required>${(value?.data ?? []).map((/** @type {Schemas["Agent"]} */ agent) => html`<option key=${agent.id} value=${agent.id}>${agent.name}</option>`)}</select></label>`;
}
