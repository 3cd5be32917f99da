// Types: their aggregates, fields and events, and the history of their definitions.

import { equal, gone, see, story, until } from "../lib/story.mjs";

story("a type shows its aggregates, fields, events and the history of its definition", async ({ page, api, signIn, go, axe, screenshot, aria }) => {
  await api("POST", "/aggregates/define", { type_name: "receipt", display_name: "Receipt", fields: [{ name: "text", type: "string", required: true }] });
  await api("POST", "/aggregates/define", { type_name: "receipt", display_name: "Receipt", fields: [{ name: "text", type: "string", required: true }, { name: "total", type: "number" }] });
  for (let start = 0; start < 120; start += 60) {
    await api("POST", "/events", { events: Array.from({ length: 60 }, (_, index) => ({ aggregate_id: `r-${start + index}`, aggregate_type: "receipt", event_type: "receipt.created", payload: { text: `Receipt ${start + index}`, total: index } })) });
  }
  await signIn();
  await go("/types");
  await see(page.getByRole("link", { name: "Receipt" }));
  await axe();
  await screenshot("types");
  await page.getByLabel("Find").fill("rece");
  await see(page.getByText("1 type", { exact: true }));
  await page.getByRole("link", { name: "Receipt" }).click();
  await see(page.getByText("120 aggregates"));
  const table = page.getByRole("region", { name: "Aggregates of the type receipt" });
  equal((await table.getByRole("row").count()) <= 60, true);
  await axe();
  await screenshot("type");
  // A list of several pages stays where it is, and says what has changed.
  const rows = async () => Number(await table.getByRole("table").getAttribute("aria-rowcount")) - 1;
  await table.evaluate((box) => { box.scrollTop = box.scrollHeight; });
  await until(async () => (await rows()) === 120);
  await api("POST", "/aggregates/r-0/events", { event_type: "receipt.updated", payload: { text: "Receipt 0", total: 99 } });
  await see(page.getByText("1 change since this list was read."));
  // A read that fails is repeated, and does not pass the rows of before off as those of now.
  const failing = /\/aggregates\/query$/;
  await page.route(failing, (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: "the store is unavailable", code: "unavailable" }) }));
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await until(() => page.evaluate(() => document.activeElement?.id === "main"));
  const failure = page.getByRole("alert").filter({ hasText: "the store is unavailable" });
  await see(failure);
  await page.unroute(failing);
  await gone(failure);
  await gone(page.getByText("1 change since this list was read."));
  equal(await rows(), 120);
  await table.evaluate((box) => { box.scrollTop = 0; });
  await see(table.getByRole("cell", { name: "99", exact: true }));
  await page.getByRole("tab", { name: "Fields" }).click();
  await see(page.getByText("required"));
  await axe();
  await aria("fields", page.getByRole("table"));
  await page.getByRole("tab", { name: "Events" }).click();
  await see(page.getByRole("heading", { name: "receipt.created" }));
  await axe();
  await page.getByRole("tab", { name: "Definitions" }).click();
  await see(page.getByRole("heading", { name: "Definition 2" }));
  await see(page.getByText("field total"));
  await axe();
  await screenshot("definitions");
  await page.getByRole("button", { name: "New aggregate" }).click();
  const dialog = page.getByRole("dialog", { name: "New receipt" });
  await dialog.getByLabel(/^Id/).fill("new-one");
  await dialog.getByLabel(/^Payload/).fill('{"total": 3}');
  // Leaving the page asks before what is typed in a dialog is lost.
  equal(await page.evaluate(() => dispatchEvent(new Event("beforeunload", { cancelable: true }))), false);
  await dialog.getByRole("button", { name: "Create" }).click();
  await see(dialog.getByRole("alert"));
  await dialog.getByLabel(/^Payload/).fill('{"text": "New", "total": 3}');
  await dialog.getByRole("button", { name: "Create" }).click();
  await see(page.getByText("State at version 1"));
  equal((await api("GET", "/aggregates/new-one")).text, "New");
}, { expected: [400, 503] });
