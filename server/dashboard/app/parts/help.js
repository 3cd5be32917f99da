// The keyboard shortcuts of the current screen, and the switch for single letters.

import { html } from "../vendor/ui.js";
import { letters, setLetters, shortcuts } from "../state/keys.js";
import { Dialog } from "./dialog.js";

/** @param {{close: () => void}} props */
export default function Help({ close }) {
  const groups = Map.groupBy(shortcuts.value, (shortcut) => shortcut.group ?? "This screen");
  return html`<${Dialog} title="Keyboard shortcuts" close=${close} class="wide">
    <div class="columns">${[...groups].map(([group, known]) => html`<section key=${group}><h3>${group}</h3>
      <dl class="keys">${known.map(({ key, label }) => html`<div><dt><kbd>${key.replace("ctrl+", "Ctrl ").replace("shift+", "Shift ")}</kbd></dt><dd>${label}</dd></div>`)}</dl>
    </section>`)}</div>
    <label class="check"><input type="checkbox" checked=${letters.value} onChange=${(/** @type {any} */ event) => setLetters(event.target.checked)} />
      Single letters are shortcuts</label>
  <//>`;
}
