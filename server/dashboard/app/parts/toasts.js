// The messages at the edge of the page.

import { html, useEffect } from "../vendor/ui.js";
import { register } from "../state/keys.js";
import { dismiss, toasts, undoLast } from "../state/toasts.js";
import { Link } from "./basic.js";

export function Toasts() {
  useEffect(() => register([{ key: "z", label: "Undo", group: "Everywhere", run: undoLast, enabled: () => toasts.peek().some((toast) => toast.undo) }]), []);
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map((toast) => html`
    <div class=${`toast ${toast.kind}`} key=${toast.id}>
      <p>${toast.text}${toast.detail && html`<br /><code class="dim">${toast.detail}</code>`}</p>
      ${toast.undo && html`<button onClick=${toast.undo} aria-label=${`Undo: ${toast.text}`}>Undo <kbd>z</kbd></button>`}
      ${toast.link && html`<span onClick=${() => dismiss(toast.id)}><${Link} to=${toast.link.to}>${toast.link.text}<//></span>`}
      ${!toast.undo && html`<button class="quiet" aria-label="Dismiss" onClick=${() => dismiss(toast.id)}>×</button>`}
    </div>`)}</div>`;
}
