// A list at two moments: which rows were added, removed and changed.

import { html, useState } from "../vendor/ui.js";
import { ExactNumber, stringify } from "../api/json.js";
import { Empty } from "./basic.js";
import { StateDiff } from "./diff.js";
import { Rows } from "./rows.js";

const ROW = 40;
/** The maximum number of changed fields in the line of a row. */
const FIELDS = 3;
/** The maximum number of characters of a value in a line. */
const VALUE = 24;
const SIGNS = { added: "+", removed: "−", changed: "±" };

/**
 * @param {{result: ReturnType<typeof import("../state/compare.js").compareRows>, title: (row: any) => any, label: string}} props
 * `result` is what `compareRows` returned, and `title` shows a row in one line.
 */
export function Compared({ result, title, label }) {
  const [open, setOpen] = useState(-1);
  const rows = [
    ...result.added.map((row) => ({ kind: /** @type {const} */ ("added"), before: undefined, row, fields: /** @type {string[]} */ ([]) })),
    ...result.removed.map((row) => ({ kind: /** @type {const} */ ("removed"), before: row, row, fields: [] })),
    ...result.changed.map(({ before, after, fields }) => ({ kind: /** @type {const} */ ("changed"), before, row: after, fields })),
  ];
  const chosen = rows[open];
  const count = (/** @type {number} */ number, /** @type {string} */ word) => html`<span class=${`count ${number ? word : ""}`}>${number.toLocaleString("en")} ${word}</span>`;
  return html`<section class="compared" aria-label=${label}>
    <p role="status">${count(result.added.length, "added")} · ${count(result.removed.length, "removed")} · ${count(result.changed.length, "changed")} · <span class="dim">${result.same.length.toLocaleString("en")} unchanged</span></p>
    ${rows.length === 0 && html`<${Empty}>Nothing differs between the two moments.<//>`}
    ${rows.length > 0 && html`<div class="compared-rows" style=${{ height: `${Math.min(rows.length, 15) * ROW + 2}px` }}><${Rows} count=${rows.length} height=${ROW} chosen=${open} label=${label} id=${(/** @type {number} */ index) => stringify(/** @type {any} */ (rows[index].row)?._id) ?? index} row=${(/** @type {number} */ index) => {
      const { kind, row, before, fields } = rows[index];
      return html`<div class=${`compared-row ${kind} ${index === open ? "chosen" : ""}`}>
        <span class="sign" aria-hidden="true">${SIGNS[kind]}</span><span class="hidden">${kind}: </span>
        <span class="grow">${title(row)}</span>
        ${fields.length > 0 && html`<span class="what dim">${fields[0] === "" ? "" : fields.slice(0, FIELDS).map((field) => told(field, /** @type {any} */ (before)[field], /** @type {any} */ (row)[field])).join(", ")}${fields.length > FIELDS ? ", …" : ""}</span>`}
        <button class="quiet" aria-expanded=${index === open} onClick=${() => setOpen(index === open ? -1 : index)}>${kind === "changed" ? "Compare" : "Show"}</button>
      </div>`;
    }} /></div>`}
    ${chosen && html`<div class="card"><h2>${title(chosen.row)}</h2><${StateDiff} before=${chosen.before ?? {}} after=${chosen.kind === "removed" ? {} : chosen.row} /></div>`}
  </section>`;
}

/** Describes the change of a field, with its values if these are single and short. @param {string} name @param {any} before @param {any} after */
function told(name, before, after) {
  const isSingle = (/** @type {any} */ value) => value === undefined || typeof value !== "object" || value === null || value instanceof ExactNumber;
  const text = (/** @type {any} */ value) => (value === undefined ? "absent" : typeof value === "string" ? value : stringify(value));
  if (![before, after].every((value) => isSingle(value) && text(value).length <= VALUE)) return name;
  return `${name} ${text(before)} → ${text(after)}`;
}
