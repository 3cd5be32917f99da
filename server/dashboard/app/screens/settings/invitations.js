// Invitations that the signed-in user has received from other workspaces.

import { html } from "../../vendor/ui.js";
import { get, post } from "../../api/client.js";
import { enter, session } from "../../api/session.js";
import { complain, say } from "../../state/toasts.js";
import { Empty, Failure, Loading, Time } from "../../parts/basic.js";
import { useReturning } from "./shared.js";

/** A key belongs to a workspace, so only a token of the identity provider can accept or decline an invitation. */
export const isToken = () => session.value !== null && !session.value.key.startsWith("sk_");

export function Received() {
  return html`<h2>Invitations to you</h2>${isToken() ? html`<${List} />` : html`<p class="dim">They are listed, and can be accepted, when you sign in with a token of your identity provider instead of a key.</p>`}`;
}

function List() {
  const { value, error, reload, removed, list } = useReturning((abort) => get("/invitations", {}, abort));
  if (error && !value) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<${Loading} />`;
  const answer = async (/** @type {Schemas["Invitation"]} */ invitation, /** @type {"accept" | "decline"} */ how) => {
    try {
      await post(`/invitations/${invitation.id}/${how}`);
      if (how === "accept") {
        enter(invitation.workspace_id, invitation.role);
        // Everything on the page belongs to the previous workspace.
        return location.assign("/");
      }
      say(`The invitation to ${invitation.workspace_name} is declined`);
    } catch (failure) { complain(failure); }
    removed();
  };
  if (value.data.length === 0) return html`<${Empty}>No workspace invites you.<//>`;
  return html`<ul class="plain" ref=${list} tabindex="-1" aria-label="Invitations to you">${value.data.map((/** @type {Schemas["Invitation"]} */ invitation) => html`<li key=${invitation.id} class="bar">
    <span><bdi>${invitation.workspace_name}</bdi> as ${invitation.role} <span class="dim">invited <${Time} at=${invitation.created_at} />, ends <${Time} at=${invitation.expires_at} /></span></span>
    <button onClick=${() => answer(invitation, "accept")} aria-label=${`Accept the invitation to ${invitation.workspace_name}`}>accept</button>
    <button onClick=${() => answer(invitation, "decline")} aria-label=${`Decline the invitation to ${invitation.workspace_name}`}>decline</button></li>`)}</ul>`;
}
