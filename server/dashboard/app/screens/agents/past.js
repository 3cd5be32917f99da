// The agents and their work at an earlier moment, from the states of agents and tasks.

import { get, query as run } from "../../api/client.js";
import { foldAt, parametersAt } from "../../state/route.js";
import { pipeline, rowOf } from "../inbox/views.js";

/** @typedef {import("../../state/route.js").Moment} Moment */

/** The agents as a pipeline. @param {Moment} when @returns {any[]} */
export const agentsAt = (when) => [{ $match: { aggregate_type: "agent" } }, { $fold: foldAt(when) }, { $sort: { _created_at: 1 } }];

/** The work of agents as a pipeline: the number of their tasks by status. @param {Moment} when @returns {any[]} */
export const workAt = (when) => [
  { $match: { aggregate_type: "task" } }, { $fold: foldAt(when) }, { $match: { assignee_type: "agent", status: { $in: ["pending", "awaiting_reply", "in_progress", "review"] } } },
  { $group: { _id: { agent: "$assignee_id", status: "$status" }, count: { $sum: 1 }, oldest: { $min: "$_created_at" } } },
];

/** @param {any} state an agent */
const agentOf = (state) => ({ subscribed_traits: [], name: state._id, ...state, id: state._id, status: state.status === "disabled" ? "disabled" : "registered" });

/**
 * The agents with their work at a moment. Presence is not known for the past.
 *
 * @param {Moment} when @param {number} most @param {AbortSignal} abort
 */
export async function rosterAt(when, most, abort) {
  const [agents, work] = await Promise.all([run(agentsAt(when), { limit: most }, abort), run(workAt(when), {}, abort)]);
  /** @type {Map<string, any>} */
  const byAgent = new Map();
  for (const { _id: { agent, status }, count, oldest } of work.results) {
    const row = byAgent.get(agent) ?? { pending: 0, in_progress: 0, review: 0, oldest_pending_at: null };
    const name = status === "awaiting_reply" ? "pending" : status;
    row[name] += Number(count);
    if (name === "pending" && (!row.oldest_pending_at || oldest < row.oldest_pending_at)) row.oldest_pending_at = oldest;
    byAgent.set(agent, row);
  }
  return { agents: agents.results.map(agentOf), isCut: Boolean(agents.next_cursor), work: byAgent };
}

/** One agent at a moment. @param {string} id @param {Moment} when @param {AbortSignal} abort */
export const agentAt = async (id, when, abort) => agentOf(await get(`/aggregates/${encodeURIComponent(id)}`, parametersAt(when), abort));

/** The open tasks of an agent at a moment. @param {string} id @param {Moment} when @param {number} most @param {AbortSignal} abort */
export async function tasksAt(id, when, most, abort) {
  const found = await run(pipeline({ status: "open", assignee_id: id }, foldAt(when)), { limit: most }, abort);
  return { data: found.results.map(rowOf), next_cursor: found.next_cursor };
}
