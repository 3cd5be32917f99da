// The tasks of the inbox: read page by page, changed immediately, and corrected if the server responds differently.

import { batch, computed, signal } from "../../vendor/ui.js";
import { call, get, query as run } from "../../api/client.js";
import { compareRows } from "../../state/compare.js";
import { foldAt } from "../../state/route.js";
import { complain } from "../../state/toasts.js";
import { matches, pipeline, rowOf } from "./views.js";

const PAGE = 200;
const QUIET_MS = 250;
/**
 * The maximum number of changed tasks beyond the first page that are read one by one. With more, the list is read
 * again.
 */
const SINGLY = 20;

/** @typedef {import("../../state/route.js").Moment} Moment */
/** @typedef {{wanted: Record<string, string>, now: Moment, before: Moment, isCompared: boolean}} Subject */

/** The tasks as the server has them, newest first. @type {import("../../vendor/ui.js").Signal<any[]>} */
const known = signal([]);
/** The expected results of decisions in progress: a row, or null if the row leaves the view. */
const expected = signal(/** @type {Map<string, any>} */ (new Map()));
/** The tasks of the view, as expected after the decisions in progress. */
export const tasks = computed(() => {
  const changed = expected.value;
  if (changed.size === 0 || isPast()) return known.value;
  return known.value.flatMap((task) => (changed.has(task.id) ? changed.get(task.id) ?? [] : task));
});
export const status = signal(/** @type {{isLoading: boolean, error: any, next: string | null}} */ ({ isLoading: true, error: null, next: null }));
/** The number of tasks in the view as the server has them, once it is known. */
const counted = signal(/** @type {number | null} */ (null));
/** The number of tasks in the view, as expected after the decisions in progress. */
export const total = computed(() => (counted.value === null ? null : counted.value + tasks.value.length - known.value.length));
/** The differences between two moments, while two moments are compared. */
export const compared = signal(/** @type {any} */ (null));

/** @type {Subject} */
let subject = { wanted: {}, now: null, before: null, isCompared: false };
/**
 * Whether the view shows a moment other than now, which no decision changes. A view of another moment has other tasks
 * in `known`.
 */
const isPast = () => subject.now !== null || subject.isCompared;
let round = 0;
/** Tasks that stay in the list until another view is shown, although they no longer belong to it. @type {Set<string>} */
const kept = new Set();
/** The versions that the changes of this tab have created: `id:version` before → version after. @type {Map<string, number>} */
const own = new Map();

/** Shows other tasks. Unless the subject changes, the shown tasks stay until the first page arrives. @param {Subject} wanted */
export async function read(wanted) {
  const mine = ++round;
  const isOther = JSON.stringify(wanted) !== JSON.stringify(subject);
  subject = wanted;
  if (isOther) {
    kept.clear();
    batch(() => { known.value = []; counted.value = null; compared.value = null; });
  }
  status.value = { isLoading: true, error: null, next: null };
  try {
    if (wanted.isCompared) return await compare(mine);
    const page = await pageOf(null);
    if (mine !== round) return;
    batch(() => { known.value = page.data; status.value = { isLoading: false, error: null, next: page.next_cursor }; });
    count(mine, page);
  } catch (error) {
    if (mine === round) status.value = { isLoading: false, error, next: null };
  }
}

/** A page of the mailbox, or of a pipeline in the past, which the mailbox does not support. @param {string | null} cursor */
async function pageOf(cursor) {
  const { wanted, now } = subject;
  if (!now) return get("/mailbox", { ...wanted, limit: PAGE, cursor });
  const found = await run(pipeline(wanted, foldAt(now)), { limit: PAGE, ...(cursor ? { cursor } : {}) });
  return { data: found.results.map(rowOf), next_cursor: found.next_cursor };
}

/** Compares the tasks of the view at two moments. @param {number} mine */
async function compare(mine) {
  const { wanted, before, now } = subject;
  const [was, is] = await Promise.all([before, now].map((when) => run(pipeline(wanted, foldAt(when)))));
  if (mine !== round) return;
  batch(() => {
    compared.value = compareRows(was.results, is.results, (/** @type {any} */ row) => row._id);
    known.value = is.results.map(rowOf);
    counted.value = is.results.length;
    status.value = { isLoading: false, error: null, next: null };
  });
}

/** Counts the tasks of the view, because a page of the mailbox does not have this number. @param {number} mine @param {{next_cursor: string | null, data: any[]}} page */
async function count(mine, page) {
  if (!page.next_cursor) { counted.value = page.data.length; return; }
  const stages = pipeline(subject.wanted, foldAt(subject.now)).filter((stage) => !("$sort" in stage));
  const found = await run([...stages, { $count: "count" }]).catch(() => null);
  if (mine === round && found) counted.value = Number(found.results[0]?.count ?? 0);
}

/** @type {number | undefined} */
let recounting;

/** Counts a view of several pages again, shortly after tasks were added or removed. */
function recount() {
  recounting ??= setTimeout(() => {
    recounting = undefined;
    if (status.peek().next) count(round, { next_cursor: status.peek().next, data: known.peek() });
  }, QUIET_MS);
}

/** Reads the next page. Returns whether there was a next page. */
export async function more() {
  const { next, isLoading } = status.value;
  if (!next || isLoading) return false;
  const mine = round;
  status.value = { ...status.value, isLoading: true };
  try {
    const page = await pageOf(next);
    if (mine !== round) return false;
    const ids = new Set(known.value.map((task) => task.id));
    batch(() => {
      known.value = known.value.concat(page.data.filter((/** @type {any} */ task) => !ids.has(task.id)));
      status.value = { isLoading: false, error: null, next: page.next_cursor };
    });
    return true;
  } catch (error) {
    if (mine === round) status.value = { ...status.value, isLoading: false };
    complain(error, "The next page");
    return false;
  }
}

/** Reads tasks again. A task that is gone stays as it was. @param {any[]} some @param {number} mine */
async function reread(some, mine) {
  const found = await Promise.all(some.map((task) => get(`/mailbox/${encodeURIComponent(task.id)}`, { timeline: 0 }).catch((error) => {
    if (error.status !== 404) throw error;
  })));
  if (mine === round) for (const task of found) if (task) put(task);
}

/** Updates the list after events of tasks. Pages beyond the first page stay. Throws an error if the update fails. @param {Map<string, number>} changed ids and versions */
export async function refresh(changed) {
  const mine = round;
  const behind = known.value.filter((task) => (changed.get(task.id) ?? 0) > task.version);
  const isNew = [...changed].some(([id, version]) => version === 1 || !known.value.some((task) => task.id === id));
  if (!isNew && behind.length <= SINGLY) return reread(behind, mine);
  const page = await pageOf(null);
  if (mine !== round) return;
  const oldest = page.data.at(-1)?.created_at ?? "";
  const fresh = new Set(page.data.map((/** @type {any} */ task) => task.id));
  const tail = page.next_cursor ? known.value.filter((task) => !fresh.has(task.id) && task.created_at <= oldest) : [];
  const stale = tail.filter((task) => (changed.get(task.id) ?? 0) > task.version);
  const held = known.value.filter((task) => kept.has(task.id) && !fresh.has(task.id) && !tail.includes(task));
  const isAnew = stale.length > SINGLY;
  batch(() => {
    known.value = sorted([...page.data, ...held, ...(isAnew ? [] : tail)]);
    if (isAnew || tail.length === 0) status.value = { isLoading: false, error: null, next: page.next_cursor };
  });
  count(mine, page);
  if (!isAnew) await reread(stale, mine);
}

/** @param {any[]} some */
const sorted = (some) => some.sort((one, other) => (one.created_at < other.created_at ? 1 : one.created_at > other.created_at ? -1 : one.id < other.id ? 1 : -1));

/** Shows a task as the server has it now. Removes the task from the list if the task no longer belongs to the view. @param {any} task @param {{keep?: boolean}} [options] */
export function put(task, { keep = false } = {}) {
  if (isPast()) return;
  if (keep) kept.add(task.id);
  const { messages, artifacts, timeline, would_append: appended, ...row } = task;
  const index = known.value.findIndex((other) => other.id === task.id);
  if (index >= 0 && known.value[index].version > row.version) return;
  const belongs = kept.has(task.id) || matches(row, subject.wanted);
  const isListed = index >= 0;
  if (belongs && isListed) {
    known.value = known.value.with(index, row);
    return;
  }
  batch(() => {
    known.value = belongs ? sorted([...known.value, row]) : known.value.filter((other) => other.id !== task.id);
    if (isListed && counted.value !== null) counted.value -= 1;
  });
  // A task that was not listed may be on a page that is not read yet, so the server counts the tasks.
  recount();
}

/** Shows the expected result of a decision before the server has confirmed the decision. @param {any[]} rows @param {{keep?: boolean}} [options] */
export function expect(rows, { keep = false } = {}) {
  for (const row of rows) keep ? kept.add(row.id) : kept.delete(row.id);
  expected.value = new Map([...expected.value, ...rows.map((row) => /** @type {const} */ ([row.id, keep || matches(row, subject.wanted) ? row : null]))]);
}

/** Removes the expected results of tasks, which are then shown as the server has them. @param {string[]} ids */
export function settle(ids) {
  const left = new Map(expected.value);
  for (const id of ids) left.delete(id);
  expected.value = left;
}

/** The version after this tab's own changes that directly followed the seen version. @param {string} id @param {number} seen */
export function ownVersion(id, seen) {
  let version = seen;
  while (own.has(`${id}:${version}`)) version = /** @type {number} */ (own.get(`${id}:${version}`));
  return version;
}

/** Whether this tab created a version of a task. @param {string} id @param {number} version */
export const isOwn = (id, version) => own.get(`${id}:${version - 1}`) === version;

/** Records that this tab created a version of a task. @param {string} id @param {number} version the version after */
export function isMine(id, version) {
  own.set(`${id}:${version - 1}`, version);
}

/** The operation of an action. @param {string} action */
export const operation = (action) => action.replaceAll("_", "-");

/** @type {Map<string, Promise<any>>} */
const running = new Map();

/**
 * Performs an action on one task, after the earlier actions of this tab on the task. The task must have the version
 * that the user has seen. Only changes of this tab may have followed.
 *
 * @param {any} task @param {string} action @param {object} body @param {boolean} [leaving]
 */
export function act(task, action, body, leaving = false) {
  const send = async () => {
    const from = ownVersion(task.id, task.version);
    const guarded = action === "read" || action === "unread" ? body : { expected_version: from, ...body };
    const changed = await call("POST", `/mailbox/${task.id}/${operation(action)}`, { body: guarded, keepalive: leaving });
    if (changed.version === from + 1) isMine(task.id, changed.version);
    return changed;
  };
  const before = running.get(task.id);
  // A page that is being left does not wait for anything.
  const made = before && !leaving ? before.then(send, send) : send();
  running.set(task.id, made);
  made.finally(() => { if (running.get(task.id) === made) running.delete(task.id); }).catch(() => {});
  return made;
}

/** Waits until no action on these tasks is in progress. @param {any[]} some */
export const idle = (some) => Promise.allSettled(some.map((task) => running.get(task.id)));
