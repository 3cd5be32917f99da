// The data of the first screen, now or at an earlier moment. Some of the data is always current.

import { get, getAll, query as run } from "../../api/client.js";
import { foldAt, moment } from "../../state/route.js";
import { rosterAt } from "../agents/past.js";
import { beginning } from "../events/filter.js";
import { pipeline, rowOf } from "../inbox/views.js";
import { asOf } from "../pipelines/model.js";

export const LATEST = 12;
export const SHOWN = 5;
const TASKS = 50;
const WAITING = { status: "open", waiting_on: "human" };

/** @typedef {import("../../state/route.js").Moment} Moment */

/** The newest aggregates of a type as a pipeline. @param {string} type @param {Moment} when @returns {any[]} */
export const newest = (type, when) => [{ $match: { aggregate_type: type } }, { $fold: foldAt(when) }, { $sort: { _last_event_at: -1, _id: 1 } }, { $limit: SHOWN }];

/** The tasks that wait for people as a pipeline. @param {Moment} when @returns {any[]} */
export const waiting = (when) => pipeline(WAITING, foldAt(when));

/** The latest events up to a position as a pipeline. @param {number} end @returns {any[]} */
export const latest = (end) => [{ $match: { position: { $lte: end } } }, { $sort: { position: -1 } }, { $limit: LATEST }];

/** @param {Moment} when @param {AbortSignal} abort */
async function tasksAt(when, abort) {
  if (!when) return get("/mailbox", { ...WAITING, limit: TASKS }, abort);
  const found = await run(waiting(when), { limit: TASKS }, abort);
  return { data: found.results.map(rowOf), next_cursor: found.next_cursor };
}

/** @param {Moment} when @param {AbortSignal} abort */
async function agentsAt(when, abort) {
  if (!when) return getAll("/agents/roster", abort);
  const { agents, work } = await rosterAt(when, TASKS, abort);
  return { data: agents.map((/** @type {any} */ agent) => ({ agent_id: agent.id, name: agent.name, pending: 0, in_progress: 0, review: 0, ...work.get(agent.id) })) };
}

/** The saved pipelines, with the first rows of the pipeline that changed last. @param {Moment} when @param {AbortSignal} abort */
async function viewsAt(when, abort) {
  const { results: views } = await run(newest("view", when), {}, abort);
  const [first] = views;
  if (!Array.isArray(first?.pipeline)) return { views, rows: [] };
  const rows = await run(asOf({ pipeline: first.pipeline, cards: [] }, when).pipeline, { limit: SHOWN }, abort).then(({ results }) => results, (error) => ({ error }));
  return { views, rows };
}

/** @param {AbortSignal} abort */
export async function read(abort) {
  const optional = (/** @type {Promise<any>} */ call) => call.catch((error) => ({ error }));
  const now = moment.peek();
  const [workspace, consumers, tasks, plugins, parked, roster, storage, info, views, projects] = await Promise.all([
    get("/workspace", {}, abort),
    get("/system/consumers", {}, abort),
    optional(tasksAt(now, abort)),
    optional(get("/plugins", {}, abort)),
    optional(get("/parked/groups", {}, abort)),
    optional(agentsAt(now, abort)),
    optional(get("/system/storage", {}, abort)),
    optional(get("/system/info", {}, abort)),
    optional(viewsAt(now, abort)),
    optional(run(newest("project", now), {}, abort)),
  ]);
  const wanted = !now ? consumers.head : "position" in now ? now.position : Number(await beginning(now.time, abort)) - 1;
  const end = Math.min(Number(consumers.head), wanted);
  const events = end > 0 ? (await get("/events", { after: Math.max(0, end - LATEST), limit: Math.min(LATEST, end) }, abort)).data.toReversed() : [];
  return { workspace, consumers, tasks, plugins, parked, roster, storage, info, views, projects, events, end };
}
