// The number of tasks by status, and the number of tasks that wait for people, even while the page is hidden.

import { computed, signal } from "../vendor/ui.js";
import { query } from "../api/client.js";
import { listen } from "../api/feed.js";
import { has, session } from "../api/session.js";

/** The time between two counts while events of tasks arrive. */
const QUIET_MS = 1_000;
/** The time until a failed count is retried, in milliseconds. */
const RETRY_MS = 3_000;
/** A hidden page has no stream of events, and counts again after this time. */
const HIDDEN_MS = 60_000;

/** @typedef {{status: string, assignee_type: string | null, unread: boolean, count: number}} Group */

/** The counts of tasks by the properties that decide about views, or null before the first count. @type {import("../vendor/ui.js").Signal<Group[] | null>} */
export const groups = signal(null);

/** Returns whether the state of a task waits for people, agents or nobody. @param {any} state */
export function waitingOn({ status, assignee_type: type, unread }) {
  if (status === "in_progress") return "agent";
  if (status === "pending" || status === "awaiting_reply") return type === "agent" ? "agent" : "human";
  if (status === "input_required" || status === "review" || (status === "failed" && unread)) return "human";
  return "none";
}

/** The number of tasks that wait for people. */
export const waiting = computed(() => (groups.value ?? []).reduce((sum, group) => sum + (waitingOn(group) === "human" ? group.count : 0), 0));

/** The tasks by status, assignee and mark as a pipeline. */
const COUNTED = [
  { $match: { aggregate_type: "task" } }, { $fold: {} },
  { $group: { _id: { status: "$status", assignee_type: "$assignee_type", unread: "$unread" }, count: { $sum: 1 } } },
];

/** Returns whether the tasks were counted, as far as the caller may count them. */
async function count() {
  if (!session.peek() || !has("api:read")) return true;
  const found = await query(COUNTED).catch(() => null);
  if (!found || !session.peek()) return false;
  groups.value = found.results.map((/** @type {any} */ row) => ({ status: row._id.status, assignee_type: row._id.assignee_type ?? null, unread: row._id.unread === true, count: Number(row.count) }));
  return true;
}

/** Keeps the counts up to date. Returns a function that stops the updates. */
export function followCounts() {
  /** @type {number | undefined} */
  let timer;
  let isBehind = false;
  let hasEnded = false;
  // Only one count runs at a time, so that no count replaces a later count.
  const soon = (wait = QUIET_MS) => { isBehind = true; timer ??= setTimeout(update, wait); };
  const update = async () => {
    isBehind = false;
    const isCounted = await count();
    timer = undefined;
    if (!hasEnded && (isBehind || !isCounted)) soon(isCounted ? QUIET_MS : RETRY_MS);
  };
  const stop = listen((event) => { if (event.aggregate_type === "task") soon(); });
  const hidden = setInterval(() => { if (document.visibilityState === "hidden") soon(0); }, HIDDEN_MS);
  soon(0);
  return () => { hasEnded = true; clearTimeout(timer); clearInterval(hidden); stop(); groups.value = null; };
}
