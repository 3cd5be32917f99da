// A field that keeps what is typed until it is finished, whatever is rendered meanwhile.

import { html, useEffect, useState } from "../vendor/ui.js";

/** @param {{value: string | number, change: (text: string) => void, [name: string]: any}} props `change` is called when the text is finished. */
export function Typed({ value, change, ...rest }) {
  const [text, setText] = useState(String(value));
  useEffect(() => setText(String(value)), [value]);
  return html`<input ...${rest} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onChange=${(/** @type {any} */ event) => change(event.target.value)} />`;
}
