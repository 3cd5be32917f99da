// The selection of tasks in the inbox: the views and filters of the address, as parameters, as a pipeline, and as a
// condition.

import { waitingOn } from "../../state/waiting.js";

/** The open statuses of a task. */
const OPEN = ["pending", "in_progress", "input_required", "review", "awaiting_reply", "deferred"];
export const STATUSES = [...OPEN, "approved", "rejected", "completed", "failed", "canceled"];
export const PRIORITIES = ["urgent", "high", "normal", "low"];

/** The views, as parameters of `GET /mailbox`. @type {Record<string, {label: string, query: Record<string, string>}>} */
export const VIEWS = {
  waiting: { label: "Waiting for people", query: { waiting_on: "human" } },
  review: { label: "In review", query: { status: "review" } },
  questions: { label: "Questions of agents", query: { status: "input_required" } },
  agents: { label: "With agents", query: { waiting_on: "agent" } },
  deferred: { label: "Deferred", query: { status: "deferred" } },
  failed: { label: "Failed", query: { status: "failed" } },
  open: { label: "Open", query: { status: "open" } },
  closed: { label: "Closed", query: { status: "closed" } },
  all: { label: "All", query: {} },
};

/** The parameters of the address that select tasks. */
export const FILTERS = ["view", "status", "assignee", "priority", "unread", "project"];

/**
 * The filters of an address as parameters of `GET /mailbox`.
 *
 * @param {URLSearchParams} query @param {string} me the id of the user
 * @returns {Record<string, string>}
 */
export function parameters(query, me) {
  const view = VIEWS[query.get("view") ?? "waiting"] ?? VIEWS.waiting;
  const wanted = { ...view.query };
  const assignee = query.get("assignee");
  if (query.get("status")) wanted.status = String(query.get("status"));
  if (query.get("priority")) wanted.priority = String(query.get("priority"));
  if (query.get("unread")) wanted.unread = String(query.get("unread"));
  if (query.get("project")) wanted.project_id = String(query.get("project"));
  if (assignee === "me" && me) Object.assign(wanted, { assignee_type: "user", assignee_id: me });
  else if (assignee === "none" || assignee === "agent" || assignee === "user") wanted.assignee_type = assignee;
  else if (assignee && assignee !== "me") wanted.assignee_id = assignee;
  return wanted;
}

/** The statuses that a parameter means. @param {string} text */
const statuses = (text) => (text === "open" ? OPEN : text === "closed" ? STATUSES.filter((status) => !OPEN.includes(status)) : text.split(","));

/** Whether the mailbox would list a task. @param {any} task @param {Record<string, string>} wanted */
export function matches(task, wanted) {
  return (!wanted.status || statuses(wanted.status).includes(task.status))
    && (!wanted.waiting_on || task.waiting_on === wanted.waiting_on)
    && (!wanted.priority || wanted.priority.split(",").includes(task.priority))
    && (!wanted.unread || String(task.unread) === wanted.unread)
    && (!wanted.project_id || task.project_id === wanted.project_id)
    && (!wanted.assignee_type || (task.assignee_type ?? "none") === wanted.assignee_type)
    && (!wanted.assignee_id || task.assignee_id === wanted.assignee_id);
}

/** The conditions on the state of tasks that wait for people, for agents, and for nobody. */
const WAITING = {
  human: [{ status: { $in: ["input_required", "review"] } }, { status: { $in: ["pending", "awaiting_reply"] }, assignee_type: { $ne: "agent" } }, { status: "failed", unread: true }],
  agent: [{ status: "in_progress" }, { status: { $in: ["pending", "awaiting_reply"] }, assignee_type: "agent" }],
  none: [{ status: { $in: ["deferred", "approved", "rejected", "completed", "canceled"] } }, { status: "failed", unread: { $ne: true } }],
};

/**
 * The same selection as a pipeline, newest first.
 *
 * @param {Record<string, string>} wanted @param {object} fold the argument of `$fold`
 * @returns {any[]}
 */
export function pipeline(wanted, fold) {
  /** @type {Record<string, any>} */
  const match = {};
  if (wanted.status) match.status = { $in: statuses(wanted.status) };
  if (wanted.priority) match.priority = { $in: wanted.priority.split(",") };
  if (wanted.unread) match.unread = wanted.unread === "true";
  if (wanted.project_id) match.project_id = wanted.project_id;
  if (wanted.assignee_type) match.assignee_type = wanted.assignee_type === "none" ? null : wanted.assignee_type;
  if (wanted.assignee_id) match.assignee_id = wanted.assignee_id;
  if (wanted.waiting_on) match.$or = WAITING[/** @type {keyof typeof WAITING} */ (wanted.waiting_on)];
  const stages = [{ $match: { aggregate_type: "task" } }, { $fold: fold }];
  return [...stages, ...(Object.keys(match).length ? [{ $match: match }] : []), { $sort: { _created_at: -1, _id: -1 } }];
}

/** The state of a task at an earlier moment as a row of the inbox. No action is possible in the past. @param {any} state */
export function rowOf(state) {
  return { allowed_actions: [], priority: "normal", ...state, id: state._id, version: state._version, updated_at: state._last_event_at, created_at: state._created_at, waiting_on: waitingOn(state) };
}

/** The number of tasks of a view without further filters. @param {string} name @param {import("../../state/waiting.js").Group[]} groups */
export const countOf = (name, groups) => groups.reduce((sum, group) => (matches({ ...group, waiting_on: waitingOn(group) }, VIEWS[name].query) ? sum + group.count : sum), 0);
