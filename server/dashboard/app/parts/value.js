// JSON as a readable tree, with exact numbers, and with marks at the differences from another value.

import { html, useState } from "../vendor/ui.js";
import { ExactNumber, stringify } from "../api/json.js";
import { BOOKKEEPING, changedFields, isEqual } from "../state/compare.js";
import { Copy } from "./basic.js";

export { isEqual };

/** The number of items of a list or an object that are shown until the reader requests more. */
const SHOWN = 100;
/** The number of characters of a text that are shown until the reader requests more. */
const TEXT = 2_000;
/** Marks that a tree is not compared with anything. */
const NOTHING = Symbol("nothing");

/**
 * @param {{value: any, open?: boolean, before?: any}} props
 * With `before`, the parts of the tree that differ from it are marked.
 */
export function Value({ value, open = true, before = NOTHING }) {
  const [most, setMost] = useState(SHOWN);
  if (value === null) return html`<span class="null">null</span>`;
  if (value instanceof ExactNumber) return html`<span class="number">${value.text}</span>`;
  if (typeof value === "string") return html`<${Text} text=${value} />`;
  if (typeof value !== "object") return html`<span class=${typeof value}>${String(value)}</span>`;
  const entries = Object.entries(value);
  if (entries.length === 0) return html`<span class="dim">${Array.isArray(value) ? "[ ]" : "{ }"}</span>`;
  const isCompared = before !== NOTHING;
  const was = (/** @type {string} */ name) => (before && typeof before === "object" ? before[name] : undefined);
  const body = () => html`<dl class="tree">
    ${entries.slice(0, most).map(([name, child]) => {
      const isChanged = isCompared && !BOOKKEEPING.has(name) && !isEqual(was(name), child);
      return html`<div key=${name} class=${isChanged ? "changed" : undefined}><dt>${name}${isChanged && html`<span class="hidden"> (changed)</span>`}</dt>
        <dd><${Value} value=${child} open=${isChanged && typeof was(name) === "object"} before=${isChanged ? was(name) : NOTHING} /></dd></div>`;
    })}
    ${entries.length > most && html`<div><button class="quiet" onClick=${() => setMost(most + 10 * SHOWN)}>Show more of ${(entries.length - most).toLocaleString("en")}</button></div>`}
  </dl>`;
  if (open) return body();
  const summary = Array.isArray(value) ? `[${entries.length}]` : `{${entries.slice(0, 4).map(([name]) => name).join(", ")}${entries.length > 4 ? ", …" : ""}}`;
  return html`<${Folded} summary=${summary} body=${body} />`;
}

/** A part of a tree that exists in the document only while it is open. @param {{summary: string, body: () => any}} props */
function Folded({ summary, body }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details onToggle=${(/** @type {any} */ event) => { if (event.target === event.currentTarget) setOpen(event.currentTarget.open); }}><summary>${summary}</summary>${isOpen && body()}</details>`;
}

/** @param {{text: string}} props */
function Text({ text }) {
  if (text.length <= TEXT) return html`<span class="string" dir="auto">${text}</span>`;
  return html`<${Long} text=${text} />`;
}

/** A text whose beginning is shown until the reader requests the whole text. @param {{text: string}} props */
function Long({ text }) {
  const [isWhole, setWhole] = useState(false);
  return html`<span class="string" dir="auto">${isWhole ? text : `${text.slice(0, 400)}…`}</span>
    <button class="quiet" onClick=${() => setWhole(!isWhole)}>${isWhole ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}</button>`;
}

/** A value as the JSON that the API sends. @param {{value: any}} props */
export function Raw({ value }) {
  const text = stringify(value, 2) ?? "";
  return html`<div class="raw"><${Copy} text=${text}>copy JSON<//><pre tabindex="0" aria-label="JSON"><code>${text.length > 20 * TEXT ? `${text.slice(0, 20 * TEXT)}\n…` : text}</code></pre></div>`;
}

/**
 * The fields in which two states differ.
 *
 * @param {any} before @param {any} after
 * @returns {{name: string, before: any, after: any}[]}
 */
export function changes(before, after) {
  return changedFields(before ?? {}, after ?? {})
    .filter((name) => !name.startsWith("_"))
    .map((name) => ({ name, before: before?.[name], after: after?.[name] }));
}
