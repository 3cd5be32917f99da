// Lists: filters, orders and columns that stand in the address, and the export of what is shown.

import { readFileSync } from "node:fs";
import { equal, gone, see, story, until } from "../lib/story.mjs";

/** Saves a list, and returns the text of the file. @param {import("playwright-core").Page} page @param {"CSV" | "NDJSON"} kind */
async function saved(page, kind) {
  const started = page.waitForEvent("download");
  await page.getByRole("group", { name: "Export" }).getByRole("button", { name: kind, exact: true }).click();
  return readFileSync(await (await started).path(), "utf8");
}

/** Returns the names in a list. @param {import("playwright-core").Page} page @param {string} list */
const names = (page, list) => page.getByRole("region", { name: list, exact: true }).locator("tbody tr:not([aria-hidden]) td:first-child").allInnerTexts();

story("the aggregates of a type are filtered, sorted and saved, and the address has it all", async ({ page, api, signIn, go, axe, screenshot, profile, server }) => {
  await api("POST", "/aggregates/define", { type_name: "invoice", display_name: "Invoice", fields: [{ name: "title", type: "string", label: true }, { name: "total", type: "number" }, { name: "status", type: "string" }] });
  for (const [index, [title, total, status]] of [["=Birch", 30, "open"], ["Aspen", 200, "open"], ["Cedar, \"old\"", 100, "paid"]].entries()) {
    await api("POST", `/aggregates/invoice-${index}/events`, { aggregate_type: "invoice", event_type: "invoice.created", payload: { title, total, status } });
  }
  await signIn();
  await go("/types/invoice");
  const list = "Aggregates of the type invoice";
  await until(async () => (await names(page, list)).length === 3);
  const region = page.getByRole("region", { name: list, exact: true });
  await region.getByRole("button", { name: "total" }).click();
  await until(async () => (await names(page, list)).join() === "=Birch,Cedar, \"old\",Aspen");
  equal(await region.getByRole("columnheader", { name: "total" }).getAttribute("aria-sort"), "ascending");
  await region.getByRole("button", { name: "total" }).click();
  await until(async () => (await names(page, list)).join() === "Aspen,Cedar, \"old\",=Birch");
  const filter = page.getByRole("form", { name: "Filter" });
  await filter.getByLabel("Field").selectOption("total");
  await filter.getByLabel("Comparison").selectOption("is at most");
  await filter.getByLabel("Value").fill("100");
  await filter.getByRole("button", { name: "Filter", exact: true }).click();
  await until(async () => (await names(page, list)).join() === "Cedar, \"old\",=Birch");
  await page.getByText("Columns", { exact: true }).click();
  await page.getByRole("checkbox", { name: "status" }).uncheck();
  await gone(region.getByRole("columnheader", { name: "status" }));
  await axe();
  await screenshot("states");
  await page.keyboard.press("Escape");
  const [first, second] = (await api("GET", "/aggregates?type=invoice")).data;
  equal([first, second].length, 2);
  // A text that a spreadsheet would compute begins with an apostrophe.
  const csv = (await saved(page, "CSV")).split("\r\n");
  equal(csv[0], "\uFEFF_id,title,total,_last_event_at");
  equal([csv[1].startsWith("invoice-2,\"Cedar, \"\"old\"\"\",100,"), csv[2].startsWith("invoice-0,'=Birch,30,"), csv.length], [true, true, 4]);
  const lines = (await saved(page, "NDJSON")).trim().split("\n").map((line) => JSON.parse(line));
  equal(lines.map(({ _id, title, total }) => [_id, title, total]), [["invoice-2", "Cedar, \"old\"", 100], ["invoice-0", "=Birch", 30]]);
  // Another browser shows the same, and Back leads through the steps.
  const address = page.url();
  const other = await profile();
  await signIn({ page: other });
  await other.goto(address);
  await until(async () => (await names(other, list)).join() === "Cedar, \"old\",=Birch");
  await gone(other.getByRole("columnheader", { name: "status" }));
  await page.goBack();
  await until(async () => (await names(page, list)).join() === "Aspen,Cedar, \"old\",=Birch");
  await page.goForward();
  await page.getByRole("button", { name: "Remove the filter total is at most 100" }).click();
  await until(async () => (await names(page, list)).length === 3);
  // The button is gone, and the keyboard goes on from the filter.
  equal(await page.evaluate(() => document.activeElement?.textContent), "Filter");
  equal(server.url.length > 0, true);
});

story("what cannot be filtered or sorted is refused by the server, beside the filters", async ({ page, api, signIn, go, axe }) => {
  await api("POST", "/aggregates/define", { type_name: "note", fields: [{ name: "title", type: "string", label: true }] });
  await api("POST", "/aggregates/note-1/events", { aggregate_type: "note", event_type: "note.created", payload: { title: "One" } });
  await signIn();
  await go("/types/note?where=$where~is~1");
  await see(page.getByRole("alert"));
  await axe();
  await page.getByRole("button", { name: "Remove the filter $where is 1" }).click();
  await see(page.getByRole("region", { name: "Aggregates of the type note" }).getByRole("link", { name: "One" }));
  // Parts that are no conditions and no columns are left out.
  await go("/types/note?where=%E0%A4%A;~~;title~no~1&columns=%25,&sort=-title");
  await see(page.getByRole("region", { name: "Aggregates of the type note" }).getByRole("link", { name: "One" }));
}, { expected: [400] });

story("projects, files, agents and articles are sorted and saved", async ({ page, api, signIn, go, axe, screenshot }) => {
  for (const name of ["Birch", "Aspen"]) await api("POST", "/projects", { name });
  for (const [name, text] of [["b.txt", "bb"], ["a.txt", "a"]]) await api("POST", "/files", { filename: name, data: Buffer.from(text).toString("base64") });
  for (const name of ["Writer", "Editor"]) await api("POST", "/agents", { name });
  for (const title of ["Pricing", "Guide"]) await api("POST", "/articles", { title });
  await signIn();
  for (const [path, list, column, first] of [["/projects", "Projects", "Project", "Aspen"], ["/files", "Files", "Size", "a.txt"], ["/agents", "Agents", "Agent", "Editor"]]) {
    await go(path);
    const region = page.getByRole("region", { name: list, exact: true });
    await region.getByRole("button", { name: column, exact: true }).click();
    await until(async () => (await names(page, list))[0] === first, `${path} is not sorted`);
    await axe();
    equal((await saved(page, "NDJSON")).trim().split("\n").length >= 2, true);
  }
  await screenshot("agents");
  await go("/articles?sort=title");
  await until(async () => (await page.getByRole("list", { name: "Articles" }).getByRole("link").allInnerTexts()).join() === "Guide,Pricing");
  equal((await saved(page, "CSV")).split("\r\n").slice(1, 3).map((line) => line.split(",")[1]), ["Guide", "Pricing"]);
}, { files: { "config.toml": "[plugins]\nenabled = []\n" } });
