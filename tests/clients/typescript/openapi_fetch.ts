// Runs the story with openapi-fetch and the types that openapi-typescript generates.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./generated/openapi_typescript.js";
import { base, bytes, key, linked, refused, run, tell } from "./told.js";

const open = (token?: string) =>
  createClient<paths>({ baseUrl: base, headers: token ? { Authorization: `Bearer ${token}` } : {} });
const client = open(key);
const slug = `fetch-${run}`;
let project = "";
let article = "";

void tell("openapi-fetch", {
  "a project": async () => {
    const { data } = await client.POST("/projects", { body: { name: "Fetch", slug, description: null } });
    assert.ok(data);
    assert.equal(data.slug, slug);
    project = data.id;
    const listed = await client.GET("/projects", { params: { query: { limit: 200 } } });
    assert.ok(listed.data?.data.some((known) => known.id === project));
  },
  "a type": async () => {
    const { data } = await client.POST("/aggregates/define", {
      body: {
        type_name: "ticket",
        display_name: "Ticket",
        traits: ["content-bearing"],
        fields: [{ name: "subject", type: "string", required: true, label: true }, { name: "points", type: "number" }],
      },
    });
    assert.equal(data?.fields.length, 2);
    const { data: schema } = await client.GET("/aggregate-types/{type_name}/schema", {
      params: { path: { type_name: "ticket" } },
    });
    assert.ok(schema?.fields.some((field) => field.name === "subject" && field.type === "string" && field.required));
  },
  "an event": async () => {
    const { data, response } = await client.POST("/aggregates/{aggregate_id}/events", {
      params: { path: { aggregate_id: `ticket:${slug}` } },
      body: {
        aggregate_type: "ticket",
        event_type: "ticket.created",
        project_id: slug,
        payload: { subject: `Leaking tap ${run}`, points: 3 },
        expected_version: "none",
      },
    });
    assert.equal(response.status, 201);
    assert.equal(data?.version, 1);
  },
  "several events": async () => {
    const { data } = await client.POST("/aggregates/{aggregate_id}/events", {
      params: { path: { aggregate_id: `ticket:${slug}` } },
      body: {
        events: [
          { event_type: "ticket.updated", payload: { points: 4 } },
          { event_type: "ticket.updated", payload: { points: 3 } },
        ],
      },
    });
    assert.equal(data?.version, 3);
    assert.deepEqual(data?.data?.map((event) => event.payload["points"]), [4, 3]);
  },
  "an article": async () => {
    const body = { project_id: slug, title: `Kneading dough ${run}`, body: "# Dough", slug, tags: ["bread", "basics"] };
    const { data } = await client.POST("/articles", { body, params: { header: { "Idempotency-Key": slug } } });
    assert.ok(data);
    assert.equal(data.status, "draft");
    assert.equal(data.published_at, null);
    article = data.aggregate_id;
    const again = await client.POST("/articles", { body, params: { header: { "Idempotency-Key": slug } } });
    assert.equal(again.response.status, 200);
    assert.equal(again.data?.aggregate_id, article);
  },
  "publishing": async () => {
    const path = { aggregate_id: article };
    const { data } = await client.POST("/articles/{aggregate_id}/publish", { params: { path } });
    assert.equal(data?.status, "published");
    assert.ok(data?.published_at);
    const { response } = await client.GET("/articles/{aggregate_id}", {
      params: { path, header: { "If-None-Match": `"${data.version}"` } },
      parseAs: "text",
    });
    assert.equal(response.status, 304);
  },
  "a query": async () => {
    const { data } = await client.POST("/aggregates/query", {
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
    const { data } = await client.POST("/aggregates/search", {
      body: { query: `kneeding dough ${run}`, type: "article", project_id: slug, limit: 5 },
    });
    assert.equal(data?.results[0]?.aggregate_id, article);
  },
  "a file": async () => {
    const { data } = await client.POST("/files", {
      body: { filename: "dough.txt", data: bytes.toString("base64"), mime_type: "text/plain", project_id: slug },
    });
    assert.ok(data);
    assert.ok(data.path.split("/").length > 3);
    const link = await client.GET("/files/{path}", { params: { path: { path: data.path } } });
    assert.ok(link.data);
    assert.deepEqual(await linked(link.data.url), bytes);
  },
  "an agent and a task": async () => {
    const agent = await client.POST("/agents", {
      body: { name: `Baker ${slug}`, description: "Bakes.", subscribed_traits: [], capabilities: { bake: true } },
    });
    assert.ok(agent.data);
    const made = await client.POST("/mailbox", {
      body: { title: "Bake it", assignee_type: "agent", assignee_id: agent.data.id, priority: "high", project_id: slug },
    });
    assert.equal(made.data?.status, "pending");
    const path = { task_id: made.data.id };
    const roster = await client.GET("/agents/roster");
    assert.ok(JSON.stringify(roster.data).includes(agent.data.id));
    const approved = await client.POST("/mailbox/{task_id}/approve", { params: { path }, body: { comment: "Well done" } });
    assert.equal(approved.data?.status, "approved");
    const whole = await client.GET("/mailbox/{task_id}", { params: { path } });
    assert.ok(whole.data?.timeline.some((entry) => entry.event_type === "task.approved"));
    const again = await client.POST("/mailbox/{task_id}/approve", { params: { path } });
    refused(again.response.status, again.error, 409, "task_state_conflict");
  },
  "rejected with 400": async () => {
    const { error, response } = await client.GET("/articles", { params: { query: { cursor: "nonsense" } } });
    refused(response.status, error, 400, "invalid_cursor");
  },
  "rejected with 401": async () => {
    const { error, response } = await open().GET("/workspace");
    refused(response.status, error, 401, "unauthenticated");
  },
  "rejected with 403": async () => {
    const made = await client.POST("/keys", { body: { name: "reader", scopes: ["api:read"] } });
    assert.ok(made.data?.key);
    const { error, response } = await open(made.data.key).POST("/projects", { body: { name: "Refused" } });
    refused(response.status, error, 403, "insufficient_scope");
  },
  "rejected with 404": async () => {
    const { error, response } = await client.GET("/articles/{aggregate_id}", {
      params: { path: { aggregate_id: "not-there" } },
    });
    refused(response.status, error, 404, "not_found");
  },
  "rejected with 409": async () => {
    const { error, response } = await client.POST("/projects", { body: { name: "Again", slug } });
    refused(response.status, error, 409, "slug_taken");
  },
});
