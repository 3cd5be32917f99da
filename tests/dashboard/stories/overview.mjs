// The overview of an empty and of a busy workspace, agents, commands, search, and the API requests of a screen.

import { execFileSync } from "node:child_process";
import { equal, gone, ok, see, story, until } from "../lib/story.mjs";
import { agentOf, taskOf } from "../lib/tasks.mjs";

const none = { "config.toml": "[plugins]\nenabled = []\n" };

story("an empty workspace says what to do first, and shows what happens then", async ({ page, api, server, signIn, axe, screenshot }) => {
  await signIn();
  await see(page.getByRole("region", { name: "What to do first" }));
  await axe();
  await screenshot("overview-empty");
  const command = await page.getByRole("region", { name: "What to do first" }).locator("pre").innerText();
  execFileSync("bash", ["-c", command], { env: { ...process.env, no_proxy: "*", FOLDWORK_TOKEN: server.key } });
  await see(page.getByRole("cell", { name: "article.created" }));
  await see(page.getByText("All is well."));
  await gone(page.getByRole("region", { name: "What to do first" }));
  const agent = await api("POST", "/agents", { name: "Writer", description: "Writes.", subscribed_traits: [], capabilities: {} });
  await api("POST", "/mailbox", { title: "Check the first article" });
  await see(page.getByRole("heading", { name: "1 task waits for a decision" }));
  await see(page.getByRole("link", { name: "Check the first article" }));
  await see(page.getByRole("link", { name: "Writer" }));
  equal(await page.getByRole("link", { name: "Writer" }).first().getAttribute("href"), `/agents/${agent.id}`);
  await axe();
  await screenshot("overview");
}, { files: none });

story("an agent is registered, gets a key of its own, and its tasks are live", async ({ page, api, server, signIn, go, axe, screenshot }) => {
  await signIn();
  await go("/agents");
  await see(page.getByText("No agent is registered.", { exact: false }));
  await page.getByRole("button", { name: "Register an agent…" }).click();
  await page.getByLabel("Name").fill("Summarizer");
  await page.getByLabel("What it does").fill("Sums up <b>articles</b>.");
  await page.getByRole("checkbox", { name: "content-bearing" }).check();
  // A second click registers no second agent.
  let release = () => {};
  const held = new Promise((done) => { release = () => done(null); });
  await page.route(/\/agents$/, async (route) => { await held; await route.continue(); });
  await page.getByRole("button", { name: "Register", exact: true }).dblclick();
  release();
  await see(page.getByRole("heading", { name: "Summarizer" }));
  await see(page.getByText("Sums up <b>articles</b>."));
  await see(page.getByText("works on content with the trait", { exact: false }));
  await page.getByRole("button", { name: "Create a key for it" }).click();
  await page.getByRole("dialog").getByLabel("Your own key").fill(server.key);
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  const key = await page.getByRole("dialog", { name: "Key Summarizer" }).locator("code").innerText();
  equal((await api("GET", "/keys/self", undefined, { key })).agent_ids.length, 1);
  await page.keyboard.press("Escape");
  await see(page.getByText("No task is open."));
  const [agent, ...others] = (await api("GET", "/agents")).data;
  equal(others, []);
  await api("POST", "/mailbox", { title: "Sum up the first", assignee_type: "agent", assignee_id: agent.id });
  await see(page.getByRole("link", { name: "Sum up the first" }));
  await axe();
  await screenshot("agent");
  await api("POST", "/agents/heartbeat", { agent_ids: [agent.id] }, { key });
  await go("/agents");
  await see(page.getByRole("row", { name: /Summarizer active 1/ }));
  await axe();
}, { files: none });

story("every screen teaches the API, and commands and aggregates are found by name", async ({ page, api, server, signIn, axe, screenshot }) => {
  await api("POST", "/aggregates/soil/events", { aggregate_type: "article", event_type: "article.created", payload: { title: "Good soil", body: "Earth." } });
  await until(async () => (await api("POST", "/aggregates/search", { query: "goodd soil" })).results.length === 1);
  await signIn();
  await page.keyboard.press("Control+k");
  await see(page.getByRole("combobox", { name: "Command, or words to find" }));
  await page.keyboard.type("goodd soil");
  await see(page.getByRole("option", { name: /^Good soil/ }));
  await axe();
  await screenshot("palette");
  await page.getByRole("option", { name: /^All results/ }).click();
  await see(page.getByRole("list", { name: "Results" }).getByRole("link", { name: "Good soil" }));
  await axe();
  await page.keyboard.press("Control+k");
  await see(page.getByRole("combobox", { name: "Command, or words to find" }));
  await page.keyboard.type("pipelines");
  await see(page.getByRole("option", { name: /^Pipelines/ }));
  await page.keyboard.press("Enter");
  await see(page.getByRole("heading", { name: "Pipelines" }));
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await see(page.getByRole("cell", { name: "Good soil" }));
  await page.getByRole("button", { name: "{ }" }).click();
  const dialog = page.getByRole("dialog", { name: "This screen as API calls" });
  await see(dialog.getByText("query_aggregates"));
  await see(dialog.getByText("list_events"));
  equal(await dialog.getByText("search_aggregates").count(), 0);
  await axe();
  await screenshot("teach");
  const command = (await dialog.locator("pre").allInnerTexts()).find((text) => text.includes("/aggregates/query")) ?? "";
  const answer = JSON.parse(execFileSync("bash", ["-c", command], { env: { ...process.env, no_proxy: "*", FOLDWORK_TOKEN: server.key } }).toString());
  ok(answer.results.some((/** @type {any} */ row) => row.title === "Good soil"));
  await page.keyboard.press("Escape");
  await until(() => page.getByRole("button", { name: "{ }" }).evaluate((button) => button === document.activeElement));
});

story("the overview says what needs somebody, and leads there", async ({ page, api, signIn, axe, screenshot }) => {
  const agent = await agentOf(api);
  await taskOf(api, agent, "Lost", { kind: "failed" });
  await signIn();
  const wrong = page.getByRole("list", { name: "What needs somebody" });
  await see(wrong.getByRole("link", { name: "1 task has failed" }));
  await axe();
  await screenshot("verdict");
  await wrong.getByRole("link", { name: "1 task has failed" }).click();
  await see(page.getByRole("list", { name: "Tasks" }).getByRole("link", { name: /Lost/ }));
  equal(new URL(page.url()).search, "?view=failed");
}, { files: none });

story("the overview says that all is well only while the server says so", async ({ page, server, signIn }) => {
  await signIn();
  await see(page.getByText("All is well."));
  await server.stop();
  await see(page.getByText("The server cannot be asked. What is shown was read before."));
  await gone(page.getByText("All is well."));
  await server.start();
  await see(page.getByText("All is well."));
}, { files: none, isKept: true, isOffline: true, expected: [503] });

story("an id or a position finds what it belongs to", async ({ page, api, signIn }) => {
  const agent = await agentOf(api);
  const task = await taskOf(api, agent, "By its id");
  const [event] = (await api("GET", `/aggregates/${task.subject}/events`)).data;
  await signIn();
  const input = page.getByRole("combobox", { name: "Command, or words to find" });
  for (const [text, option, path] of [
    [task.id, "By its id task by its id", `/inbox/${task.id}`], [event.event_id, /^receipt.created event at position/, `/events/${event.event_id}`],
    [String(event.position), /^receipt.created event at position/, `/events/${event.event_id}`], [agent.id, "Summarizer agent by its id", `/agents/${agent.id}`], [task.subject, /^by-its-id receipt by its id/, `/a/${task.subject}`],
  ]) {
    await page.keyboard.press("Control+k");
    await see(input);
    await input.fill(String(text));
    await page.getByRole("option", { name: /** @type {any} */ (option) }).first().click();
    await until(() => new URL(page.url()).pathname === path, `${text} does not lead to ${path}`);
  }
// An id belongs to an aggregate or to an event, and the other one is not found.
}, { files: none, expected: [{ status: 404, path: /\/(aggregates|events)\/[^/]+$/ }] });

story("times go on while a page stays open, and what cannot be copied is said", async ({ page, signIn, go }) => {
  await signIn();
  await go("/settings/workspace");
  await see(page.locator("time"));
  await page.evaluate(() => { const now = Date.now; Date.now = () => now() + 7_200_000; });
  await see(page.getByText("2 hours ago"));
  // What the browser does not copy can be selected.
  await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error("denied")); });
  await page.getByRole("button", { name: "copy" }).first().click();
  await see(page.getByText("Select the text instead."));
}, { files: none });
