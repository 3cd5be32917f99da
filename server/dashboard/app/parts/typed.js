// A field that keeps what is typed until it is finished, whatever is rendered meanwhile.

import { html, useLayoutEffect, useState } from "../vendor/ui.js";

/**
 * @param {{value: string | number, change: (text: string) => void, [name: string]: any}} props `change` is called when the
 * text is finished. What it does not take as the new value does not stay in the field.
 */
export function Typed({ value, change, ...rest }) {
  const [text, setText] = useState(String(value));
  useLayoutEffect(() => setText(String(value)), [value]);
  return html`<input ...${rest} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onChange=${(/** @type {any} */ event) => { change(event.target.value); setText(String(value)); }} />`;
}
