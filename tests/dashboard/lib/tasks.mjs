// Creates tasks that wait for a decision, with the same requests as agents.

/** @typedef {ReturnType<typeof import("./story.mjs").caller>} Api */

/** Creates an agent with its own key, and the type of the aggregates that its tasks are about. @param {Api} api @param {string} [name] */
export async function agentOf(api, name = "Summarizer") {
  await api("POST", "/aggregates/define", { type_name: "receipt", display_name: "Receipt", fields: [{ name: "text", type: "string" }, { name: "summary", type: "string" }, { name: "total", type: "number" }] });
  const agent = await api("POST", "/agents", { name });
  const { key } = await api("POST", "/keys", { name, scopes: ["api:read", "api:write"], agent_ids: [agent.id] });
  return { id: /** @type {string} */ (agent.id), key: /** @type {string} */ (key) };
}

/** @typedef {Awaited<ReturnType<typeof agentOf>>} Agent */

/**
 * Creates a task about a receipt. The agent claims the task, and then delivers output, fails, or asks a question.
 *
 * @param {Api} api @param {Agent} agent @param {string} title
 * @param {{kind?: "review" | "question" | "failed" | "data", subject?: string, text?: string, metadata?: object}} [options]
 */
export async function taskOf(api, agent, title, { kind = "review", subject = title.toLowerCase().replaceAll(" ", "-"), text = `Summary of ${title}.`, metadata } = {}) {
  await api("POST", `/aggregates/${subject}/events`, { aggregate_type: "receipt", event_type: "receipt.created", payload: { text: `Ten euros for ${title}`, summary: "none", total: 10 } });
  const task = await api("POST", "/mailbox", { title, assignee_type: "agent", assignee_id: agent.id, source: { aggregate_id: subject }, ...(metadata ? { metadata } : {}) });
  const work = (/** @type {string} */ operation, /** @type {object} */ body = {}) => api("POST", `/mailbox/${task.id}/${operation}`, { agent_id: agent.id, ...body }, { key: agent.key });
  await work("claim");
  if (kind === "question") await work("request-input", { message: "Which **currency**?", schema: { type: "string", enum: ["euro", "dollar"] } });
  else if (kind === "failed") await work("fail", { error: "No answer.", retryable: false });
  else {
    const payload = kind === "data" ? { summary: text, total: 11 } : { summary: text };
    const content = kind === "data" ? { data: payload } : { text };
    await work("complete", { artifact: { name: "summary", ...content, effect: { event_type: "receipt.updated", payload } }, message: "Here it is." });
  }
  return { id: /** @type {string} */ (task.id), title, subject };
}
