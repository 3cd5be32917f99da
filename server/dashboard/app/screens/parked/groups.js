// The groups of parked steps that have one cause, and the operations on all steps of a group.

import { call, get, post } from "../../api/client.js";

/** @typedef {{plugin: string, hook: string, kind: string, line: number | null, message: string, count: number, first: any, last: any, ids: string[]}} Group `first` and `last` are steps */

/** The number of steps per page. */
const PAGE = 200;

/** Reads the groups. @param {string} plugin a name, or an empty text for all @param {AbortSignal} [abort] @returns {Promise<Group[]>} */
export async function readGroups(plugin, abort) {
  return (await get("/parked/groups", { plugin }, abort)).data;
}

/** The fields that identify a group in requests. @param {Group} group */
export const keyOf = ({ plugin, hook, kind, line }) => ({ plugin, hook, kind, line: line ?? null });

/** Whether a step belongs to a group. @param {any} step @param {Group} group */
const belongs = (step, group) => step.plugin === group.plugin && step.hook === group.hook && step.kind === group.kind && (step.line ?? null) === (group.line ?? null);

/** Reads steps of a group. Reads pages of the plugin's steps until a page has steps of the group. @param {Group} group @param {string | null} cursor @param {AbortSignal} abort */
export async function readSteps(group, cursor, abort) {
  for (let next = cursor; ;) {
    const page = /** @type {any} */ (await get("/parked", { plugin: group.plugin, limit: PAGE, cursor: next }, abort));
    const rows = page.data.filter((/** @type {any} */ step) => belongs(step, group));
    next = page.next_cursor;
    if (rows.length > 0 || !next) return { rows, next };
  }
}

/**
 * Replays all steps of a group. The server rejects a request if the group has another number of steps. One request
 * replays only a part of a large group.
 *
 * @param {Group} group @returns {Promise<{done: number, failed: number}>}
 */
export async function replayGroup(group) {
  let done = 0, failed = 0;
  for (let after = undefined; ;) {
    const answer = await post("/parked/replay", { group: keyOf(group), expected: group.count - done - failed, after });
    done += answer.done;
    failed += answer.failed.length;
    if (!answer.more || !answer.last) return { done, failed };
    after = answer.last;
  }
}

/** Deletes all steps of a group. @param {Group} group */
export const deleteGroup = (group) => post("/parked/delete", { group: keyOf(group), expected: group.count });

/** @param {any} step */
export const replayStep = (step) => post(`/parked/${encodeURIComponent(step.id)}/replay`);

/** @param {any} step */
export const deleteStep = (step) => call("DELETE", `/parked/${encodeURIComponent(step.id)}`);

/** Calls a plugin for the events of the first steps of a group, and writes nothing. @param {Group} group @param {object} version */
export async function dryRun({ plugin, hook, ids }, version) {
  const answer = await post(`/plugins/${plugin}/dry-run`, { step_ids: ids, ...version });
  return { ...answer, results: answer.results.filter((/** @type {any} */ result) => result.hook === hook) };
}
