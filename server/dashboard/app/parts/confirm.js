// A question before an action. If the server rejects the action, the question stays open and shows the reason.

import { html, useState } from "../vendor/ui.js";
import { Failure } from "./basic.js";
import { Dialog } from "./dialog.js";

/**
 * @param {{title: string, action: string, submit: (fields: FormData) => Promise<any>, close: () => void, children?: any, class?: string}} props
 * `submit` receives the fields among the children. The dialog closes when it is done.
 */
export function Confirm({ title, action, submit, close, children, class: name }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      if (await submit(new FormData(/** @type {HTMLFormElement} */ (event.target))) !== "stay") close();
    } catch (failure) { setError(failure); }
    setBusy(false);
  };
  return html`<${Dialog} title=${title} close=${close} class=${name}>
    <form onSubmit=${send}>${children}
      ${error && html`<${Failure} error=${error} />`}
      <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary" disabled=${isBusy}>${action}</button></footer>
    </form>
  <//>`;
}
