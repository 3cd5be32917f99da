// One stage of a pipeline: its text, its output, and its place among the other stages.

import { html } from "../../vendor/ui.js";
import { stringify } from "../../api/json.js";
import { Badge, Expandable, short } from "../../parts/basic.js";
import { Editor } from "../../parts/editor.js";
import { Value } from "../../parts/value.js";
import { operator, wordOf } from "./model.js";
import { rangeOf } from "./place.js";
import { complete } from "./words.js";

/** The range of a stage's text that an error underlines. @param {string} text @param {import("./model.js").Fault} fault */
function marked(text, fault) {
  if (fault.at !== undefined) return { from: Math.min(fault.at, text.length), to: Math.min(fault.at + 1, text.length), message: fault.message };
  const { from, to } = wordOf(text, fault.path) ?? rangeOf(text, fault.path);
  return { from, to: Math.min(to, text.length), message: fault.hint ? `${fault.message} (${fault.hint})` : fault.message };
}

/**
 * @param {{card: import("./model.js").Card, index: number, count: number, fault: import("./model.js").Fault | null, outcome: any, notes: any[] | null,
 *   isStale: boolean, run: () => void, change: (changed: object) => void, move: (by: number) => void, remove: () => void, add: () => void}} props
 */
export function StageCard({ card, index, count, fault, outcome, notes, isStale, run, change, move, remove, add }) {
  const number = index + 1;
  const name = operator(card.text) || "stage";
  return html`<li class=${`stage ${card.isOn ? "" : "off"} ${fault ? "faulty" : ""}`} aria-label=${`Stage ${number}, ${name}`}>
    <div class="written">
      <header>
        <label class="check"><input type="checkbox" checked=${card.isOn} aria-label=${`Stage ${number} is on`} onChange=${() => change({ isOn: !card.isOn })} /> <strong>${number}</strong> <code>${name}</code></label>
        <span class="tools">
          <button class="quiet" aria-label=${`Move stage ${number} up`} title="Move up" disabled=${index === 0} onClick=${() => move(-1)}>↑</button>
          <button class="quiet" aria-label=${`Move stage ${number} down`} title="Move down" disabled=${index === count - 1} onClick=${() => move(1)}>↓</button>
          <button class="quiet" aria-label=${`Add a stage after stage ${number}`} title="Add a stage after this one" onClick=${add}>+</button>
          <button class="quiet" aria-label=${`Delete stage ${number}`} title="Delete" onClick=${remove}>×</button>
        </span>
      </header>
      <${Editor} label=${`Stage ${number}`} value=${card.text} onChange=${(/** @type {string} */ text) => change({ text })} complete=${complete} run=${run}
        marked=${fault} marks=${(/** @type {any} */ state) => (fault ? [marked(state.doc.toString(), fault)] : [])} />
      ${fault && html`<div class="fault" role="alert"><p><span aria-hidden="true">✗ </span>${fault.message}${fault.hint && html` <strong>${fault.hint}</strong>`}</p>
        ${(fault.code || fault.requestId) && html`<p class="dim"><code>${[fault.code, fault.requestId && `request ${fault.requestId}`].filter(Boolean).join(" · ")}</code></p>`}</div>`}
    </div>
    <div class=${`came ${isStale ? "stale" : ""}`}>
      ${!card.isOn ? html`<p class="dim">This stage is off.</p>` : html`<${Came} outcome=${outcome} notes=${notes} number=${number} />`}
    </div>
  </li>`;
}

/** The output of a stage. @param {{outcome: any, notes: any[] | null, number: number}} props */
function Came({ outcome, notes, number }) {
  if (!outcome && !notes) return html`<p class="dim">Not run yet.</p>`;
  return html`<p class="counts">${outcome && html`<strong>${outcome.rows.toLocaleString("en")} ${outcome.rows === 1 ? "row" : "rows"}</strong>`}
      ${outcome?.ms !== undefined && html` <span class="dim">${milliseconds(outcome.ms)}</span>`}
      ${notes && notes.map((note) => html` <${Badge} kind="note">${note}<//>`)}</p>
    ${outcome && outcome.preview?.length > 0 && html`<ul class="plain preview" aria-label=${`Rows after stage ${number}`}>
      ${outcome.preview.map((/** @type {any} */ row, /** @type {number} */ index) => html`<li key=${index}><${Expandable} line=${html`<code class="grow" dir="auto">${line(row)}</code>`}><${Value} value=${row} /><//></li>`)}
      ${outcome.more && html`<li class="dim">and ${(outcome.rows - outcome.preview.length).toLocaleString("en")} more</li>`}
    </ul>`}`;
}

/** The least informative fields of a row, which come last. */
const LAST = new Set(["aggregate_type", "project_id", "_created_at", "_last_event_at", "_traits", "_facts", "_position", "_version", "metadata", "actor", "occurred_at", "recorded_at"]);

/** A row in one line. @param {any} row */
function line(row) {
  if (typeof row !== "object" || row === null || Array.isArray(row) || typeof row.toJSON === "function") return short(stringify(row) ?? "", 300);
  // The id of an event is less informative than the event's aggregate.
  const isLast = (/** @type {string} */ name) => LAST.has(name) || (name === "_id" && "event_type" in row);
  const names = Object.keys(row);
  const ordered = [...names.filter((name) => !isLast(name)), ...names.filter(isLast)];
  return short(stringify(Object.fromEntries(ordered.map((name) => [name, row[name]]))) ?? "", 300);
}

/** @param {number} ms */
export const milliseconds = (ms) => (ms < 10 ? `${Number(ms.toFixed(2))} ms` : `${Math.round(ms).toLocaleString("en")} ms`);
