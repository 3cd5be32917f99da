// The fields of a type and of its events, as they are declared and as the log has them.

import { html } from "../../vendor/ui.js";
import { Badge, Empty } from "../../parts/basic.js";
import { Value } from "../../parts/value.js";

/** The other properties of a field, in words. @param {any} field @returns {string[]} */
function traits(field) {
  return [
    field.required && "required", field.label && "label", field.personal && "personal", field.search === false && "not searched",
    field.search_weight !== undefined && field.search_weight !== null && `search weight ${field.search_weight}`, field.min !== undefined && field.min !== null && `at least ${field.min}`,
    field.max !== undefined && field.max !== null && `at most ${field.max}`, field.pattern && `matches ${field.pattern}`, field.enum?.length && `one of ${field.enum.map(String).join(", ")}`,
    field.reference_type && `refers to ${field.reference_type}`, field.must_exist && "must exist", field.fold && `folded by ${typeof field.fold === "string" ? field.fold : JSON.stringify(field.fold)}`,
    field.default !== undefined && field.default !== null && `default ${JSON.stringify(field.default)}`,
  ].filter((text) => typeof text === "string");
}

/** @param {any} field */
const kind = (field) => (field.type === "array" && field.items ? `array of ${(Array.isArray(field.items) ? field.items[0] : field.items)?.type ?? "values"}` : field.type);

/** @param {{schema: any}} props */
export function Fields({ schema }) {
  if (schema.fields.length === 0) return html`<${Empty}>The type declares no fields: its events may have any.<//>`;
  const weights = new Map((schema.searched ?? []).map((/** @type {any} */ one) => [one.field, one.weight]));
  return html`<div class="scroll"><table class="rows"><thead><tr><th>Field</th><th>Type</th><th>Rules</th><th>Search</th></tr></thead><tbody>
    ${schema.fields.map((/** @type {any} */ field) => row(field, "", weights))}</tbody></table></div>`;
}

/** @param {any} field @param {string} prefix @param {Map<string, number>} weights @returns {any} */
function row(field, prefix, weights) {
  const path = prefix + field.name;
  return html`<tr key=${path}><td><code>${path}</code></td><td>${kind(field)}</td><td>${traits(field).map((text) => html`<${Badge} key=${text} kind="rule">${text}<//> `)}</td><td class="dim">${weights.has(path) ? `weight ${weights.get(path)}` : ""}</td></tr>
    ${(field.fields ?? []).map((/** @type {any} */ child) => row(child, `${path}.`, weights))}`;
}

/** @param {{schema: any}} props */
export function EventTypes({ schema }) {
  if (schema.event_schemas.length === 0) return html`<${Empty}>The log has no event of this type, and the type declares none.<//>`;
  return html`${schema.event_schemas.map((/** @type {any} */ event) => html`<section class="card" key=${event.event_type}><h2><code>${event.event_type}</code></h2>
    <div class="halves"><div><h3>Declared</h3>${event.declared ? html`<${Value} value=${event.declared} />` : html`<p class="dim">Not declared.</p>`}</div>
      <div><h3>In the log</h3>${event.seen ? html`<${Value} value=${event.seen} />` : html`<p class="dim">No such event yet.</p>`}</div></div></section>`)}`;
}
