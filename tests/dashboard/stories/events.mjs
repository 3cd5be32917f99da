// The log: live, paused and resumed without a gap, across a restart and in seven tabs; filters, periods and details.

import { equal, ok, see, story, until } from "../lib/story.mjs";

/** @param {any} api @param {number} from @param {number} to */
async function append(api, from, to) {
  for (let number = from; number <= to; number += 1) {
    await api("POST", `/aggregates/n${number % 5}/events`, { aggregate_type: "article", event_type: number <= 5 ? "article.created" : "article.updated", payload: { title: `Number ${number}`, number } });
  }
}

/** Returns the positions in the table, from the top. @param {import("playwright-core").Page} page */
const positions = async (page) => (await page.getByRole("region", { name: "Events, newest first" }).locator("td.number a").allInnerTexts()).map(Number);

/** Returns the position of the last event. The log begins with events of the plugins' agents. @param {any} api */
const head = async (api) => (await api("GET", "/system/consumers")).head;

/** Returns whether each position is one less than the position before. @param {number[]} found */
const areContiguous = (found) => found.every((position, index) => index === 0 || found[index - 1] === position + 1);

story("the log is live, pauses, resumes, and survives a restart without a gap", async ({ page, api, server, signIn, go, axe, screenshot }) => {
  const base = await head(api);
  await append(api, 1, 12);
  await signIn();
  await page.getByRole("link", { name: "Events", exact: true }).click();
  await until(async () => (await positions(page))[0] === base + 12);
  await until(async () => (await page.locator(".events .state").innerText()) === "live");
  await append(api, 13, 20);
  await until(async () => (await positions(page))[0] === base + 20);

  await page.keyboard.press("p");
  await see(page.getByText("paused", { exact: true }));
  await append(api, 21, 58);
  await see(page.getByText("+38 while paused"));
  equal((await positions(page))[0], base + 20);
  await page.keyboard.press("p");
  await until(async () => (await positions(page))[0] === base + 58);
  ok(areContiguous(await positions(page)), "positions have no gap after a pause");

  // A hidden tab closes its stream, and continues from its position when the tab is visible again.
  await append(api, 59, 61);
  await until(async () => (await positions(page))[0] === base + 61);
  await server.stop();
  await see(page.locator(".events .state.offline"));
  await server.start();
  await append(api, 62, 70);
  await until(async () => (await positions(page))[0] === base + 70);
  ok(areContiguous(await positions(page)), "positions have no gap after a restart");

  // The list continues down to the first event.
  const table = page.getByRole("region", { name: "Events, newest first" });
  ok((await table.locator("td.when").first().getAttribute("title"))?.includes(" UTC ("), "a time names its zone");
  await table.evaluate((box) => { box.scrollTop = box.scrollHeight; });
  await until(async () => (await positions(page)).at(-1) === 1);
  ok((await table.getByRole("row").count()) < 60, "at most 60 rows are in the document");
  await table.evaluate((box) => { box.scrollTop = 0; });

  await page.getByRole("button", { name: `Unfold event ${base + 70}` }).click();
  await see(page.getByRole("region", { name: `Event ${base + 70}` }).getByText("Number 70"));
  await page.getByRole("button", { name: "Unfold all" }).click();
  await see(page.getByRole("region", { name: `Event ${base + 68}` }));
  ok((await table.getByRole("row").count()) < 60);
  await axe();
  await screenshot("events");
}, { isKept: true, isOffline: true });

story("events are filtered, found at a position, chosen by period, and each has a page", async ({ page, api, signIn, go, axe, screenshot }) => {
  const base = await head(api);
  await append(api, 1, 30);
  await api("POST", "/agents", { name: "Writer", description: "Writes.", subscribed_traits: [], capabilities: {} });
  await signIn();
  await go("/events");
  await until(async () => (await positions(page))[0] === base + 31);
  await page.getByLabel("Event types").fill("article.c*");
  await page.keyboard.press("Enter");
  await until(async () => (await positions(page)).join() === [5, 4, 3, 2, 1].map((number) => base + number).join());
  await api("POST", "/aggregates/late/events", { aggregate_type: "article", event_type: "article.created", payload: { title: "Late" } });
  await until(async () => (await positions(page))[0] === base + 32);
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await until(async () => (await positions(page))[1] === base + 31);
  await page.getByLabel("Aggregate type").selectOption("agent");
  await until(async () => (await positions(page)).join() === [base + 31, ...Array.from({ length: base }, (_, index) => base - index)].join());
  await page.getByLabel("Aggregate type").selectOption("");
  await page.getByLabel("Start at").fill("soon");
  await page.keyboard.press("Enter");
  await see(page.getByRole("alert").getByText("This is neither a time nor a position."));
  await page.getByLabel("Start at").fill(String(base + 20));
  await page.keyboard.press("Enter");
  await until(async () => (await positions(page))[0] === base + 20);
  await page.getByRole("button", { name: "Back to live" }).click();
  await until(async () => (await positions(page))[0] === base + 32);

  // The person selects a period with the keyboard, and then with the pointer.
  const from = page.getByRole("slider", { name: "Period: from" });
  await from.focus();
  await page.keyboard.press("ArrowRight");
  await see(page.getByText("Chosen:"));
  await page.getByRole("button", { name: "Clear the period" }).click();
  await until(async () => (await positions(page))[0] === base + 32);
  await screenshot("events-filtered");

  // At a moment, the histogram counts the events up to it.
  await go(`/events?at=@${base + 31}`);
  await until(async () => (await positions(page))[0] === base + 31);
  await see(page.getByText(`${base + 31} events by the time at which they`));
  await go("/events");
  await until(async () => (await positions(page))[0] === base + 32);

  // The links lead to the aggregate at this version, and to the event with its consequences.
  const [event] = (await api("GET", `/events?after=${base + 19}&limit=1`)).data;
  await page.getByRole("link", { name: String(base + 20), exact: true }).click();
  await see(page.getByRole("heading", { name: "article.updated" }));
  await see(page.getByRole("link", { name: "n0" }));
  await axe();
  // What follows from the event is read when it is appended.
  await see(page.getByText("live", { exact: true }));
  const again = page.waitForRequest((request) => request.url().endsWith(`/events/${event.event_id}`));
  await api("POST", "/aggregates/n0/events", { event_type: "article.updated", payload: { title: "Follows" }, metadata: { caused_by: event.event_id } });
  await again;
  await go(`/events?start=@${base + 20}`);
  await page.getByRole("row").filter({ hasText: String(base + 20) }).getByRole("link", { name: event.aggregate_id }).first().click();
  await until(() => page.url().includes(`/a/${event.aggregate_id}?v=${event.version}`));
});

story("types are excluded, texts are found in ids, actors and payloads, and the histogram counts what passes", async ({ page, api, signIn, go, axe, screenshot }) => {
  const base = await head(api);
  await append(api, 1, 12);
  await api("POST", "/aggregates/odd/events", { aggregate_type: "article", event_type: "article.noted", payload: { title: "A (rare) Word", nested: { number: 3 }, list: ["x"] } });
  await signIn();
  await go("/events");
  await until(async () => (await positions(page))[0] === base + 13);
  await page.getByLabel("Except types").fill("article.updated, article.noted, agent.*");
  await page.keyboard.press("Enter");
  await until(async () => (await positions(page)).join() === [5, 4, 3, 2, 1].map((number) => base + number).join());
  await see(page.getByText("5 events by the time at which they"));
  // Events that are excluded do not appear while the list is live.
  await append(api, 13, 13);
  await api("POST", "/aggregates/new/events", { aggregate_type: "article", event_type: "article.created", payload: { title: "New" } });
  await until(async () => (await positions(page)).slice(0, 2).join() === [base + 15, base + 5].join());
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await until(async () => (await positions(page))[1] === base + 14);

  await page.getByLabel("Text").fill("(RARE) w");
  await page.keyboard.press("Enter");
  await until(async () => (await positions(page)).join() === String(base + 13));
  await see(page.getByText("1 events by the time at which they"));
  ok(page.url().includes("text="), page.url());
  await api("POST", "/aggregates/odd/events", { event_type: "article.updated", payload: { title: "another (rare) word" } });
  await until(async () => (await positions(page)).join() === [base + 16, base + 13].join());
  await axe();
  await screenshot("events-text");
  // A number is found as it is written, and an aggregate by a part of its id.
  await page.getByLabel("Text").fill("new");
  await page.keyboard.press("Enter");
  await until(async () => (await positions(page)).join() === String(base + 15));
  // The filter is a pipeline with the same events.
  await page.getByRole("link", { name: "as a pipeline" }).click();
  await see(page.getByRole("region", { name: "Rows" }).getByRole("cell", { name: "new", exact: true }));
  await page.goBack();
  await until(async () => (await positions(page)).join() === String(base + 15));
});

story("seven tabs of one browser all answer", async ({ page, api, tab, signIn, go }) => {
  const base = await head(api);
  await append(api, 1, 3);
  await signIn();
  await go("/events");
  const tabs = [page];
  while (tabs.length < 7) {
    const next = await tab();
    tabs.push(next);
    await go("/events", next);
    await see(next.getByRole("heading", { name: "Events", exact: true }));
    await see(next.getByRole("region", { name: "Events, newest first" }));
    await until(async () => (await positions(next)).length === base + 3);
  }
  await append(api, 4, 6);
  for (const next of tabs) {
    await next.bringToFront();
    await until(async () => (await positions(next))[0] === base + 6);
  }
});
