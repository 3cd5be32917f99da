// A field that keeps the typed text until the text is finished, even if the page renders again.

import { html, useLayoutEffect, useState } from "../vendor/ui.js";

/**
 * @param {{value: string | number, change: (text: string) => void, [name: string]: any}} props `change` is called when the
 * text is finished. If `change` does not take the text as the new value, the field shows the old value.
 */
export function Typed({ value, change, ...rest }) {
  const [text, setText] = useState(String(value));
  useLayoutEffect(() => setText(String(value)), [value]);
  return html`<input ...${rest} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onChange=${(/** @type {any} */ event) => { change(event.target.value); setText(String(value)); }} />`;
}
