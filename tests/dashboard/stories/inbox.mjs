// The inbox: forty tasks with only the keyboard, edits, undo, concurrent reviewers, and actions on many tasks.

import { equal, gone, ok, see, story, until } from "../lib/story.mjs";
import { agentOf, taskOf } from "../lib/tasks.mjs";

const KINDS = /** @type {const} */ (["approve", "edit", "reject", "request_changes", "answer", "defer", "assign", "retry"]);

story("forty tasks are decided by keyboard alone, with all eight actions", async ({ page, api, signIn, axe, screenshot, aria }) => {
  const agent = await agentOf(api);
  /** @type {{id: string, title: string, subject: string, action: typeof KINDS[number]}[]} */
  const made = [];
  for (let number = 0; number < 40; number += 1) {
    const action = KINDS[number % KINDS.length];
    const kind = action === "answer" ? "question" : action === "retry" ? "failed" : "review";
    made.push({ ...await taskOf(api, agent, `Task ${String(number).padStart(2, "0")}`, { kind }), action });
  }
  await signIn();
  const { keyboard } = page;
  await keyboard.press("g");
  await keyboard.press("i");
  await see(page.getByText("40 tasks"));
  const detail = page.getByRole("region", { name: "Task", exact: true });
  await keyboard.press("j");
  await see(detail.getByRole("heading", { name: "Task 39" }));
  await see(detail.getByRole("tab", { name: "Timeline" }));
  await axe();
  await screenshot("inbox");
  await aria("detail", detail);
  // A task is marked as read after a delay, but marked as unread immediately.
  await until(async () => (await api("GET", `/mailbox/${made[39].id}`)).unread === false);
  await keyboard.press("u");
  await until(async () => (await api("GET", `/mailbox/${made[39].id}`)).unread === true);
  for (const task of made.toReversed()) {
    await see(detail.getByRole("heading", { name: task.title }));
    await see(detail.getByRole("tab", { name: "Timeline" }));
    const dialog = page.getByRole("dialog");
    switch (task.action) {
      case "approve": await keyboard.press("a"); break;
      case "edit":
        await keyboard.press("e");
        await see(dialog.getByRole("textbox", { name: "summary", exact: true }));
        await keyboard.press("Control+End");
        await keyboard.type(" Edited.");
        await keyboard.press("Control+Enter");
        break;
      case "reject":
        await keyboard.press("r");
        await see(dialog.getByRole("textbox"));
        await keyboard.type("not good enough");
        await keyboard.press("Control+Enter");
        break;
      case "request_changes":
        await keyboard.press("c");
        await see(dialog.getByRole("textbox"));
        await keyboard.type("shorter, please");
        await keyboard.press("Control+Enter");
        break;
      case "answer":
        await keyboard.press("q");
        await see(dialog.getByRole("combobox"));
        await keyboard.type("euro");
        await keyboard.press("Control+Enter");
        break;
      case "defer":
        await keyboard.press("d");
        await see(dialog);
        await keyboard.press("2");
        break;
      case "assign":
        await keyboard.press("s");
        await see(dialog.getByRole("combobox"));
        await keyboard.type("nobody");
        await keyboard.press("Control+Enter");
        break;
      case "retry":
        await keyboard.press("t");
        await see(dialog.getByRole("textbox"));
        await keyboard.press("Control+Enter");
        break;
    }
    await gone(dialog);
  }
  const expected = { approve: "approved", edit: "approved", reject: "rejected", request_changes: "awaiting_reply", answer: "awaiting_reply", defer: "deferred", assign: "pending", retry: "pending" };
  for (const task of made) {
    await until(async () => (await api("GET", `/mailbox/${task.id}?timeline=0`)).status === expected[task.action], `${task.title} is not ${expected[task.action]}`);
  }
  const edited = made.filter((task) => task.action === "edit");
  for (const task of edited) equal((await api("GET", `/aggregates/${task.subject}`)).summary, `Summary of ${task.title}. Edited.`);
  const rejected = await api("GET", `/mailbox/${made[2].id}`);
  equal(rejected.resolution.reason, "not good enough");
  await gone(page.getByRole("button", { name: /^Undo/ }));
  // Tasks without an assignee still wait for people.
  await see(page.getByText("5 tasks"));
});

story("an edit is a next version with a patch, takes effect once, and can be undone", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  const data = await taskOf(api, agent, "Data", { kind: "data" });
  const text = await taskOf(api, agent, "Text");
  const left = await taskOf(api, agent, "Left");
  const last = await taskOf(api, agent, "Last");
  await signIn();
  await go(`/inbox/${text.id}?tab=diff`);
  const detail = page.getByRole("region", { name: "Task", exact: true });
  await see(detail.getByText("Approving appends receipt.updated to text → v2"));
  await see(detail.locator("ins").getByText("Summary of Text."));
  await screenshot("diff");
  await page.keyboard.press("e");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "summary", exact: true }).first().fill("Better words.");
  await see(dialog.getByText("The effect's summary changes as well."));
  await axe();
  await screenshot("edit");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("button", { name: /^Undo: Text/ }).click();
  await see(page.getByRole("link", { name: /Text/ }));
  equal((await api("GET", `/mailbox/${text.id}`)).status, "review");
  // The dialog still has the typed text.
  await go(`/inbox/${text.id}`);
  await see(detail.getByRole("tab", { name: "Timeline" }));
  await page.keyboard.press("e");
  await dialog.getByRole("textbox", { name: "summary", exact: true }).first().fill("Better words.");
  await page.keyboard.press("Control+Enter");
  await until(async () => (await api("GET", `/mailbox/${text.id}`)).status === "approved");
  const edited = await api("GET", `/mailbox/${text.id}`);
  const [first, second] = edited.artifacts;
  equal([first.version, second.version, second.parts, second.supersedes === first.id], [1, 2, [{ text: "Better words." }], true]);
  ok(second.patch.some((/** @type {any} */ change) => change.op === "replace" && change.value === "Better words."));
  const events = (await api("GET", `/aggregates/${text.subject}/events`)).data;
  equal(events.map((/** @type {any} */ event) => event.payload.summary), ["none", "Better words."]);

  // Data is edited as JSON. The JSON is checked during typing, and numbers keep their text.
  await go(`/inbox/${data.id}`);
  await see(detail.getByRole("tab", { name: "Timeline" }));
  await page.keyboard.press("e");
  const field = dialog.getByRole("textbox", { name: "summary JSON" });
  await field.fill('{"summary": "Changed", "total": }');
  await see(dialog.getByText(/^Not JSON/));
  await page.keyboard.press("Control+Enter");
  await see(dialog.getByRole("alert").getByText(/Not JSON/));
  await field.fill('{"summary": "Changed", "total": 12.50}');
  await page.keyboard.press("Control+Enter");
  await gone(dialog);
  await until(async () => (await api("GET", `/mailbox/${data.id}`)).status === "approved");
  const state = await api("GET", `/aggregates/${data.subject}`);
  equal([state.summary, state.total, state._version], ["Changed", 12.5, 2]);

  // Leaving the page sends the action that could still be undone, for the shown version. Marking the task as read also
  // creates a version.
  await go(`/inbox/${left.id}`);
  await see(detail.getByRole("tab", { name: "Timeline" }));
  await see(detail.getByRole("button", { name: "Mark as unread" }));
  await until(async () => (await api("GET", `/mailbox/${left.id}`)).unread === false);
  await see(detail.getByRole("link", { name: "v4" }));
  await page.keyboard.press("a");
  await see(page.getByRole("button", { name: /^Undo: Left/ }));
  await page.goto("about:blank");
  await until(async () => (await api("GET", `/mailbox/${left.id}`)).status === "approved");
  equal((await api("GET", `/aggregates/${left.subject}/events`)).data.length, 2);

  // Signing out also sends the action, before the key of the session is revoked. A request that outlives its page could not
  // have as many bytes.
  await go(`/inbox/${last.id}`);
  await see(detail.getByRole("tab", { name: "Timeline" }));
  await page.keyboard.press("e");
  await dialog.getByRole("textbox", { name: "summary", exact: true }).first().fill("x".repeat(70_000));
  await page.keyboard.press("Control+Enter");
  await see(page.getByRole("button", { name: /^Undo: Last/ }));
  await page.getByRole("button", { name: "Sign out" }).click();
  await see(page.getByLabel("API key"));
  equal((await api("GET", `/mailbox/${last.id}`)).status, "approved");
// A request for the list may still be in progress when the session ends.
}, { expected: [{ status: 401, path: /\/mailbox\?/ }] });

story("another reviewer is first: the row returns, the text stays, and the list says who it was", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  const task = await taskOf(api, agent, "Contested");
  const changed = await taskOf(api, agent, "Changed below");
  await signIn();
  await go(`/inbox/${task.id}`);
  const detail = page.getByRole("region", { name: "Task", exact: true });
  await see(detail.getByRole("tab", { name: "Timeline" }));
  await page.keyboard.press("e");
  await page.getByRole("dialog").getByRole("textbox", { name: "summary", exact: true }).first().fill("My careful words.");
  await page.keyboard.press("Control+Enter");
  await see(page.getByRole("button", { name: /^Undo: Contested/ }));
  await api("POST", `/mailbox/${task.id}/reject`, { reason: "no" });
  const refusals = page.getByRole("region", { name: "Refused decisions" });
  await see(refusals.getByText(/rejected it first/));
  await refusals.getByText("My text").click();
  await see(refusals.getByText("My careful words."));
  await see(page.getByRole("list", { name: "Tasks" }).getByText("rejected"));
  await axe();
  await screenshot("refused");
  equal((await api("GET", `/aggregates/${task.subject}`)).summary, "none");
  // A refused text is not lost by signing out unasked.
  const question = new Promise((told) => { page.once("dialog", (asked) => { told(asked.message()); asked.dismiss(); }); });
  await page.getByRole("button", { name: "Sign out" }).click();
  ok((await question).startsWith("Refused decisions"));
  await refusals.getByRole("button", { name: "Dismiss all" }).click();

  // The aggregate changes after the delivery. Before the approval, the dashboard shows the change and asks the person.
  await api("POST", `/aggregates/${changed.subject}/events`, { aggregate_type: "receipt", event_type: "receipt.updated", payload: { total: 99 } });
  await go(`/inbox/${changed.id}`);
  await see(detail.getByText(/The author read v1; it is at v2 now/));
  await page.keyboard.press("a");
  const dialog = page.getByRole("dialog", { name: "Approve Changed below?" });
  await see(dialog.locator("ins").getByText("99"));
  await screenshot("stale");
  await page.keyboard.press("Enter");
  await until(async () => (await api("GET", `/mailbox/${changed.id}`)).status === "approved");
  equal((await api("GET", `/aggregates/${changed.subject}`)).total, 99);

  // Output that is delivered while an edit is written is not overwritten unseen.
  const moved = await taskOf(api, agent, "Moved on");
  await go(`/inbox/${moved.id}`);
  await see(detail.getByRole("tab", { name: "Timeline" }));
  await page.keyboard.press("e");
  const edit = page.getByRole("dialog", { name: "Edit and approve Moved on" });
  const text = edit.getByRole("textbox", { name: "summary", exact: true }).first();
  await text.fill("Over the first output.");
  const artifact = { name: "summary", text: "Unseen.", effect: { event_type: "receipt.updated", payload: { summary: "Unseen." } } };
  const deliver = async () => {
    await api("POST", `/mailbox/${moved.id}/request-changes`, { message: "again" });
    for (const [step, body] of Object.entries({ claim: {}, complete: { artifact } })) await api("POST", `/mailbox/${moved.id}/${step}`, { agent_id: agent.id, ...body }, { key: agent.key });
  };
  await deliver();
  await see(edit.getByText(/^The task has changed since you began/));
  await text.press("Control+Enter");
  await see(refusals.getByText("version_conflict"));
  equal((await api("GET", `/aggregates/${moved.subject}`)).summary, "none");
  await refusals.getByRole("button", { name: "Open my text" }).click();
  equal(await text.inputValue(), "Over the first output.");
  // On a newer version, the text stays and has the focus.
  await deliver();
  await edit.getByRole("button", { name: /^Use my text in version/ }).click();
  equal(await edit.locator("textarea:focus").inputValue(), "Over the first output.");
}, { expected: [409] });

story("three hundred tasks are approved together, and three conflicts are told one by one", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  /** @type {any[]} */
  const made = [];
  for (let start = 0; start < 300; start += 20) {
    made.push(...await Promise.all(Array.from({ length: 20 }, (_, index) => api("POST", "/mailbox", { title: `Bulk ${String(start + index).padStart(3, "0")}` }))));
  }
  const [elsewhere, meanwhile] = [await api("POST", "/mailbox", { title: "Decided elsewhere" }), await api("POST", "/mailbox", { title: "Decided while selected" })];
  await signIn();
  await go("/inbox");
  await see(page.getByText("302 tasks"));
  await see(page.getByText("live", { exact: true }));
  // What others decide leaves the counts, also that of a list that is not read to its end.
  await api("POST", `/mailbox/${elsewhere.id}/reject`, {});
  await see(page.getByText("301 tasks"));
  const list = page.getByRole("list", { name: "Tasks" });
  ok((await list.getByRole("listitem").count()) <= 60);
  await page.keyboard.press("*");
  await see(page.getByText("301 selected"));
  await api("POST", `/mailbox/${meanwhile.id}/reject`, {});
  await see(page.getByText("300 selected"));
  await axe();
  await screenshot("bulk");
  await page.getByRole("toolbar", { name: "Selected tasks" }).getByRole("button", { name: "Approve" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await see(page.getByText("No task is in this view."));
  for (const task of [made[10], made[20], made[30]]) await api("POST", `/mailbox/${task.id}/reject`, {});
  const refusals = page.getByRole("region", { name: "Refused decisions" });
  await see(refusals.getByRole("heading", { name: "3 refused" }));
  for (const task of [made[10], made[20], made[30]]) await see(refusals.getByRole("button", { name: task.title, exact: true }));
  equal(await refusals.getByText(/rejected it first/).count(), 3);
  await axe();
  await screenshot("conflicts");
  const approved = await api("POST", "/aggregates/query", { pipeline: [{ $match: { aggregate_type: "task" } }, { $fold: {} }, { $match: { status: "approved" } }, { $count: "count" }] });
  equal(approved.results, [{ count: 297 }]);
  equal(agent.id.length > 0, true);
});

story("a bulk approval says what it appends, and refuses a task that was delivered again after it was selected", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  const again = await taskOf(api, agent, "Delivered again");
  const kept = await taskOf(api, agent, "Kept");
  const plain = await api("POST", "/mailbox", { title: "Plain" });
  await signIn();
  await go("/inbox?view=all");
  await see(page.getByText("3 tasks"));
  await page.keyboard.press("*");
  await see(page.getByText("3 selected"));
  await api("POST", `/mailbox/${again.id}/request-changes`, { message: "again" });
  await api("POST", `/mailbox/${again.id}/claim`, { agent_id: agent.id }, { key: agent.key });
  await api("POST", `/mailbox/${again.id}/complete`, { agent_id: agent.id, artifact: { name: "summary", text: "Unseen.", effect: { event_type: "receipt.updated", payload: { summary: "Unseen." } } } }, { key: agent.key });
  await page.keyboard.press("a");
  const dialog = page.getByRole("dialog", { name: "Approve 3 tasks" });
  await see(dialog.getByText("Approval appends 1 event to 1 aggregate: receipt.updated × 1."));
  await see(dialog.getByText("1 approval would be refused:"));
  await see(dialog.getByText("has changed since it was selected"));
  await see(dialog.getByRole("region", { name: "Events by task" }).getByRole("link", { name: kept.subject }));
  await axe();
  await screenshot("bulk-consequence");
  await dialog.getByLabel(/^Comment/).fill("As agreed.");
  await page.keyboard.press("Control+Enter");
  const refusals = page.getByRole("region", { name: "Refused decisions" });
  await see(refusals.getByRole("button", { name: "Delivered again", exact: true }));
  await see(refusals.getByText("version_conflict"));
  // What was typed for a decision that can still be made is not lost either.
  await refusals.getByText("My text").click();
  await see(refusals.getByText("As agreed."));
  const status = async (/** @type {string} */ id) => (await api("GET", `/mailbox/${id}`)).status;
  equal([await status(again.id), await status(kept.id), await status(plain.id)], ["review", "approved", "approved"]);
  equal((await api("GET", `/aggregates/${again.subject}`)).summary, "none");
});

story("filters stand in the address, and new tasks appear by themselves", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  await taskOf(api, agent, "First");
  await api("POST", "/mailbox", { title: "For nobody", priority: "urgent" });
  await signIn();
  await go("/inbox?priority=urgent,high");
  await see(page.getByText("1 task"));
  await see(page.getByRole("link", { name: /For nobody/ }));
  await page.getByLabel("Priority").selectOption("");
  await see(page.getByText("2 tasks"));
  equal(new URL(page.url()).search, "");
  await page.getByLabel("Assignee").selectOption("none");
  await until(() => page.url().includes("assignee=none"));
  await see(page.getByText("1 task"));
  await page.getByLabel("Assignee").selectOption("");
  await taskOf(api, agent, "Later");
  await see(page.getByRole("link", { name: /Later/ }));
  await see(page.getByText("3 tasks"));
  await axe();
  await screenshot("filters");

  // A task that comes before the open one does not bring the open one back into view.
  for (let number = 10; number < 40; number += 1) await api("POST", "/mailbox", { title: `Further ${number}` });
  await see(page.getByText("33 tasks"));
  await page.getByRole("link", { name: /Further 39/ }).click();
  const list = page.getByRole("list", { name: "Tasks" });
  await list.evaluate((element) => { element.scrollTop = 600; });
  await api("POST", "/mailbox", { title: "Newest" });
  await see(page.getByText("34 tasks"));
  ok((await list.evaluate((element) => element.scrollTop)) >= 600);
});

story("what the server refuses is said at its place, and the typed text can be corrected", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  // The same person delivered this output, with the key from which the session's key is derived, and decides nothing.
  const own = await api("POST", "/mailbox", { title: "Own work", artifacts: [{ name: "note", text: "mine" }] });
  const unclear = await taskOf(api, agent, "Unclear");
  await api("POST", `/mailbox/${unclear.id}/request-changes`, { message: "again" });
  await api("POST", `/mailbox/${unclear.id}/claim`, { agent_id: agent.id }, { key: agent.key });
  await api("POST", `/mailbox/${unclear.id}/complete`, { agent_id: agent.id, artifact: { name: "summary", text: "A long report.", effect: { event_type: "receipt.updated", payload: { summary: "short" } } } }, { key: agent.key });
  await signIn();
  const detail = page.getByRole("region", { name: "Task", exact: true });
  const refusals = page.getByRole("region", { name: "Refused decisions" });
  await go(`/inbox/${own.id}`);
  await see(detail.getByRole("tab", { name: "Timeline" }));
  await see(detail.getByRole("button", { name: /^Assign/ }));
  equal(await detail.getByRole("button", { name: /^(Approve|Edit|Reject)/ }).count(), 0);

  // The text changes, but it is not known how the effect should change.
  await go(`/inbox/${unclear.id}?tab=diff`);
  await see(detail.getByRole("heading", { name: /summary version 1 → 2/ }));
  await page.keyboard.press("e");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "summary", exact: true }).first().fill("A longer report.");
  await page.keyboard.press("Control+Enter");
  await refusals.getByRole("button", { name: "Open my text" }).click();
  await see(dialog.getByText(/Change the fields of the effect below/));
  equal(await dialog.getByRole("textbox", { name: "summary", exact: true }).first().inputValue(), "A longer report.");
  await axe();
  await screenshot("unchanged");
  await dialog.getByRole("group").getByRole("textbox", { name: "summary" }).fill("longer");
  await dialog.getByRole("button", { name: "Approve with changes" }).click();
  await until(async () => (await api("GET", `/mailbox/${unclear.id}`)).status === "approved");
  equal((await api("GET", `/aggregates/${unclear.subject}`)).summary, "longer");
}, { expected: [403, 409] });

story("a key that only reads is offered no decision", async ({ page, api, signIn, go, axe }) => {
  const agent = await agentOf(api);
  const task = await taskOf(api, agent, "Look only");
  const { key } = await api("POST", "/keys", { name: "reader", scopes: ["api:read"] });
  await signIn({ key });
  await go(`/inbox/${task.id}`);
  const detail = page.getByRole("region", { name: "Task", exact: true });
  await see(detail.getByText("This key lacks the scope api:write."));
  ok(await detail.getByRole("button", { name: /^Approve/ }).isDisabled());
  await page.keyboard.press("a");
  equal(await page.getByRole("button", { name: /^Undo/ }).count(), 0);
  equal((await api("GET", `/mailbox/${task.id}`)).unread, true);
  await axe();
});
