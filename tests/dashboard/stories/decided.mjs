// The number of tasks that wait, decisions with Ctrl+Enter, and what an approval has appended, beside what was proposed.

import { equal, gone, ok, see, story, until } from "../lib/story.mjs";
import { agentOf, taskOf } from "../lib/tasks.mjs";

story("the tasks that wait are counted in the title, the icon, the navigation and the views", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  const first = await taskOf(api, agent, "First");
  await taskOf(api, agent, "Second", { kind: "question" });
  await taskOf(api, agent, "Third", { kind: "failed" });
  await api("POST", "/mailbox", { title: "Agent's", assignee_type: "agent", assignee_id: agent.id });
  await go("/");
  await see(page.getByLabel("API key"));
  equal(await page.title(), "Sign in · Foldwork");
  await signIn();
  await until(async () => (await page.title()) === "(3) Overview · Foldwork");
  const icon = () => page.locator('link[rel="icon"]').getAttribute("href");
  ok(decodeURIComponent(await icon() ?? "").includes(">3</text>"));
  await see(page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Inbox 3 waiting" }));
  await see(page.getByRole("navigation", { name: "Screens" }).getByText("default"));
  await go("/inbox");
  const options = page.getByLabel("View").getByRole("option");
  await until(async () => (await options.allInnerTexts()).includes("Waiting for people (3)"));
  const counted = (await options.allInnerTexts()).map((text) => text.trim());
  equal(counted, ["Waiting for people (3)", "In review (1)", "Questions of agents (1)", "With agents (1)", "Deferred (0)", "Failed (1)", "Open (3)", "Closed (1)", "All (4)"]);
  await axe();
  await screenshot("counts");
  await api("POST", `/mailbox/${first.id}/reject`, {});
  await until(async () => (await page.title()) === "(2) Inbox · Foldwork");
  await page.getByRole("button", { name: "Sign out" }).click();
  await see(page.getByLabel("API key"));
  await until(async () => (await page.title()) === "Sign in · Foldwork");
  ok((await icon() ?? "").endsWith("/style/icon.svg"));
});

story("Ctrl+Enter decides and opens the next task, and a dialog that it closes decides nothing else", async ({ page, api, signIn, go }) => {
  const agent = await agentOf(api);
  const made = [];
  for (const title of ["Fourth", "Third", "Second", "First"]) made.unshift(await taskOf(api, agent, title));
  const [first, second, third, fourth] = made;
  await signIn();
  const detail = page.getByRole("region", { name: "Task", exact: true });
  const open = async (/** @type {string} */ title) => { await see(detail.getByRole("heading", { name: title })); await see(detail.getByRole("tab", { name: "Timeline" })); };
  await go(`/inbox/${first.id}`);
  await open("First");
  await page.keyboard.press("ArrowRight");
  await open("Second");
  await page.keyboard.press("ArrowLeft");
  await open("First");
  // A key that is held too long decides once.
  for (const key of ["Control", "Enter", "Enter"]) await page.keyboard.down(key);
  for (const key of ["Enter", "Control"]) await page.keyboard.up(key);
  await open("Second");
  await page.keyboard.press("r");
  // What is typed stays when the dialog is closed.
  const reason = page.getByRole("dialog").getByRole("textbox");
  await reason.fill("not good enough");
  await page.keyboard.press("Escape");
  await page.keyboard.press("r");
  equal(await reason.inputValue(), "not good enough");
  await page.keyboard.press("Control+Enter");
  await open("Third");
  await page.keyboard.press("c");
  // A click outside closes no dialog in which something is typed.
  await page.getByRole("dialog").getByRole("textbox").fill("shorter");
  await page.mouse.click(4, 4);
  await page.getByRole("dialog").getByRole("textbox").press("Control+Enter");
  await open("Fourth");
  const status = async (/** @type {any} */ { id }) => (await api("GET", `/mailbox/${id}?timeline=0`)).status;
  await until(async () => (await status(second)) === "rejected");
  equal([await status(first), await status(third), await status(fourth)], ["approved", "awaiting_reply", "review"]);
  equal((await api("GET", `/mailbox/${second.id}`)).resolution.reason, "not good enough");
  // The message leads to the event that the draft has become.
  await page.getByRole("status").getByRole("link", { name: "Show the event" }).click();
  await see(page.getByRole("heading", { name: "receipt.updated" }));
  await see(page.getByRole("main").getByText("Summary of First."));
});

story("what was proposed, what was edited and what takes effect stand beside each other, before and after the decision", async ({ page, api, signIn, go, axe, screenshot }) => {
  const agent = await agentOf(api);
  const task = await taskOf(api, agent, "Text");
  await signIn();
  await go(`/inbox/${task.id}?tab=diff`);
  const detail = page.getByRole("region", { name: "Task", exact: true });
  const table = page.getByRole("table", { name: "Proposed, edited and effective: summary" });
  const rows = async () => (await table.getByRole("row").allInnerTexts()).map((text) => text.split("\t").map((cell) => cell.trim()));
  await see(table);
  equal(await rows(), [
    ["Field", "Proposed by Summarizer", "Edited", "Would be appended"],
    ["content", "Summary of Text.", "unchanged", "–"],
    ["summary", "Summary of Text.", "unchanged", "Summary of Text."],
  ]);
  await screenshot("proposed");
  await page.keyboard.press("e");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox", { name: "summary", exact: true }).first().fill("Summary of the text.");
  const typed = dialog.getByRole("table", { name: "Proposed, edited and effective: summary" });
  await see(typed.getByRole("row", { name: /^content/ }).locator("ins"));
  equal(await typed.getByRole("row").last().getByRole("cell").last().innerText(), "Summary of the text.");
  await axe();
  await screenshot("typed");
  await page.keyboard.press("Control+Enter");
  await until(async () => (await api("GET", `/mailbox/${task.id}`)).status === "approved");
  await go(`/inbox/${task.id}?tab=diff`);
  await see(detail.getByText("Approval appended receipt.updated to text v2"));
  const after = await rows();
  equal([after[0], after[1][1], after[2][1], after[2][3]], [["Field", "Proposed by Summarizer", "Edited by you", "Appended"], "Summary of Text.", "Summary of Text.", "Summary of the text."]);
  await axe();
  await screenshot("appended");
});

story("output from before the changes that were requested is approved only by somebody who accepts that", async ({ page, api, signIn, go, show, axe, screenshot }) => {
  const agent = await agentOf(api);
  const task = await taskOf(api, agent, "First");
  await api("POST", `/mailbox/${task.id}/request-changes`, { message: "shorter" });
  await signIn();
  await go(`/inbox/${task.id}`);
  const detail = page.getByRole("region", { name: "Task", exact: true });
  await see(detail.getByText("The output is from before the changes that were requested."));
  await page.keyboard.press("a");
  const dialog = page.getByRole("dialog");
  await see(dialog.getByText("The output is from before the changes that were requested."));
  await axe();
  await screenshot("superseded");
  await page.keyboard.press("Escape");
  await gone(dialog);
  equal((await api("GET", `/mailbox/${task.id}?timeline=0`)).status, "awaiting_reply");
  await page.keyboard.press("a");
  const { head } = await api("GET", "/system/consumers");
  await dialog.getByRole("button", { name: "Approve nevertheless" }).click();
  // A decision under way, or done, does not change the past.
  await show(`/inbox?view=all&at=@${head}`);
  const row = page.getByRole("list", { name: "Tasks" }).getByRole("listitem").filter({ hasText: "First" });
  await see(row.getByText("awaiting reply"));
  await until(async () => (await api("GET", `/mailbox/${task.id}?timeline=0`)).status === "approved");
  await see(page.getByRole("status").getByRole("link", { name: "Show the event" }));
  ok(await row.getByText("awaiting reply").isVisible());
  equal((await api("GET", `/aggregates/${task.subject}`)).summary, "Summary of First.");
});
