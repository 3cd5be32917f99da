// The proposal of an agent, the edit of a reviewer, and the effective values, field by field side by side.

import { html } from "../../vendor/ui.js";
import { TextDiff } from "../../parts/diff.js";
import { isEqual, Value } from "../../parts/value.js";

/** Marks a value that a side lacks. */
const ABSENT = Symbol("absent");
/** @typedef {{name: string, proposed: any, edited: any, effective: any}} Row each side is a value or `ABSENT` */

/** @param {any} object @param {string} name */
const at = (object, name) => (object && name in object ? object[name] : ABSENT);

/** The content of one artifact as fields. @param {any} artifact @returns {Record<string, any>} */
const contentOf = (artifact) => Object.fromEntries(artifact.parts.map((/** @type {any} */ part, /** @type {number} */ index) =>
  [artifact.parts.length === 1 ? "content" : `content, part ${index + 1}`, part.text ?? part.data ?? part]));

/**
 * The sides of an artifact: its content and the payload of its effect.
 *
 * @param {any} proposed the version of its author @param {any} edited the version of a reviewer, or null @param {any} payload
 * that takes effect, or null
 * @returns {Row[]}
 */
function rowsOf(proposed, edited, payload) {
  const [mine, yours] = [contentOf(proposed), edited ? contentOf(edited) : null];
  const content = Object.keys({ ...mine, ...yours }).map((name) => ({ name, proposed: at(mine, name), edited: at(yours, name), effective: ABSENT }));
  const [was, is] = [proposed.effect?.payload ?? {}, edited?.effect?.payload];
  const fields = Object.keys({ ...was, ...is, ...payload }).map((name) => ({ name, proposed: at(was, name), edited: at(is, name), effective: at(payload, name) }));
  return [...content, ...fields];
}

/**
 * The artifacts of a task that take effect or were edited, with their sides.
 *
 * @param {any} task @param {any[]} artifacts the artifacts that no later version replaces @param {any[]} effects that approval would append, or has appended
 * @returns {{artifact: any, proposed: any, edited: any, effect: any, rows: Row[]}[]}
 */
export function sides(task, artifacts, effects) {
  return artifacts.flatMap((artifact) => {
    const before = (/** @type {any} */ one) => task.artifacts.find((/** @type {any} */ other) => other.id === one.supersedes);
    let proposed = artifact;
    // Only the versions of reviewers have a patch.
    while (proposed.patch && before(proposed)) proposed = before(proposed);
    const edited = proposed === artifact ? null : artifact;
    const effect = effects.find((known) => (known.artifact_id ?? known.metadata?.artifact_id) === artifact.id) ?? null;
    if (!edited && !effect) return [];
    return [{ artifact, proposed, edited, effect, rows: rowsOf(proposed, edited, effect?.payload ?? null) }];
  });
}

/** A side of a form before it is sent. @param {{name: string, before: any, now: any, effective?: any}} field @returns {Row} */
export const typedRow = ({ name, before, now, effective = ABSENT }) => ({ name, proposed: before, edited: isEqual(before, now) ? ABSENT : now, effective });

/** @param {{rows: Row[], heads: [string, string, string], label: string}} props `heads` names the sides */
export function Sides({ rows, heads, label }) {
  return html`<table class="rows sides" aria-label=${label}><thead><tr><th>Field</th>${heads.map((head, index) => html`<th key=${index}>${head}</th>`)}</tr></thead><tbody>
    ${rows.map(({ name, proposed, edited, effective }) => html`<tr key=${name}><th scope="row">${name}</th>
      <td data-head=${heads[0]}><${Side} value=${proposed} none="absent" /></td>
      <td data-head=${heads[1]}><${Side} value=${edited} before=${proposed} none="unchanged" /></td>
      <td data-head=${heads[2]}><${Side} value=${effective} before=${edited === ABSENT ? proposed : edited} none="–" /></td></tr>`)}</tbody></table>`;
}

/** A value, with its differences from the previous side. @param {{value: any, before?: any, none: string}} props */
function Side({ value, before = ABSENT, none }) {
  if (value === ABSENT) return html`<span class="dim">${none}</span>`;
  if (before === ABSENT || isEqual(before, value)) return html`<${Value} value=${value} open=${false} />`;
  if (typeof value === "string" && typeof before === "string") return html`<${TextDiff} before=${before} after=${value} />`;
  return html`<ins><${Value} value=${value} open=${false} /></ins>`;
}
