// Decisions on tasks: immediate or after the time for undoing them, for one task or many tasks, and the rejected
// decisions.

import { computed, signal } from "../../vendor/ui.js";
import { call, get } from "../../api/client.js";
import { isLeaving } from "../../api/session.js";
import { afterUndo, complain, detailOf, hold, say } from "../../state/toasts.js";
import { waitingOn } from "../../state/waiting.js";
import { nameOf, readPeople } from "./people.js";
import { act, expect, idle, isMine, ownVersion, put, settle } from "./tasks.js";

/** The keys of the actions, in the order of the buttons. @type {Record<string, {key: string, label: string, done: string}>} */
export const ACTIONS = {
  approve: { key: "a", label: "Approve", done: "approved" },
  edit: { key: "e", label: "Edit", done: "edited and approved" },
  reject: { key: "r", label: "Reject", done: "rejected" },
  request_changes: { key: "c", label: "Request changes", done: "sent back with changes to make" },
  answer: { key: "q", label: "Answer", done: "answered" },
  ask: { key: "q", label: "Ask", done: "asked" },
  defer: { key: "d", label: "Defer", done: "deferred" },
  assign: { key: "s", label: "Assign", done: "assigned" },
  retry: { key: "t", label: "Retry", done: "tried again" },
};
/** The actions that are sent after the time for undoing them. */
const FINAL = new Set(["approve", "edit", "reject"]);
/** The maximum number of tasks in one request that the server accepts. */
const AT_ONCE = 500;
/** The maximum number of rejected tasks whose timeline is read, to show the user who was first. */
const EXPLAINED = 50;
/** The time for which a message links to the event of an approval, in milliseconds. */
const SHOWN_MS = 12_000;

/** The question that is shown before an action. @type {import("../../vendor/ui.js").Signal<{action: string, tasks: any[], problem?: any} | null>} */
export const asking = signal(null);
/** Texts that were typed for a decision that did not happen, by task and action. @type {Map<string, any>} */
export const drafts = new Map();
/** Decisions that the server rejected, newest first. @type {import("../../vendor/ui.js").Signal<{task: any, action: string, error: any, who: string, body: any}[]>} */
export const refusals = signal([]);
// Rejected decisions and their texts are lost with the page, so the browser asks before the page is left.
addEventListener("beforeunload", (event) => { if (refusals.peek().length > 0 && !isLeaving.peek()) event.preventDefault(); });
/** The task that is shown with all its content, as the user sees the task. */
export const shown = signal(/** @type {any} */ (null));
/** The ids of the tasks whose decision can still be undone. */
export const pending = signal(/** @type {Set<string>} */ (new Set()));
/** The tasks with a decision in progress. @type {Set<string>} */
const busy = new Set();
/** The versions that the selected tasks had when they were selected, by id. */
export const selected = signal(/** @type {Map<string, number>} */ (new Map()));

/** Whether an action is offered for a task. Only one of the actions answer and ask is offered. @param {any} task @param {string} action */
export function offers(task, action) {
  const allowed = task.allowed_actions ?? [];
  if (action === "ask" && allowed.includes("answer")) return false;
  return allowed.includes(action) && !pending.value.has(task.id);
}

/**
 * Whether the shown task's output is from before the changes that were requested, so an approval must accept this
 * output.
 */
export const superseded = computed(() => shown.value?.would_refuse?.code === "superseded");

/** The reason why a task cannot be approved, if the reason is known. @param {any} task */
export const blocked = (task) => (shown.value?.id === task.id && !superseded.value ? shown.value.would_refuse : null);

/** The effects of the shown task whose author has not seen the newest version of their aggregate. */
export const stale = computed(() => (shown.value?.would_append ?? []).filter((/** @type {any} */ effect) => effect.stale));

/** A text that was typed before for this decision. @param {any} task @param {string} action */
export const draftOf = (task, action) => drafts.get(`${task.id} ${action}`);

/** The expected row of a task after a decision. @param {any} task @param {string} action @param {any} body */
function foreseen(task, action, body) {
  /** @type {Record<string, any>} */
  const next = { ...task, unread: false };
  if (action === "approve" || action === "edit") next.status = "approved";
  else if (action === "reject") next.status = "rejected";
  else if (action === "defer") Object.assign(next, { status: "deferred", deferred_until: body.until ?? null });
  else if (action === "retry") Object.assign(next, { status: "pending", unread: true });
  else if (action === "assign") Object.assign(next, { status: "pending", unread: true, assignee_type: body.assignee_type === "none" ? null : body.assignee_type, assignee_id: body.assignee_id ?? null });
  else if (task.status !== "in_progress") Object.assign(next, { status: "awaiting_reply", unread: true });
  return { ...next, waiting_on: waitingOn(/** @type {any} */ (next)), allowed_actions: [] };
}

/** The task with the version that the reader has seen. @param {any} task */
export const seen = (task) => (shown.peek()?.id === task.id ? { ...task, version: shown.peek().version } : task);

/**
 * Performs an action on tasks. Final decisions wait until they can no longer be undone.
 *
 * @param {string} action @param {any[]} some @param {any} [body] @param {number} [version] that the reader has seen, if it
 * is not the one that is shown
 * @returns {Promise<boolean>} whether the server accepted all decisions; for final decisions, whether they have begun
 */
export async function decide(action, some, body = {}, version = undefined) {
  const able = some.filter((task) => offers(task, action)).map((task) => (version ? { ...task, version } : seen(task)));
  if (able.length === 0) return false;
  const ids = able.map((task) => task.id);
  for (const id of ids) busy.add(id);
  expect(able.map((task) => foreseen(task, action, body)));
  selected.value = new Map([...selected.peek()].filter(([id]) => !ids.includes(id)));
  refusals.value = refusals.peek().filter((refusal) => !ids.includes(refusal.task.id));
  const text = `${able.length === 1 ? able[0].title : `${able.length.toLocaleString("en")} tasks`}: ${ACTIONS[action].done}`;
  const send = async (/** @type {boolean} */ leaving) => {
    mark(ids, false);
    const refused = await (able.length === 1 ? one(able[0], action, body, leaving) : many(able, action, body, leaving));
    for (const id of ids) busy.delete(id);
    settle(ids);
    if (refused.length > 0) await explain(refused, action, body, able.length);
    return refused.length === 0;
  };
  if (!FINAL.has(action)) {
    const isDone = await hold(send(false));
    if (isDone) { forget(ids, action); say(text); }
    return isDone;
  }
  for (const id of ids) drafts.set(`${id} ${action}`, body);
  mark(ids, true);
  afterUndo(text, async (leaving) => { if (await send(leaving)) forget(ids, action); }, () => {
    mark(ids, false);
    for (const id of ids) busy.delete(id);
    settle(ids);
  });
  return true;
}

/** @param {string[]} ids @param {string} action */
function forget(ids, action) {
  for (const id of ids) drafts.delete(`${id} ${action}`);
}

/** @param {string[]} ids @param {boolean} isPending */
function mark(ids, isPending) {
  const next = new Set(pending.peek());
  for (const id of ids) isPending ? next.add(id) : next.delete(id);
  pending.value = next;
}

/** Returns the refused task with the error. @param {any} task @param {string} action @param {object} body @param {boolean} leaving */
async function one(task, action, body, leaving) {
  try {
    const { appended, ...changed } = await act(task, action, body, leaving);
    put(changed);
    const [event] = appended ?? [];
    if (event?.event_id && !leaving) say(`${task.title}: ${appended.length === 1 ? `appended ${event.event_type}` : `appended ${appended.length.toLocaleString("en")} events`}`, { link: { to: `/events/${encodeURIComponent(event.event_id)}`, text: "Show the event" } }, SHOWN_MS);
    return [];
  } catch (/** @type {any} */ error) {
    return [{ task, error }];
  }
}

/** Returns the refused tasks with their errors. @param {any[]} some @param {string} action @param {object} body @param {boolean} leaving */
async function many(some, action, body, leaving) {
  /** @type {{task: any, error: any}[]} */
  const refused = [];
  const send = async (/** @type {any[]} */ part) => {
    try {
      if (!leaving) await idle(part);
      const versions = Object.fromEntries(part.map((task) => [task.id, ownVersion(task.id, task.version)]));
      const { results } = await call("POST", "/mailbox/actions", { body: { action, expected_versions: versions, ...body }, keepalive: leaving });
      const byId = new Map(part.map((task) => [task.id, task]));
      for (const result of results) {
        if (result.error) refused.push({ task: byId.get(result.id), error: Object.assign(new Error(result.error.error), { code: result.error.code, requestId: result.error.request_id ?? "", status: result.status, body: result.error }) });
        else { isMine(result.id, result.task.version); put(result.task); }
      }
    } catch (error) {
      refused.push(...part.map((task) => ({ task, error })));
    }
  };
  const parts = Array.from({ length: Math.ceil(some.length / AT_ONCE) }, (_, index) => some.slice(index * AT_ONCE, (index + 1) * AT_ONCE));
  // A page that is being left sends all parts at once.
  if (leaving) await Promise.all(parts.map(send));
  else for (const part of parts) await send(part);
  return refused;
}

/** Shows the current state of rejected tasks, and the user who was first. @param {{task: any, error: any}[]} refused @param {string} action @param {any} body @param {number} count of all tasks */
async function explain(refused, action, body, count) {
  await readPeople();
  const told = await Promise.all(refused.map(async ({ task, error }, index) => {
    if (error.status !== 409 || index >= EXPLAINED) return { task, action, error, body, who: "" };
    const now = await get(`/mailbox/${task.id}`, { timeline: 20 }).catch(() => null);
    if (now) put(now, { keep: true });
    return { task: now ?? task, action, error, body, who: now ? whoWasFirst(now, task.version) : "" };
  }));
  const ids = new Set(told.map(({ task }) => task.id));
  refusals.value = [...told, ...refusals.peek().filter(({ task }) => !ids.has(task.id))];
  const [first] = told;
  if (count === 1 && first.who) say(`${first.task.title}: ${first.who}`, { kind: "error", detail: detailOf(first.error) }, 15_000);
  else if (count === 1) complain(first.error, first.task.title);
  else say(`${told.length.toLocaleString("en")} of ${count.toLocaleString("en")} tasks were refused, and the list says why.${told.length < count ? ` The others are ${ACTIONS[action].done}.` : ""}`, { kind: "error" }, 15_000);
}

/** The actions of others on a task since a version, in words. @param {any} task @param {number} version */
function whoWasFirst(task, version) {
  const others = task.timeline.filter((/** @type {any} */ entry) => entry.version > version && !["task.read", "task.unread"].includes(entry.event_type));
  const last = others.findLast((/** @type {any} */ entry) => /approved|edited|rejected|canceled|completed/.test(entry.event_type)) ?? others.at(-1);
  if (!last) return "";
  const id = last.agent_id ?? last.user_id;
  const who = id ? nameOf(id) : last.actor;
  return `${who === "you" ? "you, in another session," : who} ${last.event_type.replace("task.", "").replaceAll("_", " ")} it first`;
}

/** Marks a task as read or unread at once. @param {any} task @param {boolean} unread */
export function markRead(task, unread) {
  if (busy.has(task.id)) return;
  expect([{ ...task, unread }], { keep: true });
  act(task, unread ? "unread" : "read", {})
    .then((changed) => put(changed), (error) => complain(error, task.title))
    .finally(() => { if (!busy.has(task.id)) settle([task.id]); });
}

/** Removes a rejected decision from the list. @param {string} id */
export function dismissRefusal(id) {
  refusals.value = refusals.peek().filter(({ task }) => task.id !== id);
}
