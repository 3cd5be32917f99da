// Makes the pictures of the documentation, light and dark, with tasks and pipelines as a small shop could have them.

import { statSync } from "node:fs";
import { join } from "node:path";
import { browser, closeBrowser } from "./lib/browser.mjs";
import { startServer } from "./lib/server.mjs";
import { caller, see, until } from "./lib/story.mjs";

const FOLDER = process.argv[2] ?? ".";
const SIZE = { width: 1280, height: 720 };
/** The largest picture, in bytes. */
const MOST = 200_000;
const CUSTOMERS = ["Birch & Sons", "Café Lumen", "Harbour Books", "North Atelier"];

/** @typedef {ReturnType<typeof caller>} Api */

/** Creates invoices, and tasks about them in every status that waits for people. @param {Api} api */
async function fill(api) {
  await api("POST", "/aggregates/define", { type_name: "invoice", display_name: "Invoice", fields: [{ name: "title", type: "string", label: true }, { name: "customer", type: "string" }, { name: "status", type: "string" }, { name: "total", type: "decimal" }, { name: "note", type: "string" }] });
  for (let index = 0; index < 24; index += 1) {
    const customer = CUSTOMERS[(index * 5) % CUSTOMERS.length];
    const at = (/** @type {number} */ day) => new Date(Date.UTC(2026, 8, 1 + index + day)).toISOString();
    await api("POST", `/aggregates/invoice-${index + 1}/events`, { aggregate_type: "invoice", event_type: "invoice.created", occurred_at: at(0), payload: { title: `Invoice ${index + 1}`, customer, status: "open", total: 120 + ((index * 137) % 900), note: "Payable within 30 days." } });
    if (index % 3 === 0) await api("POST", `/aggregates/invoice-${index + 1}/events`, { event_type: "invoice.updated", aggregate_type: "invoice", occurred_at: at(20), payload: { status: "paid" } });
  }
  const agent = await api("POST", "/agents", { name: "Bookkeeper" });
  const { key } = await api("POST", "/keys", { name: "bookkeeper", scopes: ["api:read", "api:write"], agent_ids: [agent.id] });
  /** @param {string} title @param {number} invoice @param {string} priority @param {(work: (operation: string, body: object) => Promise<any>) => Promise<any>} deliver */
  const task = async (title, invoice, priority, deliver) => {
    const made = await api("POST", "/mailbox", { title, priority, assignee_type: "agent", assignee_id: agent.id, source: { aggregate_id: `invoice-${invoice}` } });
    const work = (/** @type {string} */ operation, /** @type {object} */ body) => api("POST", `/mailbox/${made.id}/${operation}`, { agent_id: agent.id, ...body }, { key });
    await work("claim", {});
    await deliver(work);
    return made.id;
  };
  /** @param {string} text @param {object} payload */
  const proposal = (text, payload) => (/** @type {any} */ work) => work("complete", { artifact: { name: "proposal", text, effect: { event_type: "invoice.updated", payload } }, message: "The bank statement of Monday has the payment." });
  await task("Write off the rounding difference", 7, "low", proposal("Write off 0.01.", { status: "paid" }));
  await task("Ask for the delivery date", 9, "normal", (work) => work("request-input", { message: "Which date did the customer confirm?", schema: { type: "string" } }));
  await task("Send a reminder to Café Lumen", 2, "high", proposal("Dear Café Lumen, invoice 2 is due since Friday.", { note: "Reminded on 23 November." }));
  await task("Match the payment of North Atelier", 4, "normal", (work) => work("fail", { error: "Two payments have this reference.", retryable: false }));
  await task("Correct the address of Harbour Books", 3, "normal", proposal("Quay 4, 2nd floor", { note: "Payable within 30 days. Deliver to Quay 4, 2nd floor." }));
  return task("Mark invoice 5 as paid", 5, "urgent", proposal("Paid by transfer on 23 November.", { status: "paid", note: "Paid by transfer on 23 November. The reminder is void." }));
}

const server = await startServer();
try {
  const api = caller(server.url, server.key);
  const opened = await fill(api);
  const pipeline = [{ $match: { aggregate_type: "invoice" } }, { $fold: {} }, { $group: { _id: "$customer", invoices: { $sum: 1 }, open: { $sum: { $cond: [{ $eq: ["$status", "open"] }, "$total", 0] } } } }];
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    const context = await (await browser()).newContext({ viewport: SIZE, colorScheme, locale: "en-GB", timezoneId: "UTC" });
    const page = await context.newPage();
    await page.goto(server.url);
    await page.getByLabel("API key").fill(server.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await see(page.getByRole("navigation", { name: "Screens" }));
    const picture = async (/** @type {string} */ name) => {
      await page.mouse.move(0, 0);
      const path = join(FOLDER, `dashboard-${name}${colorScheme === "dark" ? "-dark" : ""}.png`);
      await page.screenshot({ path, animations: "disabled" });
      const { size } = statSync(path);
      if (size > MOST) throw new Error(`${path} has ${size} bytes, more than ${MOST}`);
      console.log(`${path}: ${size} bytes`);
    };
    await page.goto(`${server.url}/inbox/${opened}?tab=diff`);
    await see(page.getByRole("tabpanel").locator("ins"));
    await see(page.getByRole("button", { name: "Mark as unread" }));
    await see(page.getByRole("link", { name: /^Inbox \d+ waiting/ }));
    await picture("inbox");
    // The same pipeline at an earlier moment, beside now.
    await page.goto(`${server.url}/pipelines?q=${encodeURIComponent(JSON.stringify(pipeline))}&at=2026-09-20T00:00:00.000Z..`);
    const compare = page.getByRole("region", { name: "What differs" }).getByRole("button", { name: "Compare" }).first();
    await see(compare);
    await until(async () => (await page.locator(".cm-content").count()) === pipeline.length);
    await compare.click();
    await page.getByRole("main").evaluate((main) => { main.scrollTop = main.scrollHeight; });
    await picture("pipeline");
    await context.close();
  }
} finally {
  await server.remove();
  await closeBrowser();
}
