// Pipelines as cards: stages with their texts, the pipeline to send, and the card of an error.

import { parse, stringify } from "../../api/json.js";
import { foldAt } from "../../state/route.js";

/** @typedef {{id: number, text: string, isOn: boolean}} Card */
/** @typedef {{pipeline: any[], cards: (number | null)[]}} Built the stages, and the card of each */
/** @typedef {{message: string, card: number | null, path: string[], hint?: string, code?: any, requestId?: string, at?: number}} Fault */

/** The width up to which an object stays on one line. */
const LINE = 64;
let last = 0;

/** @param {any} stage @param {boolean} [isOn] @returns {Card} */
export const card = (stage, isOn = true) => ({ id: ++last, text: typeof stage === "string" ? stage : pretty(stage), isOn });

/** The pipeline that a new screen begins with. */
export const FIRST = [{ $match: { aggregate_type: "article" } }, { $fold: {} }, { $limit: 100 }];

/** JSON with short objects on one line. @param {any} value @param {string} [indent] @returns {string} */
export function pretty(value, indent = "") {
  const line = spaced(value);
  if (typeof value !== "object" || value === null || indent.length + line.length <= LINE || typeof value.toJSON === "function") return line;
  const inner = `${indent}  `;
  if (Array.isArray(value)) return `[\n${value.map((item) => inner + pretty(item, inner)).join(",\n")}\n${indent}]`;
  return `{\n${Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${pretty(item, inner)}`).join(",\n")}\n${indent}}`;
}

/** JSON on one line, with spaces where people write them. @param {any} value @returns {string} */
function spaced(value) {
  if (typeof value !== "object" || value === null || typeof value.toJSON === "function") return stringify(value);
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  const fields = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${spaced(item)}`);
  return fields.length ? `{ ${fields.join(", ")} }` : "{}";
}

/** The whole pipeline as text. @param {Card[]} cards */
export const whole = (cards) => `[\n${cards.filter(({ isOn }) => isOn).map(({ text }) => `  ${text.trim().replaceAll("\n", "\n  ")}`).join(",\n")}\n]`;

/** The operator of a stage, or an empty text. @param {string} text */
export const operator = (text) => /^\s*\{\s*"(\$\w+)"/.exec(text)?.[1] ?? "";

/** Reads a stage. @param {Card} known @returns {{stage?: any, fault?: Fault}} */
export function read(known) {
  try {
    return { stage: parse(known.text) };
  } catch (/** @type {any} */ error) {
    return { fault: { ...syntax(error), card: known.id, path: [] } };
  }
}

/** @param {Error} error */
export function syntax(error) {
  const at = /at position (\d+)/.exec(error.message)?.[1];
  return { message: `This is not JSON yet: ${error.message.replace(/ in JSON at position.*/, "")}`, at: at === undefined ? undefined : Number(at) };
}

/** Reads the cards that are on. @param {Card[]} cards @param {any} moment @returns {{built?: Built, fault?: Fault}} */
export function build(cards, moment) {
  /** @type {Built} */
  const built = { pipeline: [], cards: [] };
  for (const known of cards.filter(({ isOn }) => isOn)) {
    const { stage, fault } = read(known);
    if (fault) return { fault };
    built.pipeline.push(stage);
    built.cards.push(known.id);
  }
  return { built: asOf(built, moment) };
}

/**
 * Returns the pipeline at a moment: folds without their own moment get this moment, and a pipeline over events without
 * a fold begins with a filter.
 *
 * @param {Built} built @param {any} moment @returns {Built}
 */
export function asOf({ pipeline, cards }, moment) {
  if (!moment) return { pipeline, cards };
  const folded = pipeline.map((stage) => foldedAt(stage, moment));
  if (pipeline.some((stage) => stage && typeof stage === "object" && ("$fold" in stage || "$documents" in stage))) return { pipeline: folded, cards };
  const until = "position" in moment ? { position: { $lte: moment.position } } : { recorded_at: { $lte: moment.time } };
  return { pipeline: [{ $match: until }, ...folded], cards: [null, ...cards] };
}

/** @param {any} stage @param {any} moment @returns {any} */
function foldedAt(stage, moment) {
  if (!stage || typeof stage !== "object") return stage;
  const within = (/** @type {any} */ stages) => (Array.isArray(stages) ? stages.map((inner) => foldedAt(inner, moment)) : stages);
  if (stage.$fold && typeof stage.$fold === "object" && !("at" in stage.$fold) && !("position" in stage.$fold)) return { $fold: { ...stage.$fold, ...foldAt(moment) } };
  if (stage.$facet) return { $facet: Object.fromEntries(Object.entries(stage.$facet).map(([name, stages]) => [name, within(stages)])) };
  for (const name of ["$lookup", "$unionWith"]) {
    if (stage[name]?.pipeline) return { [name]: { ...stage[name], pipeline: within(stage[name].pipeline) } };
  }
  return stage;
}

/** Returns the error of a query with its card. @param {any} error @param {Built} built @returns {Fault} */
export function faultOf(error, built) {
  const body = error.body ?? {};
  const pointer = [body.pointer, body.details?.pointer, body.details?.[0]?.pointer].find((found) => typeof found === "string") ?? "";
  const segments = pointer.replace(/^\/pipeline(?=\/|$)/, "").split("/").slice(1).map((/** @type {string} */ segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"));
  const index = /^\d+$/.test(segments[0] ?? "") ? Number(segments[0]) : body.stage;
  const named = /'([^']+)'|operator:? '?(\$\w+)/.exec(error.message);
  return {
    message: error.message, hint: body.hint, code: body.code_name ? `${error.code} ${body.code_name}` : error.code, requestId: error.requestId,
    card: typeof index === "number" ? built.cards[index] ?? null : null,
    path: segments.length > 1 ? segments.slice(1) : [named?.[1] ?? named?.[2] ?? ""],
  };
}

/** The range of the word in a stage's text that an error names. @param {string} text @param {string[]} path */
export function wordOf(text, path) {
  if (path.length !== 1 || !path[0]) return null;
  const from = text.indexOf(`"${path[0]}"`);
  return from < 0 ? null : { from, to: from + path[0].length + 2 };
}

/** The parameters of an address that show this pipeline again. @param {Card[]} cards */
export function shared(cards) {
  const stages = [];
  for (const known of cards) {
    const { stage, fault } = read(known);
    if (fault) return null;
    stages.push(stage);
  }
  const off = cards.flatMap(({ isOn }, index) => (isOn ? [] : [index])).join(",");
  return { q: stringify(stages), off: off || null };
}

/** The cards of an address. @param {string} q @param {string} off */
export function opened(q, off) {
  const without = new Set(off.split(",").filter(Boolean).map(Number));
  const stages = parse(q);
  if (!Array.isArray(stages)) throw new Error("a pipeline is a list of stages");
  return stages.map((stage, index) => card(stage, !without.has(index)));
}
