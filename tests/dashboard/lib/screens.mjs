// The screens with an address, and a workspace with data for each screen.

/**
 * @typedef {object} Filled
 * @property {string} article @property {string} project @property {string} slug @property {string} agent @property {string} task @property {string} event @property {string} view
 * @property {number} before the position before the last events
 */

/** @type {Map<any, Filled>} */
const known = new Map();

/**
 * Creates records of every kind in a workspace, and returns their ids.
 *
 * @param {ReturnType<typeof import("./story.mjs").caller>} api
 * @param {{text?: (name: string) => string, isKept?: boolean}} [options] `text` changes every text, and with `isKept`
 * nothing is created in a workspace that already has the records
 * @returns {Promise<Filled>}
 */
export async function fill(api, { text = (name) => name, isKept = false } = {}) {
  const before = known.get(api);
  if (before && isKept) return before;
  const project = await api("POST", "/projects", { name: text("Handbook"), slug: "handbook", description: text("How we work.") });
  const agent = await api("POST", "/agents", { name: text("Scribe"), description: text("Writes summaries.") });
  const article = await api("POST", "/articles", { title: text("Pricing"), body: text("See the **guide** and [more](https://example.com)."), tags: [text("money")], project_id: project.id });
  await api("POST", `/articles/${article.aggregate_id}/publish`, {});
  await api("PATCH", `/articles/${article.aggregate_id}`, { body: text("See the *new* guide.") });
  const guide = await api("POST", "/articles", { title: text("Guide"), body: text("Pricing is explained here."), project_id: project.id });
  await api("POST", `/articles/${guide.aggregate_id}/publish`, {});
  await api("POST", "/files", { filename: text("notes.txt").replace(/[/\\]/g, "_").slice(0, 80), data: Buffer.from("notes").toString("base64"), aggregate_id: article.aggregate_id });
  await api("POST", "/aggregates/define", { type_name: "note", display_name: text("Note"), fields: [{ name: "title", type: "string", label: true }, { name: "count", type: "number" }] });
  await api("POST", "/aggregates/note-1/events", { aggregate_type: "note", event_type: "note.created", payload: { title: text("A note"), count: 3 } });
  const task = await api("POST", "/mailbox", { title: text("Read the guide"), metadata: { note: text("And say what is missing.") }, priority: "high" });
  await api("POST", "/mailbox", { title: text("Summarize"), assignee_type: "agent", assignee_id: agent.id });
  const [event] = (await api("GET", "/events?after=0&limit=1")).data;
  const view = "view-articles";
  await api("POST", `/aggregates/${view}/events`, { aggregate_type: "view", event_type: "view.created", payload: { name: text("Articles"), pipeline: [{ $match: { aggregate_type: "article" } }, { $fold: {} }, { $project: { title: 1, tags: 1 } }] } });
  const position = Number((await api("GET", "/system/consumers")).head);
  await api("PATCH", `/articles/${article.aggregate_id}`, { body: text("See the *newest* guide.") });
  await api("POST", "/aggregates/note-1/events", { aggregate_type: "note", event_type: "note.updated", payload: { count: 4 } });
  await api("POST", "/mailbox", { title: text("Compare"), priority: "low" });
  const filled = { article: article.aggregate_id, project: project.id, slug: project.slug, agent: agent.id, task: task.id, event: event.event_id, view, before: position };
  known.set(api, filled);
  return filled;
}

/** Returns the addresses of all screens. @param {Filled} filled */
export const SCREENS = ({ article, slug, agent, task, event, view, before }) => [
  "/", "/inbox", "/inbox?view=all", `/inbox/${task}`, "/events", `/a/${article}`, `/a/${article}?tab=events`, `/a/${article}?tab=graph`, "/types", "/types/note",
  "/articles", `/articles/${article}`, "/projects", `/projects/${slug}`, "/pipelines", `/graph/${article}`, "/agents", `/agents/${agent}`, "/files",
  "/plugins", "/plugins/linker", "/parked", "/search?q=guide", "/settings/keys", "/settings/devices", "/settings/members", "/settings/workspace", "/settings/server", "/settings/installation", "/settings/appearance",
  `/events/${event}`, `/pipelines/${view}`, "/articles/new", "/plugins/linker/bench",
  ...["/inbox?view=all&", "/articles?", "/types/note?"].map((path) => `${path}at=@${before}..`),
];

/** The screens of a workspace without records, which require none. */
export const EMPTY = [
  "/", "/inbox", "/inbox?view=all", "/events", "/types", "/articles", "/articles/new", "/projects", "/pipelines", "/graph", "/agents", "/files", "/plugins", "/plugins/linker", "/plugins/linker/bench", "/parked",
  "/search?q=guide", "/settings/keys", "/settings/devices", "/settings/members", "/settings/workspace", "/settings/server", "/settings/installation", "/settings/appearance",
  "/articles?at=@1..", "/inbox?at=@1..",
];
