// Pipelines by keyboard: completion, errors at their stage, disabled stages, the plan, saved views, links, and earlier
// moments.

import { execFileSync } from "node:child_process";
import { equal, gone, ok, see, story, until } from "../lib/story.mjs";

/** @typedef {import("playwright-core").Page} Page */

/** @param {any} api */
async function garden(api) {
  const beds = [["tomato", "south", 5], ["basil", "south", 2], ["fern", "north", 1], ["moss", "north", 4]];
  await api("POST", "/aggregates/define", { type_name: "plant", fields: [{ name: "bed", type: "string" }, { name: "height", type: "integer" }] });
  for (const [name, bed, height] of beds) await api("POST", `/aggregates/${name}/events`, { aggregate_type: "plant", event_type: "plant.created", payload: { name, bed, height } });
}

/** @param {Page} page @param {number} number */
const stage = (page, number) => page.getByRole("textbox", { name: `Stage ${number}`, exact: true });
/** @param {Page} page @param {number} number */
const card = (page, number) => page.getByRole("list", { name: "Stages" }).getByRole("listitem", { name: new RegExp(`^Stage ${number},`) });

/** Replaces the text of the focused editor, as a person does by typing. @param {Page} page @param {string} text */
async function type(page, text) {
  await page.keyboard.press("Control+a");
  // If the browser itself replaced a marked text, it would keep the mark as a style attribute, which the policy forbids.
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}

/** Presses Tab until an element has the focus. @param {Page} page @param {import("playwright-core").Locator} target */
async function tabTo(page, target) {
  for (let steps = 0; steps < 80; steps += 1) {
    if (await target.evaluate((element) => {
      const deepest = (/** @type {any} */ root) => (root.activeElement?.shadowRoot ? deepest(root.activeElement.shadowRoot) : root.activeElement);
      return deepest(document) === element;
    })) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not lead to ${target}`);
}

/** Looks at a position of the log. @param {Page} page @param {number} position */
async function lookAt(page, position) {
  await page.getByRole("button", { name: /^as of:/ }).click();
  const choice = page.getByRole("dialog", { name: "The moment" });
  await choice.getByLabel(/^or position in the log/).fill(String(position));
  await choice.getByRole("button", { name: "Show" }).click();
  await gone(choice);
  await see(page.getByText("Shown as of"));
}

story("a pipeline is written, mended, explained, saved and opened again by keyboard", async ({ page, api, server, signIn, axe, screenshot }) => {
  await garden(api);
  await signIn();
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await see(page.getByRole("heading", { name: "Pipelines" }));
  await see(stage(page, 1));

  // The person types the first stage, and completes a value.
  await tabTo(page, stage(page, 1));
  await type(page, '{"$match": {"aggregate_type": "');
  await page.keyboard.type("pla");
  await see(page.getByRole("option", { name: /^plant/ }));
  // The list of completions ignores keys in its first 75 ms, so that a person does not choose a completion by accident.
  const offered = Date.now();
  await until(() => Date.now() - offered > 150);
  await page.keyboard.press("Enter");
  await until(async () => (await stage(page, 1).innerText()).includes('"plant"'));
  await page.keyboard.insertText("}}");
  equal((await stage(page, 1).innerText()).replace(/\s/g, ""), '{"$match":{"aggregate_type":"plant"}}');

  // Tab leaves the editor. The third stage becomes a group whose operator is misspelt.
  await tabTo(page, stage(page, 3));
  await type(page, '{"$group": {"_id": "$bed", "tallest": {"$maxx": "$height"}}}');
  await page.keyboard.press("Control+Enter");
  const alert = card(page, 3).getByRole("alert");
  await see(alert);
  ok((await alert.innerText()).includes("$max"), "the error has a hint");
  equal(await card(page, 1).getByRole("alert").count(), 0);
  equal(await stage(page, 3).locator(".cm-lintRange-error").first().innerText(), '"$maxx"');
  await screenshot("pipeline-error");
  await type(page, '{"$group": {"_id": "$bed", "tallest": {"$max": "$height"}}}');
  await page.keyboard.press("Control+Enter");
  const rows = page.getByRole("region", { name: "Rows" });
  await see(rows.getByRole("cell", { name: "south" }));
  equal(await rows.getByRole("row").count(), 3);
  await see(card(page, 2).getByText("4 rows"));

  // The person adds a stage from the list of all stages, replaces its text with a filter, and disables the stage.
  await page.keyboard.press("Escape");
  await tabTo(page, page.getByRole("button", { name: "Add a stage", exact: true }));
  await page.keyboard.press("Enter");
  await page.keyboard.type("sort");
  await see(page.getByRole("button", { name: /^\$sort / }));
  await page.keyboard.press("Enter");
  await see(card(page, 4));
  await tabTo(page, stage(page, 4));
  await type(page, '{"$match": {"tallest": {"$gte": 5}}}');
  await page.keyboard.press("Control+Enter");
  await until(async () => (await rows.getByRole("row").count()) === 2);
  const off = page.getByRole("checkbox", { name: "Stage 4 is on" });
  await tabTo(page, off);
  await page.keyboard.press("Space");
  await page.keyboard.press("Control+Enter");
  await until(async () => (await rows.getByRole("row").count()) === 3);
  await see(card(page, 4).getByText("This stage is off."));

  // The person opens the plan.
  await page.keyboard.press("e");
  const plan = page.getByRole("region", { name: "Plan" });
  await see(plan.getByText("resident"));
  await axe();
  await screenshot("pipeline");

  // The copied command returns the same rows in a shell.
  const copy = page.getByRole("button", { name: "curl" });
  await copy.focus();
  await page.keyboard.press("Enter");
  await until(() => copy.getAttribute("data-copied").then(Boolean));
  const command = await page.evaluate(() => navigator.clipboard.readText());
  const answer = JSON.parse(execFileSync("bash", ["-c", command], { env: { ...process.env, no_proxy: "*", FOLDWORK_TOKEN: server.key } }).toString());
  equal(answer.results.map((/** @type {any} */ row) => row._id).sort(), ["north", "south"]);

  // The link shows the same pipeline, including the disabled stage.
  await page.reload();
  await until(async () => (await rows.getByRole("row").count()) === 3);
  equal(await page.getByRole("checkbox", { name: "Stage 4 is on" }).isChecked(), false);

  // The person saves the pipeline, changes it, and opens the saved pipeline again.
  await page.getByRole("button", { name: "Save…" }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.type("Tallest");
  await page.keyboard.press("Enter");
  await see(page.getByRole("heading", { name: "Tallest" }));
  const [view] = (await api("GET", "/aggregates?type=view")).data;
  equal([view.name, view.pipeline.length], ["Tallest", 3]);
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("Tallest by bed");
  await page.keyboard.press("Enter");
  await see(page.getByRole("heading", { name: "Tallest by bed" }));
  await page.getByRole("button", { name: "History" }).click();
  await see(page.getByRole("link", { name: "Version 2" }));
  await axe();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "New" }).click();
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("link", { name: "Tallest by bed" }).click();
  await see(rows.getByRole("cell", { name: "south" }));
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await until(async () => (await api("GET", "/aggregates?type=view")).data.length === 0);
}, { expected: [{ status: 400, path: /aggregates\/query/ }] });

story("a pipeline runs over the past, and two moments are compared", async ({ page, api, signIn, go, axe, screenshot }) => {
  await garden(api);
  const { head } = await api("GET", "/system/consumers");
  await api("POST", "/aggregates/fern/events", { event_type: "plant.updated", payload: { height: 9 } });
  await api("POST", "/aggregates/ivy/events", { aggregate_type: "plant", event_type: "plant.created", payload: { name: "ivy", bed: "north", height: 3 } });
  await signIn();
  const q = encodeURIComponent(JSON.stringify([{ $match: { aggregate_type: "plant" } }, { $fold: {} }]));
  const rows = page.getByRole("region", { name: "Rows" });
  await go(`/pipelines?q=${q}`);
  await until(async () => (await rows.getByRole("row").count()) === 6);
  await api("POST", "/aggregates/fern/events", { event_type: "plant.updated", payload: { height: 10 } });
  await see(page.getByText("1 event was appended since this run."));
  await page.getByRole("button", { name: "Run again" }).click();
  await see(rows.getByRole("cell", { name: "10", exact: true }));
  await go(`/pipelines?q=${q}&at=@${head}`);
  await until(async () => (await rows.getByRole("row").count()) === 5);
  equal(await page.getByRole("button", { name: "Save…" }).isDisabled(), true);
  await go(`/pipelines?q=${q}&at=@${head}..now`);
  const differences = page.getByRole("region", { name: "What differs" });
  await see(differences.getByText("1 added"));
  await see(differences.getByText("1 changed"));
  await axe();
  await screenshot("pipeline-compared");
  // Another moment keeps stages that were not run.
  await go("/pipelines");
  await page.locator(".code-host:not([hidden])").first().waitFor();
  await stage(page, 1).click();
  await type(page, '{"$match": {"aggregate_type": "plant"}}');
  await lookAt(page, head);
  ok((await stage(page, 1).innerText()).includes('"plant"'), "the text stays");
  // The cards of a view follow the view to the moment.
  const plants = [{ $match: { aggregate_type: "plant" } }, { $fold: {} }];
  await api("POST", "/aggregates/view-plants/events", { aggregate_type: "view", event_type: "view.created", payload: { name: "Plants", pipeline: plants } });
  const { head: created } = await api("GET", "/system/consumers");
  await api("POST", "/aggregates/view-plants/events", { aggregate_type: "view", event_type: "view.updated", payload: { pipeline: [...plants, { $sort: { height: 1 } }] } });
  await go("/pipelines/view-plants");
  await see(card(page, 3));
  await lookAt(page, created);
  await gone(card(page, 3));
  await until(async () => (await rows.getByRole("row").count()) === 6);
});

story("large results stay windowed, as a table and as JSON", async ({ page, api, signIn, go, axe }) => {
  await signIn();
  const q = encodeURIComponent(JSON.stringify([{ $documents: Array.from({ length: 900 }, (_, index) => ({ index, big: "9007199254740993" })) }, { $addFields: { text: "<img src=x onerror=alert(1)>" } }]));
  await go("/");
  await page.evaluate((target) => { history.pushState(null, "", target); dispatchEvent(new PopStateEvent("popstate")); }, `/pipelines?q=${q}`);
  const rows = page.getByRole("region", { name: "Rows" });
  await see(rows.getByRole("row").nth(1));
  ok((await rows.getByRole("row").count()) < 60, "at most 60 rows are in the document");
  await rows.evaluate((box) => { box.scrollTop = box.scrollHeight; });
  await until(async () => (await page.getByRole("status").filter({ hasText: "400+" }).count()) === 1, "the next page is not loaded");
  await page.getByRole("tab", { name: "JSON" }).click();
  const json = page.getByRole("region", { name: "Rows as JSON" });
  await see(json.getByText('"index": 0'));
  ok((await json.getByRole("row").count()) < 80);
  await page.getByRole("button", { name: "As text" }).click();
  const text = page.getByRole("textbox", { name: "Pipeline" });
  await text.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText('[{"$documents": [{"a": 1}]}');
  await page.keyboard.press("Control+Enter");
  await see(page.getByRole("alert").filter({ hasText: "This is not JSON yet" }));
  await page.keyboard.insertText("]");
  await page.keyboard.press("Control+Enter");
  await see(page.getByRole("status").filter({ hasText: "1 row" }));
  await gone(page.getByRole("alert"));
  await axe();
});

story("what is written and not run stays on another screen, and rows of before say so", async ({ page, api, signIn, go }) => {
  await garden(api);
  const plants = [{ $match: { aggregate_type: "plant" } }, { $fold: {} }];
  await signIn();
  await go(`/pipelines?q=${encodeURIComponent(JSON.stringify(plants))}`);
  const rows = page.getByRole("region", { name: "Rows" });
  const isOfBefore = page.getByText("of the run before the last change", { exact: false });
  await until(async () => (await rows.getByRole("row").count()) === 5);
  await page.locator(".code-host:not([hidden])").first().waitFor();
  await stage(page, 2).click();
  await type(page, '{"$fold": {}, "half": }');
  await see(isOfBefore);
  await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Types", exact: true }).click();
  await see(page.getByRole("heading", { name: "Types", exact: true }));
  // Leaving the page from there asks as well.
  equal(await page.evaluate(() => dispatchEvent(new Event("beforeunload", { cancelable: true }))), false);
  await page.goBack();
  await page.locator(".code-host:not([hidden])").first().waitFor();
  ok((await stage(page, 2).innerText()).includes("half"), "the text is lost");
  await stage(page, 2).click();
  await type(page, '{"$fold": {}}');
  await page.keyboard.press("Control+Enter");
  await until(async () => (await rows.getByRole("row").count()) === 5);
  await gone(isOfBefore);
  // What is copied is what is written, also as text.
  await page.getByRole("button", { name: "As text" }).click();
  await page.locator(".code-host:not([hidden])").first().waitFor();
  await page.getByRole("textbox", { name: "Pipeline" }).click();
  await type(page, '[{"$match": {"aggregate_type": "task"}}, {"$fold": {}}]');
  await see(isOfBefore);
  const copy = page.getByRole("button", { name: "curl" });
  await copy.click();
  await until(() => copy.getAttribute("data-copied").then(Boolean));
  ok((await page.evaluate(() => navigator.clipboard.readText())).includes('"aggregate_type":"task"'));

  // A view that somebody else has saved meanwhile is saved with the second attempt.
  await api("POST", "/aggregates/view-plants/events", { aggregate_type: "view", event_type: "view.created", payload: { name: "Plants", pipeline: plants } });
  await go("/pipelines/view-plants");
  await until(async () => (await rows.getByRole("row").count()) === 5);
  await api("POST", "/aggregates/view-plants/events", { aggregate_type: "view", event_type: "view.updated", payload: { name: "Their plants" } });
  const save = page.getByRole("button", { name: "Save", exact: true });
  await save.click();
  await see(page.getByText("Somebody else has saved this view.", { exact: false }));
  await see(page.getByRole("heading", { name: "Their plants" }));
  await save.click();
  await see(page.getByText("Saved Their plants"));
}, { expected: [409] });
