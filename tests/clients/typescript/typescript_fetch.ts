// Runs the story with the client that openapi-generator's typescript-fetch generates.

import assert from "node:assert/strict";
import * as api from "./generated/typescript_fetch/index.js";
import { base, bytes, key, linked, refused, run, tell } from "./told.js";

const open = (token?: string) => new api.Configuration({ basePath: base, ...(token ? { accessToken: token } : {}) });
const configuration = open(key);
const workspace = new api.WorkspaceApi(configuration);
const aggregates = new api.AggregatesApi(configuration);
const articles = new api.ArticlesApi(configuration);
const files = new api.FilesApi(configuration);
const agents = new api.AgentsApi(configuration);
const mailbox = new api.MailboxApi(configuration);
const keys = new api.KeysApi(configuration);
const slug = `generator-${run}`;
let project = "";
let article = "";

/** Checks the error of a call. */
async function refuses(call: Promise<unknown>, status: number, code: string): Promise<void> {
  const error: unknown = await call.then(() => assert.fail(`${status} is expected`), (thrown: unknown) => thrown);
  assert.ok(error instanceof api.ResponseError, String(error));
  refused(error.response.status, await error.response.json(), status, code);
}

void tell("typescript-fetch", {
  "a project": async () => {
    const made = await workspace.createProject({ createProject: { name: "Generator", slug } });
    assert.equal(made.slug, slug);
    assert.equal(made.description, null);
    project = made.id;
    const listed = await workspace.listProjects({ limit: 200 });
    assert.ok(listed.data.some((known) => known.id === project));
  },
  "a type": async () => {
    const made = await aggregates.defineType({
      typeDefinition: {
        typeName: "ticket",
        displayName: "Ticket",
        traits: ["content-bearing"],
        fields: [{ name: "subject", type: "string", required: true, label: true }, { name: "points", type: "number" }],
      },
    });
    assert.equal(made.fields.length, 2);
    const schema = await aggregates.getTypeSchema({ typeName: "ticket" });
    assert.ok(schema.fields.some((field) => field.name === "subject" && field.type === "string" && field.required));
  },
  "an event": async () => {
    const made = await aggregates.appendEventRaw({
      aggregateId: `ticket:${slug}`,
      appendBody: {
        aggregateType: "ticket",
        eventType: "ticket.created",
        projectId: slug,
        payload: { subject: `Leaking tap ${run}`, points: 3 },
        expectedVersion: "none",
      },
    });
    assert.equal(made.raw.status, 201);
    const event = await made.value();
    assert.equal(event.version, 1);
  },
  "an article": async () => {
    const createArticle = { projectId: slug, title: `Kneading dough ${run}`, body: "# Dough", slug, tags: ["bread", "basics"] };
    const made = await articles.createArticle({ createArticle, idempotencyKey: slug });
    assert.equal(made.status, "draft");
    assert.equal(made.publishedAt, null);
    article = made.aggregateId;
    const again = await articles.createArticleRaw({ createArticle, idempotencyKey: slug });
    assert.equal(again.raw.status, 200);
    assert.equal((await again.value()).aggregateId, article);
  },
  "publishing": async () => {
    const published = await articles.publishArticle({ aggregateId: article });
    assert.equal(published.status, "published");
    assert.ok(published.publishedAt);
  },
  "a query": async () => {
    const found = await aggregates.queryAggregates({
      queryBody: {
        pipeline: [
          { $match: { aggregate_type: "ticket", project_id: project } },
          { $fold: {} },
          { $project: { subject: 1, double: { $multiply: ["$points", 2] } } },
        ],
      },
    });
    assert.equal(found.count, 1);
    assert.equal((found.results[0] as { double: number }).double, 6);
  },
  "a search": async () => {
    const found = await aggregates.searchAggregates({
      searchBody: { query: `kneeding dough ${run}`, type: "article", projectId: slug, limit: 5 },
    });
    assert.equal(found.results[0]?.aggregateId, article);
  },
  "a file": async () => {
    const made = await files.createFile({
      uploadFile: { filename: "dough.txt", data: bytes.toString("base64"), mimeType: "text/plain", projectId: slug },
    });
    assert.ok(made.path.split("/").length > 3);
    const link = await files.getFile({ path: made.path });
    assert.deepEqual(await linked(link.url), bytes);
  },
  "an agent and a task": async () => {
    const agent = await agents.createAgent({
      createAgent: { name: `Baker ${slug}`, description: "Bakes.", subscribedTraits: [], capabilities: { bake: true } },
    });
    const made = await mailbox.createTask({
      createTask: { title: "Bake it", assigneeType: "agent", assigneeId: agent.id, priority: "high", projectId: slug },
    });
    assert.equal(made.status, "pending");
    const roster = await agents.getRoster();
    assert.ok(JSON.stringify(roster).includes(agent.id));
    const approved = await mailbox.approveTask({ taskId: made.id, approveTask: { comment: "Well done" } });
    assert.equal(approved.status, "approved");
    const whole = await mailbox.getTask({ taskId: made.id });
    assert.ok(whole.timeline.some((entry) => entry.eventType === "task.approved"));
    await refuses(mailbox.approveTask({ taskId: made.id }), 409, "task_state_conflict");
  },
  "rejected with 400": () => refuses(articles.listArticles({ cursor: "nonsense" }), 400, "invalid_cursor"),
  "rejected with 401": () => refuses(new api.WorkspaceApi(open()).getWorkspace(), 401, "unauthenticated"),
  "rejected with 403": async () => {
    const made = await keys.createKey({ createKey: { name: "reader", scopes: ["api:read"] } });
    assert.ok(made.key);
    const reader = new api.WorkspaceApi(open(made.key));
    await refuses(reader.createProject({ createProject: { name: "Refused" } }), 403, "insufficient_scope");
  },
  "rejected with 404": () => refuses(articles.getArticle({ aggregateId: "not-there" }), 404, "not_found"),
  "rejected with 409": () => refuses(workspace.createProject({ createProject: { name: "Again", slug } }), 409, "slug_taken"),
});
