// The colors and the keyboard shortcuts of the dashboard in this browser.

import { html, useState } from "../../vendor/ui.js";
import { letters, setLetters } from "../../state/keys.js";

const THEMES = { system: "as the system", light: "light", dark: "dark" };

export default function Appearance() {
  const [theme, setTheme] = useState(localStorage.getItem("foldwork.theme") ?? "system");
  const choose = (/** @type {string} */ next) => {
    setTheme(next);
    if (next === "system") { localStorage.removeItem("foldwork.theme"); delete document.documentElement.dataset.theme; }
    else { localStorage.setItem("foldwork.theme", next); document.documentElement.dataset.theme = next; }
  };
  return html`<fieldset class="card"><legend>Colors</legend>${Object.entries(THEMES).map(([name, label]) => html`
      <label class="check" key=${name}><input type="radio" name="theme" checked=${theme === name} onChange=${() => choose(name)} /> ${label}</label>`)}</fieldset>
    <fieldset class="card"><legend>Keyboard</legend>
      <label class="check"><input type="checkbox" checked=${letters.value} onChange=${(/** @type {any} */ event) => setLetters(event.target.checked)} /> Single letters are shortcuts</label>
      <p class="dim">Turn this off if you dictate, or if letters arrive by accident. Everything has a button as well. <kbd>?</kbd> lists the shortcuts of a screen.</p></fieldset>`;
}
