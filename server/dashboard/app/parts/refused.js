// The reasons why an action is not possible: a scope that the key lacks, a role, or the past.

import { html } from "../vendor/ui.js";
import { lacks } from "../api/session.js";
import { moment } from "../state/route.js";

/** Returns the reason why this session cannot write, as a sentence, or an empty text. @param {string} [scope] */
export function refusal(scope = "api:write") {
  return lacks(scope) || (moment.value ? "Nothing can be changed in the past." : "");
}

/** A button that shows why it is disabled. @param {{refused: string, onClick: (event: any) => void, children?: any, class?: string, [name: string]: any}} props */
export function Act({ refused, children, ...rest }) {
  return html`<button type="button" disabled=${refused !== ""} title=${refused || undefined} ...${rest}>${children}</button>`;
}

/** The reason on a separate line, for users who do not hover. @param {{refused: string}} props */
export const Reason = ({ refused }) => (refused ? html`<p class="dim reason">${refused}</p>` : null);
