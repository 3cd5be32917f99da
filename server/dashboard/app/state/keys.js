// Keyboard shortcuts. One registry serves the keys, the tooltips, the help and the palette.

import { signal } from "../vendor/ui.js";

/** @typedef {{key: string, label: string, run: () => void, group?: string, enabled?: () => boolean, repeats?: boolean}} Shortcut `repeats` is whether the shortcut runs repeatedly while its key is held */

/** @type {import("../vendor/ui.js").Signal<Shortcut[]>} */
export const shortcuts = signal([]);
/** Whether single letters are shortcuts. Users who dictate can turn these shortcuts off. */
export const letters = signal(localStorage.getItem("foldwork.letters") !== "off");

/** @param {boolean} on */
export function setLetters(on) {
  letters.value = on;
  localStorage.setItem("foldwork.letters", on ? "on" : "off");
}

/** Registers shortcuts. Returns a function that removes them. @param {Shortcut[]} added */
export function register(added) {
  shortcuts.value = [...shortcuts.peek(), ...added];
  return () => { shortcuts.value = shortcuts.peek().filter((known) => !added.includes(known)); };
}

/** Whether AltGr is held, behind which many layouts have `@` and `{`. Some systems report it as Ctrl and Alt. @param {KeyboardEvent} event */
const isGraph = (event) => event.getModifierState("AltGraph");

/** The name of a pressed key, such as `ctrl+k` or `shift+arrowdown`. @param {KeyboardEvent} event */
function name(event) {
  const key = event.key.length === 1 ? event.key : event.key.toLowerCase();
  const command = (event.ctrlKey || event.metaKey) && !isGraph(event) ? "ctrl+" : "";
  const shift = event.shiftKey && event.key.length > 1 ? "shift+" : "";
  return command + shift + key;
}

let pending = "";

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.defaultPrevented || (event.altKey && !isGraph(event)) || event.isComposing) return;
  const target = /** @type {HTMLElement} */ (event.target);
  const isTyping = target.closest("input:not([type=checkbox], [type=radio], [type=range]), textarea, select, [contenteditable], .editor") !== null;
  const key = name(event);
  const isSingle = key.length === 1;
  if (isSingle && (isTyping || !letters.value)) return;
  if (isTyping && !event.ctrlKey && !event.metaKey && event.key !== "Escape") return;
  if (key === "enter" && target.closest("a, button, summary")) return;
  // A key that closes a dialog is still on its way when the dialog is gone, and must not reach the screen below. Escape is
  // left to the browser, which closes the dialog.
  if (target.closest("dialog") || document.querySelector("dialog[open]")) return;
  const active = shortcuts.peek().filter((known) => known.enabled?.() ?? true);
  // The last registered shortcut has precedence: a dialog is above a screen, and a screen above the application.
  const found = active.findLast((known) => known.key === pending + key) ?? active.findLast((known) => known.key === key);
  pending = !found && isSingle && active.some((known) => known.key.startsWith(`${key} `)) ? `${key} ` : "";
  if (!found) return;
  event.preventDefault();
  // A held key runs a shortcut only once, unless the shortcut repeats.
  if (!event.repeat || found.repeats) found.run();
}

document.addEventListener("keydown", pressed);
