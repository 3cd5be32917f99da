// The filter of the events: what it lets through, and the requests that apply it.

import { get, query as run } from "../../api/client.js";

const PAGE = 100;

/** @typedef {{types: string, type: string, project: string, actor: string, from: string, to: string, by: string, start: string}} Filter */

/** Reads the filter of an address. @param {URLSearchParams} query @returns {Filter} */
export function filterOf(query) {
  const text = (/** @type {string} */ name) => (query.get(name) ?? "").trim();
  return {
    types: text("types"), type: text("type"), project: text("project"), actor: text("actor"),
    from: text("from"), to: text("to"), by: text("by") === "occurred" ? "occurred" : "recorded", start: text("start"),
  };
}

/** @param {string} types */
const patterns = (types) => types.split(",").map((pattern) => pattern.trim()).filter(Boolean);

/** Whether an event passes. @param {any} event @param {Filter} filter */
export function passes(event, { types, type, project, actor }) {
  const wanted = patterns(types);
  if (wanted.length > 0 && !wanted.some((pattern) => (pattern.endsWith("*") ? event.event_type.startsWith(pattern.slice(0, -1)) : event.event_type === pattern))) return false;
  if (type && event.aggregate_type !== type) return false;
  if (project && event.project_id !== project) return false;
  return !actor || event.actor === actor;
}

/** The filter as a stage. @param {Filter} filter @param {number | null} before @returns {Record<string, any>} */
export function matched(filter, before) {
  const { types, type, project, actor, from, to, by } = filter;
  const wanted = patterns(types);
  const escaped = wanted.map((pattern) => pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*$/, ".*"));
  const time = { ...(from ? { $gte: from } : {}), ...(to ? { $lt: to } : {}) };
  return {
    ...(wanted.length === 1 && !wanted[0].includes("*") ? { event_type: wanted[0] } : wanted.length ? { event_type: { $regex: `^(${escaped.join("|")})$` } } : {}),
    ...(type ? { aggregate_type: type } : {}), ...(project ? { project_id: project } : {}), ...(actor ? { actor } : {}),
    ...(from || to ? { [`${by}_at`]: time } : {}), ...(before ? { position: { $lt: before } } : {}),
  };
}

/** The stages that list the events before a position, newest first. @param {Filter} filter @param {number | null} before */
export const pipelineOf = (filter, before = null) => [{ $match: matched(filter, before) }, { $sort: { position: -1 } }, { $limit: PAGE }];

/**
 * Reads the events before a position, newest first. Patterns and periods are read with a pipeline, everything else from
 * the log itself.
 *
 * @param {Filter} filter @param {number | null} before @param {AbortSignal} [abort]
 * @returns {Promise<{events: any[], isEnd: boolean}>}
 */
export async function page(filter, before, abort) {
  const { types, type, project, actor, from, to } = filter;
  if (types.includes("*") || from || to) return viaPipeline(filter, before, abort);
  const found = await get("/events", { direction: "desc", before, limit: PAGE, types, aggregate_type: type, project_id: project, actor }, abort);
  return { events: found.data, isEnd: found.data.length < PAGE && !found.next_cursor };
}

/**
 * The event types of a filter, without patterns, which the histogram does not know.
 *
 * @param {Filter} filter @param {AbortSignal} abort @returns {Promise<string | null>} null if no event has such a type
 */
export async function exactTypes(filter, abort) {
  if (!filter.types.includes("*")) return filter.types;
  const { results } = await run([{ $match: matched({ ...filter, from: "", to: "" }, null) }, { $group: { _id: "$event_type" } }], {}, abort);
  return results.map((/** @type {any} */ row) => row._id).join(",") || null;
}

/** @param {Filter} filter @param {number | null} before @param {AbortSignal} [abort] */
async function viaPipeline(filter, before, abort) {
  const { results } = await run(pipelineOf(filter, before), {}, abort);
  return { events: results.map((/** @type {any} */ { _id, ...event }) => ({ event_id: _id, ...event })), isEnd: results.length < PAGE };
}

/** The position before which a list begins that starts at a time or `@position`. @param {string} start @param {AbortSignal} abort @returns {Promise<number | null>} */
export async function beginning(start, abort) {
  if (!start) return null;
  if (start.startsWith("@")) return Number(start.slice(1)) + 1;
  const { results } = await run([{ $match: { recorded_at: { $lte: start } } }, { $sort: { position: -1 } }, { $limit: 1 }, { $project: { position: 1 } }], {}, abort);
  return (results[0]?.position ?? 0) + 1;
}
