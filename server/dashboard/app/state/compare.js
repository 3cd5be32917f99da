// The differences between the rows of a list at two moments.

import { ExactNumber } from "../api/json.js";

/** The names of fields that change with every event, so that a change of only these fields does not count. */
export const BOOKKEEPING = new Set(["_id", "_created_at", "_version", "_position", "_last_event_at", "_facts", "_traits"]);

/** Whether two values of JSON are equal. @param {any} one @param {any} other @returns {boolean} */
export function isEqual(one, other) {
  if (Object.is(one, other)) return true;
  if (one instanceof ExactNumber || other instanceof ExactNumber) return String(one) === String(other);
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => name in other && isEqual(one[name], other[name]));
}

/** The names of the fields in which two rows differ. @param {any} before @param {any} after @returns {string[]} */
export function changedFields(before, after) {
  if (!isObject(before) || !isObject(after)) return isEqual(before, after) ? [] : [""];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => !BOOKKEEPING.has(name) && !isEqual(before[name], after[name]));
}

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);

/**
 * The default key of a row: its `_id`, or all of the row. An `_id` that is an object or a list, as
 * `$group` makes it, counts by its content.
 *
 * @param {any} row
 */
const identity = (row) => JSON.stringify(isObject(row) && "_id" in row ? row._id : row);

/**
 * Compares the rows of a list at two moments. Rows with the same key belong together. Further rows with the same key
 * are distinguished by their order.
 *
 * @template T
 * @param {T[]} before @param {T[]} after @param {(row: T) => string} [key]
 * @returns {{added: T[], removed: T[], changed: {key: string, before: T, after: T, fields: string[]}[], same: T[]}}
 */
export function compareRows(before, after, key = identity) {
  const earlier = keyed(before, key);
  const later = keyed(after, key);
  const result = { added: /** @type {T[]} */ ([]), removed: /** @type {T[]} */ ([]), changed: /** @type {any[]} */ ([]), same: /** @type {T[]} */ ([]) };
  for (const [name, row] of later) {
    if (!earlier.has(name)) { result.added.push(row); continue; }
    const was = /** @type {T} */ (earlier.get(name));
    const fields = changedFields(was, row);
    if (fields.length > 0) result.changed.push({ key: name, before: was, after: row, fields });
    else result.same.push(row);
  }
  for (const [name, row] of earlier) if (!later.has(name)) result.removed.push(row);
  return result;
}

/** @template T @param {T[]} rows @param {(row: T) => string} key @returns {Map<string, T>} */
function keyed(rows, key) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  return new Map(rows.map((row) => {
    const name = key(row) ?? "null";
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return [count === 1 ? name : `${name}#${count}`, row];
  }));
}
