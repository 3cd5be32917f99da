// What becomes of the rows of a pipeline: charts, files, and programs that run the pipeline elsewhere.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { equal, ok, see, story, until } from "../lib/story.mjs";

/** @param {any[]} pipeline */
const address = (pipeline) => `/pipelines?q=${encodeURIComponent(JSON.stringify(pipeline))}`;

/** Creates sales of three shops, one a day. @param {any} api */
async function sales(api) {
  await api("POST", "/aggregates/define", { type_name: "sale", fields: [{ name: "shop", type: "string" }, { name: "amount", type: "decimal" }, { name: "on", type: "string" }] });
  for (let day = 1; day <= 9; day += 1) {
    await api("POST", `/aggregates/sale-${day}/events`, { aggregate_type: "sale", event_type: "sale.created", payload: { shop: ["North", "South", "Quay"][day % 3], amount: day * 10, on: `2026-01-0${day}` } });
  }
}

const SALES = [{ $match: { aggregate_type: "sale" } }, { $fold: {} }];

/** Presses a button that saves a file, and returns its name and its text. @param {import("playwright-core").Page} page @param {string} name */
async function saved(page, name) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("group", { name: "Export" }).getByRole("button", { name, exact: true }).click()]);
  return { name: download.suggestedFilename(), text: readFileSync(String(await download.path()), "utf8") };
}

story("groups with a number are charts: bars, and lines over dates", async ({ page, api, signIn, go, axe, screenshot }) => {
  await sales(api);
  await signIn();
  await go(address([...SALES, { $group: { _id: "$shop", sales: { $sum: 1 }, total: { $sum: "$amount" } } }, { $sort: { _id: 1 } }]));
  await page.getByRole("tab", { name: "Chart" }).focus();
  await page.keyboard.press("Enter");
  await until(() => page.url().includes("as=chart"));
  const bars = page.getByRole("list", { name: "sales, 3 bars" });
  equal(await bars.getByRole("listitem").allInnerTexts().then((texts) => texts.map((text) => text.replace(/\s+/g, " ").trim())), ["North 3", "Quay 3", "South 3"]);
  await page.getByLabel("Number").selectOption("total");
  const totals = page.getByRole("list", { name: "total, 3 bars" });
  await see(totals.getByText("180"));
  const widths = await totals.locator("i").evaluateAll((all) => all.map((bar) => Math.round(bar.getBoundingClientRect().width)));
  ok(widths[0] > widths[1] && widths[1] > widths[2] && widths[2] > 0, `the bars are ${widths} wide`);
  await axe();
  await totals.scrollIntoViewIfNeeded();
  await screenshot("chart-bars");
  // The link shows the same chart.
  await page.reload();
  await see(page.getByRole("list", { name: "total, 3 bars" }));

  await go(`${address([...SALES, { $group: { _id: "$on", total: { $sum: "$amount" } } }, { $sort: { _id: 1 } }])}&as=chart`);
  const line = page.getByRole("img", { name: "total from 2026-01-01 to 2026-01-09: 9 points between 10 and 90" });
  await see(line);
  equal((await line.locator("polyline").getAttribute("points"))?.split(" ").length, 9);
  await axe();
  await line.scrollIntoViewIfNeeded();
  await screenshot("chart-line");
  // A number that a double cannot hold keeps its digits.
  await go(`${address([{ $documents: [{ name: "one" }] }, { $addFields: { big: { $numberLong: "9007199254740993" } } }])}&as=chart`);
  await see(page.getByRole("list", { name: "big, 1 bars" }).getByText("9007199254740993"));
  // Rows without a number have no chart.
  await go(address([...SALES, { $project: { _id: 0, shop: 1 } }]));
  await see(page.getByRole("region", { name: "Rows" }).getByText("Quay").first());
  equal(await page.getByRole("tab", { name: "Chart" }).count(), 0);
});

story("all rows are exported as CSV and as NDJSON, also of the past and of the log", async ({ page, api, signIn, go }) => {
  await sales(api);
  const { head } = await api("GET", "/system/consumers");
  await api("POST", "/aggregates/sale-1/events", { event_type: "sale.updated", payload: { shop: '=1+1, "x"' } });
  await signIn();
  await go(address([{ $documents: Array.from({ length: 450 }, (_, index) => ({ index })) }, { $addFields: { twice: { $multiply: ["$index", 2] } } }]));
  await see(page.getByRole("status").filter({ hasText: "200+ rows" }));
  const all = await saved(page, "NDJSON");
  equal(all.name, "rows.ndjson");
  equal(all.text.trimEnd().split("\n").map((line) => JSON.parse(line).twice), Array.from({ length: 450 }, (_, index) => index * 2));

  const rows = [...SALES, { $match: { _id: "sale-1" } }, { $project: { shop: 1, amount: 1, more: { list: ["$on", 2] } } }];
  await go(address(rows));
  await see(page.getByRole("region", { name: "Rows" }).getByText("=1+1", { exact: false }));
  // A spreadsheet must not compute what somebody else wrote.
  equal((await saved(page, "CSV")).text, '\uFEFF_id,shop,amount,more\r\nsale-1,"\'=1+1, ""x""",10,"{""list"":[""2026-01-01"",2]}"\r\n');
  await go(`${address(rows)}&at=@${head}`);
  await see(page.getByRole("region", { name: "Rows" }).getByText("South"));
  equal((await saved(page, "CSV")).text.split("\r\n")[1].split(",").slice(0, 2), ["sale-1", "South"]);

  await go("/events?types=sale.updated");
  await see(page.getByRole("region", { name: "Events, newest first" }).getByText("sale.updated"));
  const events = await saved(page, "NDJSON");
  equal([events.name, events.text.trimEnd().split("\n").map((line) => JSON.parse(line).event_type)], ["events.ndjson", ["sale.updated"]]);
  // An export also has the events that nobody has scrolled to.
  for (let start = 0; start < 120; start += 60) {
    await api("POST", "/events", { events: Array.from({ length: 60 }, (_, index) => ({ aggregate_id: `more-${start + index}`, aggregate_type: "sale", event_type: "sale.created", payload: { shop: "North", amount: 1, on: "2026-01-10" } })) });
  }
  await go("/events?types=sale.created");
  await see(page.getByRole("region", { name: "Events, newest first" }).getByText("sale.created"));
  const positions = (await saved(page, "NDJSON")).text.trimEnd().split("\n").map((line) => JSON.parse(line).position);
  equal([positions.length, new Set(positions).size], [129, 129]);
});

story("a pipeline is copied as a program in two languages, and both return its rows", async ({ page, api, server, signIn, go, axe, screenshot }) => {
  await sales(api);
  await signIn();
  await go(address([...SALES, { $match: { shop: { $in: ["Quay", 'a "quoted" \\ name'] }, deleted: { $ne: true }, missing: null } }, { $addFields: { big: { $numberLong: "9007199254740993" } } }, { $project: { amount: 1, big: 1 } }, { $sort: { amount: 1 } }]));
  await see(page.getByRole("region", { name: "Rows" }).getByText("sale-8"));
  await page.getByRole("button", { name: "code", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "The pipeline as a program" });
  await see(dialog.getByRole("region", { name: "Python" }));
  await axe();
  await screenshot("code");
  const env = { ...process.env, no_proxy: "*", FOLDWORK_TOKEN: server.key };
  for (const [language, file, program, more] of [["TypeScript", "rows.mjs", process.execPath, []], ["Python", "rows.py", "python3", []]]) {
    const copy = dialog.getByRole("button", { name: `copy ${language}` });
    await copy.click();
    await until(() => copy.getAttribute("data-copied").then(Boolean));
    const path = join(server.folder, String(file));
    writeFileSync(path, await page.evaluate(() => navigator.clipboard.readText()));
    const printed = execFileSync(String(program), [...more, path], { env }).toString();
    equal(printed.trim().split("\n").map((line) => JSON.parse(line)._id), ["sale-2", "sale-5", "sale-8"], String(language));
    ok(printed.includes("9007199254740993") || language === "TypeScript", printed);
  }
});
