// The words that the editor of a stage completes: stages, operators, fields, types and events of this workspace.

import { get, getAll } from "../../api/client.js";
import { placeAt } from "./place.js";

/** @typedef {{name: string, kind: string, summary: string, example: {usage: any}, arguments: any[]}} Operator */
/** @typedef {{operators: Operator[], types: any[], fields: Map<string, {type: string, of: string}>}} Words */

const EVENT_FIELDS = { event_type: "string", aggregate_id: "string", aggregate_type: "string", position: "integer", version: "integer", payload: "object", metadata: "object", actor: "string", occurred_at: "date", recorded_at: "date", project_id: "string" };
const STATE_FIELDS = { _id: "string", aggregate_type: "string", project_id: "string", _version: "integer", _position: "integer", _created_at: "date", _last_event_at: "date", _traits: "array", _facts: "object" };
/** Stages whose values are filters. In other stages, names with a `$` are operators of expressions. */
const FILTERS = new Set(["$match"]);
const GROUPS = new Set(["$group", "$bucket", "$bucketAuto", "$setWindowFields"]);
/** Stages whose first names are fields of a row. */
const FIELDS_FIRST = new Set(["$match", "$project", "$sort", "$set", "$addFields", "$unset"]);

/** @type {Promise<Words> | null} */
let loading = null;

/** Reads the words once. @returns {Promise<Words>} */
export function words() {
  loading ??= read().catch((error) => { loading = null; throw error; });
  return loading;
}

/** @returns {Promise<Words>} */
async function read() {
  const [operators, types] = await Promise.all([get("/pipelines/operators"), getAll("/aggregate-types")]);
  /** @type {Words["fields"]} */
  const fields = new Map();
  const add = (/** @type {string} */ name, /** @type {string} */ type, /** @type {string} */ of) => { if (!fields.has(name)) fields.set(name, { type, of }); };
  for (const type of types.data) for (const field of type.fields) add(field.name, field.type, type.type_name);
  for (const [name, type] of Object.entries(STATE_FIELDS)) add(name, type, "every state");
  for (const [name, type] of Object.entries(EVENT_FIELDS)) add(name, type, "every event");
  const found = { operators: operators.data, types: types.data, fields };
  addSeen(found);
  return found;
}

/** Adds the fields that occur in the log, which the types need not declare. @param {Words} known */
function addSeen(known) {
  for (const { type_name: type, managed } of known.types.slice(0, 30)) {
    if (managed) continue;
    get(`/aggregate-types/${encodeURIComponent(type)}/schema`).then((schema) => {
      for (const event of schema.event_schemas) {
        for (const [name, types] of Object.entries(event.seen ?? {})) if (!known.fields.has(name)) known.fields.set(name, { type: [types].flat().join(" | "), of: type });
      }
    }, () => {});
  }
}

/** @typedef {{label: string, detail?: string, info?: string, boost?: number, apply: any}} Option */

/** Returns the completions of a stage. @param {any} context @returns {Promise<any>} */
export async function complete(context) {
  const word = context.matchBefore(/[\w$.@]*/);
  const place = placeAt(context.state.doc.toString(), context.pos);
  if (!context.explicit && !place.inString && (!word || word.from === word.to)) return null;
  const known = await words();
  if (context.aborted) return null;
  const options = offered(known, place).map((option) => ({ ...option, apply: insert(option.apply, place) }));
  return options.length ? { from: word?.from ?? context.pos, options, validFor: /^[\w$.@]*$/ } : null;
}

/** @param {Words} known @param {import("./place.js").Place} place @returns {{label: string, detail?: string, info?: string, boost?: number, apply: string}[]} */
function offered(known, place) {
  const [stage = ""] = place.path.map(String);
  const of = (/** @type {string} */ kind, boost = 0) => known.operators.filter((operator) => operator.kind === kind)
    .map((operator) => ({ label: operator.name, detail: kind, info: operator.summary, boost, apply: place.isKey ? begun(operator) : "" }));
  const fields = (/** @type {string} */ mark) => [...known.fields].map(([name, { type, of: owner }]) => ({ label: mark + name, detail: `${type}, ${owner}`, boost: owner.startsWith("every") ? 0 : 2, apply: "" }));
  const texts = (/** @type {string[]} */ names, /** @type {string} */ detail) => names.map((label) => ({ label, detail, boost: 5, apply: "" }));
  if (place.isKey && place.path.length === 0) return of("stage");
  if (place.isKey) {
    if (FILTERS.has(stage)) return place.path.length === 1 ? [...fields(""), ...of("query", -1)] : [...of("query", 1), ...fields("")];
    if (GROUPS.has(stage)) return [...of("accumulator", 1), ...of("expression")];
    return FIELDS_FIRST.has(stage) && place.path.length === 1 ? [...fields(""), ...of("expression", -1)] : [...of("expression", 1), ...of("query", -1), ...fields("")];
  }
  const name = place.path.findLast((segment) => typeof segment === "string" && !segment.startsWith("$"));
  if (name === "aggregate_type") return texts(known.types.map((type) => type.type_name), "type");
  if (name === "event_type") return texts(known.types.flatMap((type) => Object.keys(type.events ?? {}).map((event) => (event.includes(".") ? event : `${type.type_name}.${event}`))), "event");
  return [...fields(FILTERS.has(stage) && !place.path.includes("$expr") ? "" : "$"), ...of("variable", -1)];
}

/** The text after the name of an operator, in the form of its example. @param {Operator} operator */
function begun({ name, example }) {
  const value = example?.usage?.[name];
  if (name === "$group") return '{ "_id": | }';
  if (Array.isArray(value)) return "[|]";
  if (typeof value === "object" && value !== null) return "{|}";
  return typeof value === "string" ? '"|"' : "|";
}

/** Inserts a completion with its quotes, and with the text after a name. @param {string} rest @param {import("./place.js").Place} place */
const insert = (rest, place) => (/** @type {any} */ view, /** @type {{label: string}} */ { label }, /** @type {number} */ from, /** @type {number} */ to) => {
  const text = view.state.doc.toString();
  const start = place.inString ? place.inString.from : from;
  const end = text[to] === '"' ? to + 1 : to;
  const hasColon = /^\s*:/.test(text.slice(end));
  const after = place.isKey && !hasColon ? `: ${rest || "|"}` : "|";
  const written = `${JSON.stringify(label)}${after}`;
  view.dispatch({
    changes: { from: start, to: end, insert: written.replace("|", "") }, selection: { anchor: start + written.indexOf("|") }, userEvent: "input.complete", scrollIntoView: true,
  });
};
