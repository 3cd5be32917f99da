// A broken plugin: the group of its parked steps, the script bench, the dry run, the replay, and the circuit.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { equal, gone, ok, see, story, until } from "../lib/story.mjs";

const MANIFEST = `name = "measure"
version = "1.0.0"
description = "Measures the words of notes."
hooks = ["enrich"]
on = { events = ["note.*"] }
`;
/** A script that divides by the number of words in line 4. */
const BROKEN = `// The mean length of the words of a note.
fn enrich(event, state, settings) {
    let words = word_count(state.text);
    #{ derived: #{ words: words, mean: state.text.len() / words } }
}
`;
const MENDED = BROKEN.replace("state.text.len() / words", "if words == 0 { 0 } else { state.text.len() / words }");
const CONFIG = '[plugins]\nenabled = ["measure"]\n';
const files = { "config.toml": CONFIG, "scripts/measure/plugin.toml": MANIFEST, "scripts/measure/plugin.rhai": BROKEN };

/** Creates notes. Some of the texts have no words. @param {any} api @param {string[]} texts */
async function notes(api, texts) {
  await api("POST", "/aggregates/define", { type_name: "note", fields: [{ name: "text", type: "string" }] });
  for (const [index, text] of texts.entries()) await api("POST", `/aggregates/n${index}/events`, { aggregate_type: "note", event_type: "note.created", payload: { text } });
}

story("a broken plugin is mended on the bench, dry-run and replayed", async ({ page, api, server, signIn, axe, screenshot }) => {
  await notes(api, ["one two", "", "three", "", "four five", ""]);
  await until(async () => (await api("GET", "/parked")).data.length === 3);
  await signIn();
  await see(page.getByRole("heading", { name: "3 parked steps" }));
  await screenshot("overview-parked");
  await page.getByRole("link", { name: "3 parked steps" }).click();
  const group = page.getByRole("region", { name: "measure · enrich · line 4" });
  await see(group.getByText("division by zero", { exact: false }));
  await see(group.getByText("3 steps", { exact: true }));
  await group.getByRole("button", { name: "Show the steps" }).click();
  await until(async () => (await group.getByRole("region", { name: "Steps" }).getByRole("row").count()) === 4);
  await axe();
  await screenshot("parked");
  await group.getByRole("button", { name: "Dry run" }).click();
  await see(group.getByText("3 of 3"));

  // The script bench opens at the failing line.
  await group.getByRole("link", { name: "Script bench, line 4" }).click();
  const script = page.getByRole("textbox", { name: "Script" });
  await see(script);
  // The editor replaces a plain field when it is loaded.
  await page.locator(".code-host:not([hidden])").first().waitFor();
  await see(page.getByText("Line 4: division by zero", { exact: false }));
  equal(await page.getByLabel("Over").locator("option:checked").innerText(), "3 parked steps: enrich, line 4, division by zero: 0 / 0");
  await axe();
  await script.focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText("fn enrich(event, state, settings) {\n  let x = ;\n}");
  await page.keyboard.press("Control+Enter");
  await see(page.getByText(/^✗ Line 2: /));
  // The editor selects the line of the error after the screen is painted.
  await page.evaluate(async () => { for (let frame = 0; frame < 5; frame += 1) await new Promise(requestAnimationFrame); });
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(MENDED);
  await page.keyboard.press("Control+Enter");
  await see(page.getByRole("status").filter({ hasText: "3 mended" }));
  await page.getByRole("button", { name: /^Show the difference at/ }).first().click();
  await see(page.getByRole("dialog").getByText("mean"));
  await page.keyboard.press("Escape");
  await page.getByLabel("Over").selectOption("last");
  await page.getByRole("button", { name: "Dry run" }).click();
  await see(page.getByRole("status").filter({ hasText: "3 mended, 3 the same" }));
  await screenshot("bench");
  // A script that is changed here stays on another screen.
  await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Types", exact: true }).click();
  await see(page.getByRole("heading", { name: "Types", exact: true }));
  equal(await page.evaluate(() => dispatchEvent(new Event("beforeunload", { cancelable: true }))), false);
  await page.goBack();
  await see(page.getByRole("tab", { name: "plugin.rhai (changed)" }));
  await page.getByText("What was changed").click();
  const copy = page.getByRole("button", { name: "copy the script" });
  await copy.click();
  await until(() => copy.getAttribute("data-copied").then(Boolean));
  equal(await page.evaluate(() => navigator.clipboard.readText()), MENDED);
  equal((await api("GET", "/parked")).data.length, 3);

  // A reload of invalid files shows the line of the error. A reload of valid files loads them.
  writeFileSync(join(server.folder, "scripts/measure/plugin.rhai"), "fn enrich(event, state, settings) {\n  let x = ;\n}");
  await page.getByRole("link", { name: "measure", exact: true }).click();
  await see(page.getByRole("heading", { name: "measure", exact: true }));
  await page.getByRole("button", { name: "Reload" }).click();
  await see(page.getByRole("link", { name: "Open line 2 in the bench" }));
  writeFileSync(join(server.folder, "scripts/measure/plugin.rhai"), MENDED);
  await page.getByRole("button", { name: "Reload" }).click();
  await see(page.getByText(/^measure 1\.0\.0 processes events from position/));
  await axe();
  await screenshot("plugin");

  // The confirmation shows the number of steps. The replay is rejected if the number has changed.
  await page.getByRole("button", { name: "Replay 3…" }).click();
  await see(page.getByRole("heading", { name: "Replay 3 steps?" }));
  await page.getByRole("button", { name: "Replay 3 steps" }).click();
  await see(page.getByText("3 replayed"));
  await until(async () => (await api("GET", "/parked")).data.length === 0);
  await see(page.getByText("No step of this plugin is parked."));
  equal((await api("GET", "/aggregates/n1"))._facts?.measure?.words, 0);
  await page.getByRole("button", { name: "Replay…" }).click();
  await see(page.getByRole("dialog").getByText("The plugin is called for 6 events."));
  await page.getByRole("button", { name: "Replay 6 events" }).click();
  await see(page.getByText(/^6 events replayed/));
}, { files, expected: [{ status: 400, path: /dry-run/ }, { status: 409, path: /reload/ }] });

story("a parked step's event is edited and appended again, and the step is given up", async ({ page, api, signIn, go, axe, screenshot }) => {
  await notes(api, ["one two", ""]);
  await until(async () => (await api("GET", "/parked")).data.length === 1);
  await signIn();
  await go("/parked");
  const group = page.getByRole("region", { name: "measure · enrich · line 4" });
  await group.getByRole("button", { name: "Show the steps" }).click();
  const [step] = (await api("GET", "/parked")).data;
  await group.getByRole("button", { name: `Edit the event at ${step.position} and append it again` }).click();
  const dialog = page.getByRole("dialog", { name: "Append again, edited" });
  const payload = dialog.getByLabel(/Payload/);
  equal(JSON.parse(await payload.inputValue()), { text: "" });
  equal(await dialog.getByLabel("Event type").inputValue(), "note.created");
  await axe();
  await screenshot("append-again");
  // What is typed stays while another step is parked beneath the dialog.
  await payload.fill('{"text": "half written"}');
  await api("POST", "/aggregates/n2/events", { aggregate_type: "note", event_type: "note.created", payload: { text: "" } });
  await see(page.getByText("2 steps", { exact: true }));
  equal(await payload.inputValue(), '{"text": "half written"}');
  const other = (await api("GET", "/parked")).data.find((/** @type {any} */ known) => known.id !== step.id);
  await api("DELETE", `/parked/${encodeURIComponent(other.id)}`);
  await dialog.getByLabel("Event type").fill("note.updated");
  await payload.fill('{"text": "mended by hand"}');
  await dialog.getByRole("button", { name: "Append after version 1" }).click();
  await gone(dialog);
  await see(page.getByText("No step is parked."));
  equal((await api("GET", "/aggregates/n1"))._facts?.measure?.words, 3);
  // What is typed also stays when the whole group is gone.
  await api("POST", "/aggregates/n3/events", { aggregate_type: "note", event_type: "note.created", payload: { text: "" } });
  await group.getByRole("button", { name: "Show the steps" }).click();
  await group.getByRole("button", { name: /^Edit the event at/ }).click();
  await payload.fill('{"text": "too late"}');
  const [last] = (await api("GET", "/parked")).data;
  await api("DELETE", `/parked/${encodeURIComponent(last.id)}`);
  await api("POST", "/aggregates/n4/events", { aggregate_type: "note", event_type: "note.created", payload: { text: "four" } });
  await see(page.getByText("No step is parked."));
  equal(await payload.inputValue(), '{"text": "too late"}');
  // The page of a plugin is live.
  await go("/plugins/measure");
  await see(page.getByText("No step of this plugin is parked."));
  await see(page.getByText("live", { exact: true }));
  await api("POST", "/aggregates/n5/events", { aggregate_type: "note", event_type: "note.created", payload: { text: "" } });
  await until(async () => (await api("GET", "/parked")).data.length === 1);
  await api("POST", "/aggregates/n6/events", { aggregate_type: "note", event_type: "note.created", payload: { text: "six" } });
  await see(group.getByText("1 step", { exact: true }));
  // The edited event names the first one as its cause.
  const [edited] = (await api("GET", "/aggregates/n1/events?direction=desc&limit=1")).data;
  await go(`/events/${encodeURIComponent(edited.event_id)}`);
  await page.getByRole("link", { name: step.event_id }).click();
  await see(page.getByRole("heading", { name: "note.created" }));
}, { files });

story("steps that are retried later say when, and a worker's replay counts tasks", async ({ page, api, signIn, go, axe, screenshot }) => {
  await notes(api, ["one two", ""]);
  await until(async () => (await api("GET", "/parked")).data.length === 1);
  const [step] = (await api("GET", "/parked")).data;
  ok(step.retry_at, "the step is retried");
  await signIn();
  await go("/parked");
  const group = page.getByRole("region", { name: "measure · enrich · line 4" });
  await see(group.getByText("next retry", { exact: false }));
  await group.getByRole("button", { name: "Show the steps" }).click();
  await see(group.getByRole("columnheader", { name: "Next retry" }));
  await axe();
  await screenshot("parked-retry");
  const agent = (await api("GET", "/agents")).data.find((/** @type {any} */ known) => known.plugin === "structured_data" || /structured/i.test(known.name));
  ok(agent, "the plugin has an agent");
  await go("/plugins/structured_data");
  await page.getByRole("button", { name: "Replay…" }).click();
  await see(page.getByRole("dialog").getByText("The plugin is called for 0 tasks."));
  ok(await page.getByRole("dialog").getByRole("button", { name: "Replay 0 tasks" }).isDisabled());
}, { files: { ...files, "config.toml": '[plugins]\nenabled = ["measure", "structured_data"]\n', "scripts/measure/plugin.toml": `${MANIFEST}on_error = "retry"\n` } });

story("an open circuit is closed, and another number of steps stops a replay", async ({ page, api, signIn, go, screenshot }) => {
  await notes(api, ["", "", "", "", "", ""]);
  await until(async () => (await api("GET", "/plugins/measure")).status === "stopped");
  await signIn();
  await see(page.getByRole("heading", { name: "1 plugin is stopped" }));
  await go("/parked?plugin=measure");
  const group = page.getByRole("region", { name: "measure · enrich · line 4" });
  await group.getByRole("button", { name: /^Give up \d…$/ }).click();
  const dialog = page.getByRole("dialog");
  const [first] = (await api("GET", "/parked")).data;
  await api("DELETE", `/parked/${encodeURIComponent(first.id)}`);
  await dialog.getByRole("button", { name: /^Give up/ }).click();
  await see(page.getByText("The number of steps has changed meanwhile. Nothing was done."));
  ok((await api("GET", "/parked")).data.length > 0);

  await go("/plugins/measure");
  await see(page.getByText("The circuit is open", { exact: false }));
  await screenshot("plugin-stopped");
  await page.getByRole("button", { name: "Resume" }).click();
  await until(async () => (await api("GET", "/plugins/measure")).status === "running");
  await gone(page.getByText("The circuit is open", { exact: false }));
}, { files, expected: [{ status: 409, path: /parked/ }] });
