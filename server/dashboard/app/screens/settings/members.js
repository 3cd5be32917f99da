// Members and invitations: the members of the workspace with their roles, and the effects of a removal.

import { html, useState } from "../../vendor/ui.js";
import { call, get, getAll, post } from "../../api/client.js";
import { session } from "../../api/session.js";
import { moment } from "../../state/route.js";
import { say } from "../../state/toasts.js";
import { Badge, Failure, Loading, Time } from "../../parts/basic.js";
import { Confirm } from "../../parts/confirm.js";
import { useLoad } from "../../parts/load.js";
import { Act, Reason } from "../../parts/refused.js";
import { Table } from "../../parts/table.js";
import { Received } from "./invitations.js";
import { entered, OwnKey, unmanaged, useReturning } from "./shared.js";

/** @type {[Schemas["Role"], string][]} */
const ROLES = [["viewer", "reads"], ["editor", "reads and writes"], ["owner", "reads, writes, and manages members and everybody's keys"]];
const COUNTED = 200;

/** @param {Schemas["Member"]} member */
const named = (member) => member.name || member.email || member.id;

export default function Members() {
  const { value, error, reload, removed, list } = useReturning(async (abort) => {
    const [members, profile, workspace] = await Promise.all([getAll("/members", abort), get("/profile", {}, abort), get("/workspace", {}, abort)]);
    return { members: /** @type {Schemas["Member"][]} */ (members.data), profile, holder: workspace.owner_id };
  });
  const [asking, setAsking] = useState(/** @type {{what: "role" | "remove" | "invite", member?: any} | null} */ (null));
  const close = () => setAsking(null);
  if (error && !value) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<${Loading} />`;
  const { members, profile, holder } = value;
  const refused = moment.value ? "Nothing can be changed in the past." : unmanaged(profile);
  const fixed = (/** @type {Schemas["Member"]} */ member) => refused || (member.id === holder ? "The owner of the workspace stays, until another member takes over." : "");
  return html`<header class="bar"><p class="dim lead">People who share this workspace. An invitation moves nobody in until the person accepts it.</p>
      <${Act} class="primary" refused=${refused} onClick=${() => setAsking({ what: "invite" })}>Invite<//></header>
    <${Reason} refused=${refused} />${error && html`<${Failure} error=${error} retry=${reload} />`}
    <${Table} label="Members" count=${members.length} width="44rem" scroll=${list}
      head=${html`<th class="wide">Person</th><th>Role</th><th>State</th><th class="when">Since</th><th class="act two">Actions</th>`}
      row=${(/** @type {number} */ index) => {
        const member = members[index];
        const isInvited = member.status === "invited";
        return html`<tr key=${member.id} aria-rowindex=${index + 2}>
          <td title=${named(member)}>${member.id === profile.id && html`<${Badge} kind="trait">you<//> `}${member.id === holder && html`<${Badge} kind="trait">owner of the workspace<//> `}<bdi>${named(member)}</bdi>${member.name && member.email && html` <span class="dim">${member.email}</span>`}</td>
          <td>${member.role}</td><td><${Badge} kind=${member.status} /></td><td class="dim"><${Time} at=${member.created_at} /></td>
          <td class="act">${!isInvited && html`<${Act} class="quiet" refused=${fixed(member)} aria-label=${`Change the role of ${named(member)}`} onClick=${() => setAsking({ what: "role", member })}>role<//>`}
            <${Act} class="quiet" refused=${fixed(member)} aria-label=${`${isInvited ? "Withdraw the invitation of" : "Remove"} ${named(member)}`} onClick=${() => setAsking({ what: "remove", member })}>${isInvited ? "withdraw" : "remove"}<//></td></tr>`;
      }} />
    <${Received} />
    ${asking?.what === "invite" && html`<${Invite} close=${close} done=${reload} />`}
    ${asking?.what === "role" && html`<${Role} member=${asking.member} close=${close} done=${reload} />`}
    ${asking?.what === "remove" && html`<${Remove} member=${asking.member} members=${members} close=${close} done=${removed} />`}`;
}

/** @param {{chosen: string}} props */
const Roles = ({ chosen }) => html`<fieldset><legend>Role</legend>${ROLES.map(([role, may]) => html`
  <label class="check" key=${role}><input type="radio" name="role" value=${role} defaultChecked=${role === chosen} /> <span>${role} <span class="dim">${may}</span></span></label>`)}</fieldset>`;

/** @param {{close: () => void, done: () => void}} props */
function Invite({ close, done }) {
  const submit = async (/** @type {FormData} */ fields) => {
    const email = String(fields.get("email")).trim();
    await post("/members", { email, role: fields.get("role") }, entered(fields));
    say(`${email} is invited`);
    done();
  };
  return html`<${Confirm} title="Invite a person" action="Invite" submit=${submit} close=${close}>
    <label>E-mail address <input type="email" name="email" required autofocus autocomplete="off" /></label>
    <${Roles} chosen="editor" />
    <p class="dim">No mail is sent. The person signs in with this address, verified by the identity provider, and accepts.</p>
    ${session.value?.derived && html`<${OwnKey} why="An invitation ends with the key that made it. Without your own key it ends with this session: when you sign out, or after twelve hours." />`}
  <//>`;
}

/** @param {{member: Schemas["Member"], close: () => void, done: () => void}} props */
function Role({ member, close, done }) {
  const submit = async (/** @type {FormData} */ fields) => {
    const role = fields.get("role");
    const takesOver = fields.get("takes_over") === "on";
    await call("PATCH", `/members/${member.id}`, { body: takesOver ? { role, workspace_owner: true } : { role } });
    say(`${named(member)} is now ${role === "viewer" ? "a viewer" : `an ${role}`}`);
    done();
  };
  return html`<${Confirm} title=${`Role of ${named(member)}`} action="Change role" submit=${submit} close=${close}>
    <${Roles} chosen=${member.role} />
    <label class="check"><input type="checkbox" name="takes_over" /> <span>owner of the workspace <span class="dim">with the role owner: their plan limits the workspace, and the present owner can leave</span></span></label>
    <p class="dim">What the keys of this person may do changes at once.</p><//>`;
}

/** @param {{member: Schemas["Member"], members: Schemas["Member"][], close: () => void, done: () => void}} props */
function Remove({ member, members, close, done }) {
  const isInvited = member.status === "invited";
  const submit = async (/** @type {FormData} */ fields) => {
    await call("DELETE", `/members/${member.id}`, { query: { reassign_to: String(fields.get("heir") ?? "") } });
    say(isInvited ? `The invitation of ${named(member)} is withdrawn` : `${named(member)} is removed`);
    done();
  };
  if (isInvited) return html`<${Confirm} title=${`Withdraw the invitation of ${named(member)}?`} action="Withdraw" submit=${submit} close=${close}>
    <p>The person can no longer accept it.</p><//>`;
  return html`<${Confirm} title=${`Remove ${named(member)}?`} action="Remove" submit=${submit} close=${close}>
    <ul><li>The person loses access with the next request.</li>
      <li>All keys of this person for this workspace end, and the keys that the person made for agents.</li>
      <li>What the person wrote stays.</li></ul>
    <${Heir} member=${member} members=${members} /><//>`;
}

/** The choice of the successor for the open tasks. @param {{member: Schemas["Member"], members: Schemas["Member"][]}} props */
function Heir({ member, members }) {
  const { value, error } = useLoad(async (abort) => {
    const [tasks, agents] = await Promise.all([
      get("/mailbox", { assignee_type: "user", assignee_id: member.id, status: "open", limit: COUNTED }, abort), get("/agents", { limit: COUNTED }, abort),
    ]);
    return { tasks: tasks.data.length + (tasks.next_cursor ? "+" : ""), agents: agents.data };
  }, [member.id]);
  if (error) return html`<${Failure} error=${error} />`;
  if (!value) return html`<${Loading} what="Counting the open tasks" />`;
  if (value.tasks === "0") return html`<p>No open task is assigned to this person.</p>`;
  const people = members.filter((other) => other.id !== member.id && other.status === "active");
  return html`<label>${value.tasks === "1" ? "One open task is" : `${value.tasks} open tasks are`} assigned to this person. ${value.tasks === "1" ? "It goes" : "They go"} to
    <select name="heir"><option value="">nobody, to wait for everybody</option>
      ${people.map((other) => html`<option key=${other.id} value=${`user:${other.id}`}>${named(other)}</option>`)}
      ${value.agents.map((/** @type {any} */ agent) => html`<option key=${agent.id} value=${`agent:${agent.id}`}>${agent.name} (agent)</option>`)}</select></label>`;
}
