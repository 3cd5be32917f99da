// The filter of the events: the events that pass, and the requests that apply the filter.

import { get, query as run } from "../../api/client.js";
import { writeMoment } from "../../state/route.js";

const PAGE = 100;

/** @typedef {{types: string, except: string, type: string, project: string, actor: string, text: string, from: string, to: string, by: string, start: string}} Filter */

/** Reads the filter from an address. @param {URLSearchParams} query @returns {Filter} */
export function filterOf(query) {
  const text = (/** @type {string} */ name) => (query.get(name) ?? "").trim();
  return {
    types: text("types"), except: text("except"), type: text("type"), project: text("project"), actor: text("actor"), text: text("text"),
    from: text("from"), to: text("to"), by: text("by") === "occurred" ? "occurred" : "recorded", start: text("start"),
  };
}

/** @param {string} types */
const patterns = (types) => types.split(",").map((pattern) => pattern.trim()).filter(Boolean);

/** Whether only a pipeline applies the filter: the list of events supports types, but neither patterns nor texts. @param {Filter} filter */
const needsPipeline = ({ types, except, text }) => types.includes("*") || except !== "" || text !== "";

/** @param {string[]} known @param {string} type */
const fits = (known, type) => known.some((pattern) => (pattern.endsWith("*") ? type.startsWith(pattern.slice(0, -1)) : type === pattern));

/** @param {string} text */
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Whether an event passes. @param {any} event @param {Filter} filter */
export function passes(event, { types, except, type, project, actor, text }) {
  const wanted = patterns(types);
  if (wanted.length > 0 && !fits(wanted, event.event_type)) return false;
  if (fits(patterns(except), event.event_type)) return false;
  if (text && !textsOf(event).some((known) => String(known).toLowerCase().includes(text.toLowerCase()))) return false;
  if (type && event.aggregate_type !== type) return false;
  if (project && event.project_id !== project) return false;
  return !actor || event.actor === actor;
}

/** The values in which the text of a filter is searched, the same as in the stage. @param {any} event */
const textsOf = (event) => [event.aggregate_id, event.event_type, event.actor, ...Object.values(event.payload ?? {}).filter((value) => ["string", "number", "boolean"].includes(typeof value))];

/** The stage's condition for a text: in the ids, the type, the actor, or a value of the payload. @param {string} text */
function containing(text) {
  const regex = escaped(text);
  const value = { $convert: { input: "$$field.v", to: "string", onError: "", onNull: "" } };
  const inPayload = { $map: { input: { $objectToArray: "$payload" }, as: "field", in: { $regexMatch: { input: value, regex, options: "i" } } } };
  return { $or: [...["aggregate_id", "event_type", "actor"].map((name) => ({ [name]: { $regex: regex, $options: "i" } })), { $expr: { $anyElementTrue: [inPayload] } }] };
}

/** A regular expression for patterns of event types. @param {string[]} known */
const anyOf = (known) => `^(${known.map((pattern) => (pattern.endsWith("*") ? `${escaped(pattern.slice(0, -1))}.*` : escaped(pattern))).join("|")})$`;

/** The filter as a stage. @param {Filter} filter @param {number | null} before @returns {Record<string, any>} */
export function matched(filter, before) {
  const { types, except, type, project, actor, text, from, to, by } = filter;
  const wanted = patterns(types), unwanted = patterns(except);
  const excluded = unwanted.length ? { $not: { $regex: anyOf(unwanted) } } : {};
  const time = { ...(from ? { $gte: from } : {}), ...(to ? { $lt: to } : {}) };
  return {
    ...(wanted.length === 1 && !wanted[0].includes("*") && !unwanted.length ? { event_type: wanted[0] } : wanted.length || unwanted.length ? { event_type: { ...(wanted.length ? { $regex: anyOf(wanted) } : {}), ...excluded } } : {}),
    ...(type ? { aggregate_type: type } : {}), ...(project ? { project_id: project } : {}), ...(actor ? { actor } : {}),
    ...(from || to ? { [`${by}_at`]: time } : {}), ...(before ? { position: { $lt: before } } : {}), ...(text ? containing(text) : {}),
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
  if (needsPipeline(filter) || from || to) return viaPipeline(filter, before, abort);
  const asked = { direction: "desc", limit: PAGE, types, aggregate_type: type, project_id: project, actor };
  let found = await get("/events", { ...asked, before }, abort);
  // The server ends a page early if few events match, even before the first match.
  while (found.data.length === 0 && found.next_cursor) found = await get("/events", { ...asked, cursor: found.next_cursor }, abort);
  return { events: found.data, isEnd: found.data.length < PAGE && !found.next_cursor };
}

/**
 * Counts the events that pass the filter in equal parts of the time of the log, up to a moment by which they were recorded.
 *
 * @param {Filter} filter @param {number} buckets @param {import("../../state/route.js").Moment} when @param {AbortSignal} abort
 * @returns {Promise<any>} null if no event passes
 */
export async function counted(filter, buckets, when, abort) {
  const { by, type, project, actor, text } = filter;
  const types = await exactTypes(filter, abort);
  if (types === null) return null;
  const before = await beginning(writeMoment(when), abort);
  const to = before === null ? undefined : await recordedBefore(before, abort);
  if (to === null) return null;
  const found = await get("/events/histogram", { buckets, by, to, types, aggregate_type: type, project_id: project, actor }, abort);
  if (!text || found.total === 0) return found;
  // The histogram does not support texts, so a pipeline counts the events in the buckets of the histogram.
  const boundaries = [...found.buckets.map((/** @type {any} */ bucket) => bucket.at), "9999-12-31T23:59:59Z"];
  const { results } = await run([{ $match: matched({ ...filter, from: "", to: "" }, before) }, { $bucket: { groupBy: `$${by}_at`, boundaries } }], {}, abort);
  const counts = new Map(results.map((/** @type {any} */ row) => [Date.parse(row._id), row.count]));
  const own = found.buckets.map((/** @type {any} */ bucket) => ({ ...bucket, count: counts.get(Date.parse(bucket.at)) ?? 0 }));
  return { ...found, buckets: own, total: own.reduce((/** @type {number} */ sum, /** @type {any} */ { count }) => sum + count, 0) };
}

/**
 * The event types of a filter, without patterns, which the histogram does not support.
 *
 * @param {Filter} filter @param {AbortSignal} abort @returns {Promise<string | null>} null if no event has such a type
 */
async function exactTypes(filter, abort) {
  if (!filter.types.includes("*") && !filter.except) return filter.types;
  const { results } = await run([{ $match: matched({ ...filter, text: "", from: "", to: "" }, null) }, { $group: { _id: "$event_type" } }], {}, abort);
  return results.map((/** @type {any} */ row) => row._id).join(",") || null;
}

/** The time at which the last event before a position was recorded, or null if there is none. @param {number} before @param {AbortSignal} abort @returns {Promise<string | null>} */
async function recordedBefore(before, abort) {
  const { results } = await run([{ $match: { position: { $lt: before } } }, { $sort: { position: -1 } }, { $limit: 1 }, { $project: { recorded_at: 1 } }], {}, abort);
  return results[0]?.recorded_at ?? null;
}

/** @param {Filter} filter @param {number | null} before @param {AbortSignal} [abort] */
async function viaPipeline(filter, before, abort) {
  const { results } = await run(pipelineOf(filter, before), {}, abort);
  return { events: results.map((/** @type {any} */ { _id, ...event }) => ({ event_id: _id, ...event })), isEnd: results.length < PAGE };
}

/** The position before which a list with this start begins. The start is a time or `@position`. @param {string} start @param {AbortSignal} abort @returns {Promise<number | null>} */
export async function beginning(start, abort) {
  if (!start) return null;
  if (/^@\d+$/.test(start)) return Number(start.slice(1)) + 1;
  const { results } = await run([{ $match: { recorded_at: { $lte: start } } }, { $sort: { position: -1 } }, { $limit: 1 }, { $project: { position: 1 } }], {}, abort);
  return (results[0]?.position ?? 0) + 1;
}
