// The whole application as of an earlier moment: lists, aggregates, the inbox, and comparisons of two moments.

import { equal, gone, ok, see, story, until } from "../lib/story.mjs";
import { agentOf, taskOf } from "../lib/tasks.mjs";

/** Returns the position of the newest event. @param {ReturnType<typeof import("../lib/story.mjs").caller>} api */
const headOf = async (api) => Number((await api("GET", "/system/consumers")).head);

story("everything is shown as of a moment, nothing can be written there, and its link opens the same elsewhere", async ({ page, api, signIn, go, axe, screenshot, profile, server }) => {
  const agent = await agentOf(api);
  const task = await taskOf(api, agent, "Early task", { subject: "early" });
  // The field of the form has whole seconds, so the moment is the first whole second after the last event.
  const delivered = (await api("GET", `/mailbox/${task.id}`)).updated_at;
  const time = new Date(Math.floor(Date.parse(delivered) / 1_000) * 1_000 + 1_000).toISOString();
  await until(() => Date.now() > Date.parse(time) + 20);
  await api("POST", `/mailbox/${task.id}/approve`, {});
  await api("POST", "/aggregates/late/events", { aggregate_type: "receipt", event_type: "receipt.created", payload: { text: "Late" } });
  await signIn();

  // The person chooses the moment once, and every screen keeps it.
  await go("/types/receipt");
  await see(page.getByText("2 aggregates"));
  await page.keyboard.press("@");
  const choice = page.getByRole("dialog", { name: "The moment" });
  await choice.getByLabel("Time").fill(time.slice(0, 19));
  await axe();
  await screenshot("moment");
  await choice.getByRole("button", { name: "Show" }).press("Enter");
  await see(page.getByText("1 aggregate at this moment"));
  await gone(choice);
  equal(new URL(page.url()).searchParams.get("at"), time);
  ok(await page.getByRole("button", { name: "New aggregate" }).isDisabled());
  await see(page.getByRole("status").getByText(/Nothing|nothing can be changed/));
  await axe();
  await screenshot("list");

  await page.getByRole("link", { name: "Inbox" }).click();
  await page.getByRole("link", { name: /Early task/ }).click();
  const detail = page.getByRole("region", { name: "Task", exact: true });
  await see(detail.getByText("Summary of Early task."));
  equal(await detail.getByText("review", { exact: true }).count(), 1);
  equal(await detail.getByRole("button", { name: /Approve/ }).count(), 0);
  await page.keyboard.press("a");
  equal(await page.getByRole("button", { name: /^Undo/ }).count(), 0);
  await axe();
  await screenshot("inbox");

  // A pipeline also folds as of the moment.
  await page.getByRole("link", { name: "Types", exact: true }).click();
  await page.getByRole("link", { name: "Receipt", exact: true }).click();
  await page.getByRole("link", { name: "Open as a pipeline" }).click();
  await see(page.getByText("early"));
  equal(await page.getByText("late", { exact: true }).count(), 0);

  // The same link in another browser shows the same state after signing in.
  const link = `${server.url}/a/early?at=${encodeURIComponent(time)}`;
  const other = await profile();
  await other.goto(link);
  await other.getByLabel("API key").fill(server.key);
  await other.getByRole("button", { name: "Sign in" }).click();
  await see(other.getByText("State at version 1"));
  await see(other.getByText("none"));
  ok(await other.getByRole("button", { name: "Append event" }).isDisabled());
  await screenshot("aggregate", other);
  await other.getByRole("button", { name: "Back to now" }).click();
  await see(other.getByText("State at version 2"));
  await see(other.getByText("Summary of Early task."));
});

story("two moments are compared: what was added, removed and changed between them", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  const task = await taskOf(api, agent, "One", { subject: "one" });
  await taskOf(api, agent, "Two", { subject: "two" });
  const first = await headOf(api);
  await api("POST", `/mailbox/${task.id}/approve`, {});
  await api("DELETE", "/aggregates/two", undefined, { expect: 204 });
  await api("POST", "/aggregates/three/events", { aggregate_type: "receipt", event_type: "receipt.created", payload: { text: "Three" } });
  const second = await headOf(api);
  await signIn();
  await go(`/types/receipt?at=@${first}..@${second}`);
  const compared = page.getByRole("region", { name: "Aggregates at two moments" });
  for (const text of ["1 added", "1 removed", "1 changed"]) await see(compared.getByText(text));
  await see(compared.getByRole("listitem").filter({ hasText: "changed: one" }).getByText("summary"));
  await compared.getByRole("button", { name: "Compare" }).click();
  await see(compared.locator("ins").getByText(/Summary of/));
  await axe();
  await screenshot("compared");
  ok(await page.getByRole("button", { name: "New aggregate" }).isDisabled());
  await compared.getByRole("link", { name: "one" }).first().click();
  await see(page.getByText("State at version 2"));
  await see(page.getByText("Changed by version 2"));
  await page.getByRole("button", { name: "Earlier only" }).click();
  await see(page.getByText("State at version 1"));
  await page.getByRole("tab", { name: "Edges" }).click();
  await see(page.getByText("No edge begins or ends here at this version."));
  await go(`/types/receipt?at=@${first}..@${second}`);
  await page.getByRole("link", { name: "Inbox" }).click();
  await see(page.getByRole("region", { name: "Tasks at two moments" }).getByText("1 removed"));
  await screenshot("compared-inbox");
  await page.getByRole("button", { name: "Back to now" }).click();
  await until(() => !page.url().includes("at="));
  await see(page.getByRole("link", { name: /Two/ }));
  // A comparison with the current state is live, and allows writes.
  await go(`/types/receipt?at=@${first}..`);
  await see(page.getByText("1 added"));
  await api("POST", "/aggregates/four/events", { aggregate_type: "receipt", event_type: "receipt.created", payload: { text: "Four" } });
  await see(page.getByText("2 added"));
  ok(await page.getByRole("button", { name: "New aggregate" }).isEnabled());
});

story("an aggregate is stepped through, compared, extended and deleted", async ({ page, api, signIn, go, axe, screenshot }) => {
  await api("POST", "/aggregates/define", { type_name: "receipt", fields: [{ name: "total", type: "decimal" }, { name: "text", type: "string" }] });
  for (let version = 1; version <= 5; version += 1) {
    await api("POST", "/aggregates/r/events", { aggregate_type: "receipt", event_type: version === 1 ? "receipt.created" : "receipt.updated", payload: version % 2 ? { total: version } : { text: `text ${version}` }, occurred_at: `2026-01-0${version}T10:00:00Z` });
  }
  await signIn();
  await go("/a/r");
  await see(page.getByText("State at version 5"));
  await page.keyboard.press("H");
  await see(page.getByText("State at version 1"));
  await page.keyboard.press("l");
  await see(page.getByText("State at version 2"));
  await see(page.locator(".changes ins").getByText("text 2"));
  equal(await page.locator(".tree .changed dt").allTextContents(), ["text (changed)"]);
  await page.getByLabel("compared with").fill("0");
  await page.keyboard.press("Tab");
  await see(page.getByText("Changed since version 0"));
  await see(page.locator(".changes").getByText("total"));
  await axe();
  await screenshot("stepper");
  await page.keyboard.press("p");
  await see(page.getByText("State at version 5"));
  // A version that does not exist does not stay in the field.
  const version = page.getByRole("spinbutton", { name: "Version", exact: true });
  await version.fill("99");
  await page.keyboard.press("Tab");
  await until(async () => (await version.inputValue()) === "5");
  await page.getByRole("tab", { name: "Events" }).click();
  await see(page.getByRole("link", { name: "v5" }));
  await page.getByRole("button", { name: "Show version 3" }).click();
  await see(page.getByRole("heading", { name: "receipt.updated" }));
  await axe();
  await screenshot("history");
  await page.getByRole("tab", { name: "State" }).click();
  await page.getByRole("button", { name: "Append event" }).click();
  const dialog = page.getByRole("dialog");
  const payload = dialog.getByLabel(/Payload/);
  await payload.fill("{total}");
  await see(dialog.getByText(/^Not JSON/));
  await payload.fill('{"total": 12345678901234567890.5}');
  await api("POST", "/aggregates/r/events", { aggregate_type: "receipt", event_type: "receipt.updated", payload: { text: "first" } });
  await dialog.getByRole("button", { name: /^Append after/ }).click();
  await see(dialog.getByText(/Somebody was first: the aggregate is at version 6/));
  await axe();
  await dialog.getByRole("button", { name: "Append after version 6" }).click();
  await gone(dialog);
  await see(page.getByText("12345678901234567890.5"));
  await screenshot("exact");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete version 7" }).click();
  await see(page.getByRole("heading", { name: "receipt" }));
  await api("GET", "/aggregates/r", undefined, { expect: 404 });
  await go("/a/r");
  await see(page.getByText("deleted", { exact: true }));
  await page.keyboard.press("h");
  await see(page.getByText("State at version 7"));
}, { expected: [409, { status: 404, path: /\/aggregates\/r(\?|$)/ }] });

story("the first screen, agents, types, projects and articles show the past, and say what is of now", async ({ page, api, signIn, go, show, axe, screenshot }) => {
  await api("POST", "/aggregates/define", { type_name: "note", display_name: "Note", fields: [{ name: "title", type: "string" }] });
  const project = await api("POST", "/projects", { name: "Garden", description: "As it was." });
  const agent = await api("POST", "/agents", { name: "Gardener" });
  const task = await api("POST", "/mailbox", { title: "Dig", assignee_type: "agent", assignee_id: agent.id });
  const waiting = await api("POST", "/mailbox", { title: "Choose the seeds" });
  await api("POST", "/articles", { title: "Soil", body: "Earth.", tags: ["ground"] });
  await api("POST", "/articles", { title: "Rain", body: "Water.", tags: ["sky"] });
  await api("POST", "/aggregates/view-1/events", { aggregate_type: "view", event_type: "view.created", payload: { name: "Articles by title", pipeline: [{ $match: { aggregate_type: "article" } }, { $fold: {} }, { $project: { title: 1 } }, { $sort: { title: 1 } }] } });
  const position = await headOf(api);
  const [last] = (await api("GET", `/events?after=${position - 1}&limit=1`)).data;
  await until(() => Date.now() > Date.parse(last.recorded_at) + 5);
  const time = new Date(Date.parse(last.recorded_at) + 1).toISOString();
  await api("POST", "/projects", { name: "Late project" });
  // A definition has a position and no time, so an event stands between the moment and the definition.
  await api("POST", "/aggregates/define", { type_name: "note", display_name: "Note", fields: [{ name: "title", type: "string" }, { name: "count", type: "number" }] });
  const late = await api("POST", "/agents", { name: "Late agent" });
  await api("POST", `/mailbox/${waiting.id}/approve`, {});
  await api("POST", `/mailbox/${task.id}/assign`, { agent_id: late.id });
  const article = await api("POST", "/articles", { title: "Late article", tags: ["ground"] });
  const written = await headOf(api);

  await signIn();
  for (const at of [`@${position}`, time]) {
    await go(`/?at=${at}`);
    await see(page.getByRole("heading", { name: "1 task waits for a decision" }));
    await see(page.getByRole("link", { name: "Choose the seeds" }));
    await see(page.getByText("1 waiting, 0 in progress, 0 in review"));
    await see(page.getByRole("link", { name: "Garden" }));
    for (const name of ["Late agent", "Late project"]) equal(await page.getByRole("link", { name }).count(), 0);
    await see(page.getByRole("cell", { name: "Soil" }));
    equal(await page.getByRole("cell", { name: "Late article" }).count(), 0);
    await see(page.getByRole("heading", { name: "The log now" }));
    equal(await page.getByRole("region", { name: "Latest events" }).getByRole("row").nth(1).getByRole("link").first().innerText(), String(position));
    await axe();

    await go(`/agents?at=${at}`);
    await see(page.getByText("3 agents at this moment"));
    await see(page.getByRole("row", { name: /Gardener registered 1 0 0/ }));
    await page.getByRole("link", { name: "Gardener" }).click();
    await see(page.getByRole("link", { name: "Dig" }));
    await axe();
    await go(`/agents/${late.id}?at=${at}`);
    await see(page.getByText("This agent was not registered at this moment."));

    await go(`/types/note?tab=fields&at=${at}`);
    await see(page.getByText(/^As defined at position/));
    await see(page.getByRole("cell", { name: "title" }));
    equal(await page.getByRole("cell", { name: "count" }).count(), 0);
    await page.getByRole("tab", { name: "Definitions" }).click();
    await see(page.getByRole("listitem").filter({ hasText: "Definition 1" }).getByText("valid then"));

    await go(`/projects/${project.slug}?at=${at}`);
    await see(page.getByText("As it was."));
    await go(`/projects/late-project?at=${at}`);
    await see(page.getByText("this project did not exist at this moment, or it was deleted by then"));
    await go(`/articles?tag=ground&at=${at}`);
    await see(page.getByRole("link", { name: "Soil" }));
    equal(await page.getByRole("list", { name: "Articles" }).getByRole("listitem").count(), 1);
    ok(decodeURIComponent(String(await page.getByRole("link", { name: "Open as a pipeline" }).getAttribute("href"))).includes('"tags":"ground"'));
    await go(`/events/${last.event_id}?at=${at}`);
    await see(page.getByRole("heading", { name: "Consequences now" }));
    await go(`/graph?at=${at}`);
    await see(page.getByRole("link", { name: "Soil" }));
    equal(await page.getByRole("link", { name: "Late article" }).count(), 0);
    for (const path of ["/search?q=soil&", "/graph?q=soil&", "/plugins?", "/parked?", "/types?", "/settings/keys?"]) {
      await go(`${path}at=${at}`);
      await see(page.locator(".now-note"));
    }
  }
  await go(`/?at=@${position}`);
  await see(page.getByRole("heading", { name: "The log now" }));
  await screenshot("overview-past");
  // An article is not shown at a moment before it was written.
  await go(`/articles/${article.aggregate_id}?at=@${written}`);
  await see(page.getByRole("heading", { name: "Late article" }));
  await show(`/articles/${article.aggregate_id}?at=@${position}`);
  await see(page.getByRole("heading", { name: article.aggregate_id }));
}, { expected: [{ status: 404, path: /\/aggregates\// }] });

story("a moment that is none is refused instead of showing the present, and can be left", async ({ page, signIn, go }) => {
  await signIn();
  for (const at of ["yesterday", "@0", "@99999999999999999999"]) {
    await go(`/types/task?at=${at}`);
    await see(page.getByText(`Shown as of ${at}`));
    await see(page.getByRole("alert"));
    await page.getByRole("button", { name: "Back to now" }).click();
    await gone(page.getByRole("alert"));
    await see(page.getByText("0 aggregates"));
  }
  // Many keyboards have the key of the moment behind AltGr.
  await page.evaluate(() => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "@", ctrlKey: true, altKey: true, modifierAltGraph: true, bubbles: true, cancelable: true })));
  await see(page.getByRole("dialog", { name: "The moment" }));
}, { expected: [400], files: { "config.toml": "[plugins]\nenabled = []\n" } });
