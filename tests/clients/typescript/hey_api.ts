// Runs the story with the client that @hey-api/openapi-ts generates.

import assert from "node:assert/strict";
import * as api from "./generated/hey_api/index.js";
import { createClient, createConfig } from "./generated/hey_api/client/index.js";
import { base, bytes, key, linked, refused, run, tell } from "./told.js";

const open = (token?: string) => createClient(createConfig({ baseUrl: base, auth: token }));
const client = open(key);
const slug = `hey-${run}`;
let project = "";
let article = "";

void tell("hey-api", {
  "a project": async () => {
    const { data } = await api.createProject({ client, body: { name: "Hey", slug } });
    assert.ok(data);
    assert.equal(data.slug, slug);
    assert.equal(data.description, null);
    project = data.id;
    const listed = await api.listProjects({ client, query: { limit: 200 } });
    assert.ok(listed.data?.data.some((known) => known.id === project));
  },
  "a type": async () => {
    const { data } = await api.defineType({
      client,
      body: {
        type_name: "ticket",
        display_name: "Ticket",
        traits: ["content-bearing"],
        fields: [{ name: "subject", type: "string", required: true, label: true }, { name: "points", type: "number" }],
      },
    });
    assert.equal(data?.fields.length, 2);
    const { data: schema } = await api.getTypeSchema({ client, path: { type_name: "ticket" } });
    assert.ok(schema?.fields.some((field) => field.name === "subject" && field.type === "string" && field.required));
  },
  "an event": async () => {
    const { data, response } = await api.appendEvent({
      client,
      path: { aggregate_id: `ticket:${slug}` },
      body: {
        aggregate_type: "ticket",
        event_type: "ticket.created",
        project_id: slug,
        payload: { subject: `Leaking tap ${run}`, points: 3 },
        expected_version: "none",
      },
    });
    assert.equal(response?.status, 201);
    assert.equal(data?.version, 1);
  },
  "an article": async () => {
    const body = { project_id: slug, title: `Kneading dough ${run}`, body: "# Dough", slug, tags: ["bread", "basics"] };
    const { data } = await api.createArticle({ client, body, headers: { "Idempotency-Key": slug } });
    assert.ok(data);
    assert.equal(data.status, "draft");
    assert.equal(data.published_at, null);
    article = data.aggregate_id;
    const again = await api.createArticle({ client, body, headers: { "Idempotency-Key": slug } });
    assert.equal(again.response?.status, 200);
    assert.equal(again.data?.aggregate_id, article);
  },
  "publishing": async () => {
    const { data } = await api.publishArticle({ client, path: { aggregate_id: article } });
    assert.equal(data?.status, "published");
    assert.ok(data?.published_at);
  },
  "a query": async () => {
    const { data } = await api.queryAggregates({
      client,
      body: {
        pipeline: [
          { $match: { aggregate_type: "ticket", project_id: project } },
          { $fold: {} },
          { $project: { subject: 1, double: { $multiply: ["$points", 2] } } },
        ],
      },
    });
    assert.equal(data?.count, 1);
    assert.equal((data?.results[0] as { double: number }).double, 6);
  },
  "a search": async () => {
    const { data } = await api.searchAggregates({
      client,
      body: { query: `kneeding dough ${run}`, type: "article", project_id: slug, limit: 5 },
    });
    assert.equal(data?.results[0]?.aggregate_id, article);
  },
  "a file": async () => {
    const { data } = await api.createFile({
      client,
      body: { filename: "dough.txt", data: bytes.toString("base64"), mime_type: "text/plain", project_id: slug },
    });
    assert.ok(data);
    assert.ok(data.path.split("/").length > 3);
    const link = await api.getFile({ client, path: { path: data.path } });
    assert.ok(link.data);
    assert.deepEqual(await linked(link.data.url), bytes);
  },
  "an agent and a task": async () => {
    const agent = await api.createAgent({
      client,
      body: { name: `Baker ${slug}`, description: "Bakes.", subscribed_traits: [], capabilities: { bake: true } },
    });
    assert.ok(agent.data);
    const made = await api.createTask({
      client,
      body: { title: "Bake it", assignee_type: "agent", assignee_id: agent.data.id, priority: "high", project_id: slug },
    });
    assert.equal(made.data?.status, "pending");
    const path = { task_id: made.data.id };
    const roster = await api.getRoster({ client });
    assert.ok(JSON.stringify(roster.data).includes(agent.data.id));
    const approved = await api.approveTask({ client, path, body: { comment: "Well done" } });
    assert.equal(approved.data?.status, "approved");
    const whole = await api.getTask({ client, path });
    assert.ok(whole.data?.timeline.some((entry) => entry.event_type === "task.approved"));
    const again = await api.approveTask({ client, path });
    refused(again.response?.status ?? 0, again.error, 409, "task_state_conflict");
  },
  "rejected with 400": async () => {
    const { error, response } = await api.listArticles({ client, query: { cursor: "nonsense" } });
    refused(response?.status ?? 0, error, 400, "invalid_cursor");
  },
  "rejected with 401": async () => {
    const { error, response } = await api.getWorkspace({ client: open() });
    refused(response?.status ?? 0, error, 401, "unauthenticated");
  },
  "rejected with 403": async () => {
    const made = await api.createKey({ client, body: { name: "reader", scopes: ["api:read"] } });
    assert.ok(made.data?.key);
    const reader = open(made.data.key);
    const { error, response } = await api.createProject({ client: reader, body: { name: "Refused" } });
    refused(response?.status ?? 0, error, 403, "insufficient_scope");
  },
  "rejected with 404": async () => {
    const { error, response } = await api.getArticle({ client, path: { aggregate_id: "not-there" } });
    refused(response?.status ?? 0, error, 404, "not_found");
  },
  "rejected with 409": async () => {
    const { error, response } = await api.createProject({ client, body: { name: "Again", slug } });
    refused(response?.status ?? 0, error, 409, "slug_taken");
  },
});
