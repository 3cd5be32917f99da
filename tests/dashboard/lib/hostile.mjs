// Content for every field that a client can write, beyond the records of `fill`: the output of agents, what people write
// about tasks, saved views, names of fields, members and the workspace.

import { agentOf } from "./tasks.mjs";

/** @typedef {ReturnType<typeof import("./story.mjs").caller>} Api */

/**
 * Fills the fields with texts, and returns the addresses that show them.
 *
 * @param {Api} api @param {(name: string) => string} text
 */
export async function fillContent(api, text) {
  const agent = await agentOf(api, text("Reviewer"));
  const task = async (/** @type {string} */ name, /** @type {object} */ more = {}) => {
    await api("POST", `/aggregates/${name}/events`, { aggregate_type: "receipt", event_type: "receipt.created", payload: { text: text("before"), [text("key")]: { [text("inner")]: text("value") } }, metadata: { [text("origin")]: text("import") } });
    const made = await api("POST", "/mailbox", { title: text(name), assignee_type: "agent", assignee_id: agent.id, source: { aggregate_id: name }, metadata: { [text("note")]: text("why") }, ...more });
    await api("POST", `/mailbox/${made.id}/claim`, { agent_id: agent.id }, { key: agent.key });
    return made.id;
  };
  const work = (/** @type {string} */ id, /** @type {string} */ operation, /** @type {object} */ body) => api("POST", `/mailbox/${id}/${operation}`, { agent_id: agent.id, ...body }, { key: agent.key });
  const effect = { event_type: "receipt.updated", payload: { text: text("after"), [text("key")]: text("changed") } };

  const output = await task("output");
  await work(output, "complete", { artifact: { name: text("summary").slice(0, 60), text: text("# Summary\n\n| a | b |\n|---|---|\n"), effect }, message: text("Here it is.") });
  await api("POST", `/mailbox/${output}/request-changes`, { message: text("Once more.") });
  await work(output, "claim", {});
  await work(output, "complete", { artifact: { name: text("summary").slice(0, 60), text: text("Second."), effect }, message: text("Again.") });
  const data = await task("data");
  await work(data, "complete", { artifact: { name: "table", data: { [text("column")]: [text("cell")], list: [{ [text("deep")]: text("er") }] } } });
  const question = await task("question");
  await work(question, "request-input", { message: text("Which?"), schema: { type: "string", enum: [text("one"), text("two")] } });
  const failed = await task("failed");
  await work(failed, "fail", { error: text("No answer."), retryable: false });
  const decided = await task("decided");
  await work(decided, "complete", { artifact: { name: "note", text: text("Note.") } });
  await api("POST", `/mailbox/${decided}/reject`, { reason: text("Not this.") });

  await api("POST", "/aggregates/view-odd/events", { aggregate_type: "view", event_type: "view.created", payload: { name: text("View"), pipeline: [{ $match: { aggregate_type: "receipt" } }, { $fold: {} }, { $project: { text: 1 } }] } });
  await api("POST", "/aggregates/define", { type_name: "odd", display_name: text("Odd"), fields: [{ name: "title", type: "string", label: true, enum: [text("this"), text("that")] }] });
  await api("POST", "/aggregates/odd.-_:1/events", { aggregate_type: "odd", event_type: "odd.created", payload: { title: text("this"), [text("free")]: { [text("inner")]: text("value") } } });
  const workspace = await api("GET", "/workspace");
  await api("PATCH", `/workspaces/${workspace.id}`, { name: text("Workspace").slice(0, 80) });
  const [event] = (await api("GET", "/events?aggregate_type=odd&after=0&limit=1")).data;
  return [
    ...[output, data, question, failed, decided].flatMap((id) => ["", "?tab=diff", "?tab=effect", "?tab=timeline", "?tab=raw"].map((tab) => `/inbox/${id}${tab}`)),
    `/a/${output}?tab=events`, "/a/output", "/a/output?tab=events", "/a/odd.-_:1", `/events/${event.event_id}`, "/types/odd", "/types/odd?tab=fields", "/types/odd?tab=events", "/types/odd?tab=definitions", "/types/receipt",
    "/pipelines/view-odd", "/a/view-odd", "/settings/workspace", "/settings/members", "/settings/installation", "/",
  ];
}
