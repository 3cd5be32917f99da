// The differences between two dry runs of a plugin over the same events.

import { isEqual } from "../../state/compare.js";

/** @typedef {"mended" | "broken" | "failing" | "changed" | "same"} Kind */

/** The result of a call, without the parts that differ in every call. @param {any} result */
function content(result) {
  if (!result) return {};
  if (result.error) return { error: result.error.message, at: result.error.line ? `line ${result.error.line}` : undefined };
  const { derived, labels, edges, ...rest } = result.facts ?? {};
  return { ...(derived ?? {}), ...(labels ? { labels } : {}), ...(edges ? { edges } : {}), ...rest, ...(result.assignments ? { assignments: result.assignments } : {}) };
}

/**
 * Pairs the calls of two dry runs. Differences come first.
 *
 * @param {any[]} before @param {any[]} after
 * @returns {{kind: Kind, before: any, after: any, left: any, right: any}[]}
 */
export function compareRuns(before, after) {
  const key = (/** @type {any} */ result) => `${result.event_id} ${result.hook}`;
  const known = new Map(before.map((result) => [key(result), result]));
  const rows = after.map((result) => {
    const was = known.get(key(result));
    const left = content(was), right = content(result);
    /** @type {Kind} */
    const kind = result.error ? (was && !was.error ? "broken" : "failing") : was?.error ? "mended" : isEqual(left, right) ? "same" : "changed";
    return { kind, before: was, after: result, left, right };
  });
  const order = ["broken", "mended", "changed", "failing", "same"];
  return rows.toSorted((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind));
}
