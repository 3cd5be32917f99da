// The measurements of tests/bench/dashboard: the times that the dashboard takes. Goals are printed, but not asserted.

import { parseArgs } from "node:util";
import { browser, closeBrowser } from "./lib/browser.mjs";
import { startServer } from "./lib/server.mjs";
import { caller } from "./lib/story.mjs";

const { values } = parseArgs({ options: {
  rounds: { type: "string", default: "9" }, tasks: { type: "string", default: "100000" }, states: { type: "string", default: "200000" },
  events: { type: "string", default: "10000" }, seconds: { type: "string", default: "60" }, nodes: { type: "string", default: "400" }, only: { type: "string" },
} });
const [ROUNDS, TASKS, STATES, EVENTS, SECONDS, NODES] = [values.rounds, values.tasks, values.states, values.events, values.seconds, values.nodes].map(Number);
const BATCH = 500;
const CONNECTIONS = 16;
const KEYS = 60;
const FRAMES = 240;
const RATE = 1_000;
/** The number of aggregates that the events of the moved moment change. */
const READINGS = 50;

/** @type {string[][]} */
const table = [];
const median = (/** @type {number[]} */ all) => all.toSorted((one, other) => one - other)[Math.floor(all.length / 2)] ?? NaN;
const p95 = (/** @type {number[]} */ all) => all.toSorted((one, other) => one - other)[Math.floor(all.length * 0.95)] ?? NaN;
const ms = (/** @type {number} */ time) => `${time < 10 ? time.toFixed(1) : Math.round(time)} ms`;

/** @param {string} what @param {string} goal @param {string} found */
function row(what, goal, found) {
  table.push([what, goal, found]);
  console.error(`${what}: ${found}${goal && ` (goal ${goal})`}`);
}

/** Performs an action many times, on several connections. @param {number} count @param {(index: number) => Promise<any>} act */
async function many(count, act) {
  let next = 0;
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => { while (next < count) await act(next++); }));
}

/** Runs a measurement with a server, the API, and a page that is signed in. @param {(tools: {page: import("playwright-core").Page, api: ReturnType<typeof caller>, url: string, session: import("playwright-core").CDPSession}) => Promise<void>} measure */
async function part(measure) {
  const server = await startServer();
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(120_000);
  try {
    const page = await context.newPage();
    const api = caller(server.url, server.key);
    await page.goto(`${server.url}/`);
    await page.getByLabel("API key").fill(server.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Screens" }).waitFor();
    await measure({ page, api, url: server.url, session: await context.newCDPSession(page) });
  } finally {
    await context.close();
    await server.remove();
  }
}

/** Shows an address within the application, and returns the time until the main part contains a text. @param {import("playwright-core").Page} page @param {string} path @param {string} wanted the text that the main part has then */
const timed = (page, path, wanted) => page.evaluate(async ([target, text]) => {
  const begin = performance.now();
  history.pushState(null, "", target);
  window.dispatchEvent(new PopStateEvent("popstate"));
  const main = /** @type {HTMLElement} */ (document.querySelector("main"));
  while (!main.innerText.includes(text)) await new Promise((next) => { requestAnimationFrame(next); });
  return performance.now() - begin;
}, [path, wanted]);

/** Appends events of a type in batches. @param {ReturnType<typeof caller>} api @param {number} count @param {(index: number) => any} event */
const append = (api, count, event) => many(Math.ceil(count / BATCH), (batch) => api("POST", "/events", {
  events: Array.from({ length: Math.min(BATCH, count - batch * BATCH) }, (_, offset) => event(batch * BATCH + offset)),
}));

const define = (/** @type {ReturnType<typeof caller>} */ api) => api("POST", "/aggregates/define", {
  type_name: "reading", fields: [{ name: "title", type: "string", label: true }, { name: "value", type: "number" }, { name: "place", type: "string" }],
});
const reading = (/** @type {number} */ index) => ({ aggregate_id: `reading-${index}`, aggregate_type: "reading", event_type: "reading.created", payload: { title: `Reading ${index}`, value: index % 97, place: `place-${index % 13}` } });

/** The measurements by name. @type {Record<string, () => Promise<void>>} */
const PARTS = {
  /** Measures a cold load: the cache is empty, and the page is signed in. */
  start: () => part(async ({ page, url }) => {
    const stored = await page.evaluate(() => sessionStorage.getItem("foldwork.session"));
    /** @type {number[]} */
    const times = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 } });
      await context.addInitScript((session) => sessionStorage.setItem("foldwork.session", session ?? ""), stored);
      const cold = await context.newPage();
      await cold.goto(`${url}/`);
      await cold.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
      times.push(await cold.evaluate(() => new Promise((done) => {
        new PerformanceObserver((list) => done(list.getEntries().at(-1)?.startTime ?? 0)).observe({ type: "largest-contentful-paint", buffered: true });
      })));
      await context.close();
    }
    row("LCP of a cold Overview", "≤ 400 ms", ms(median(times)));
  }),

  inbox: () => part(async ({ page, api, url }) => {
    await many(TASKS, (index) => api("POST", "/mailbox", { title: `Task ${index}` }));
    const title = `${TASKS.toLocaleString("en")} tasks`;
    const first = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      // Loads the application on a screen that does not show the list.
      await page.goto(`${url}/settings/appearance`);
      await page.getByText("Single letters").waitFor();
      first.push(await timed(page, "/inbox", "Task "));
    }
    row(`${title}: first render`, "≤ 100 ms", ms(median(first)));
    const frames = await page.evaluate(async (count) => {
      const list = /** @type {HTMLElement} */ (document.querySelector("main .window"));
      /** @type {number[]} */
      const found = [];
      let before = performance.now();
      for (let frame = 0; frame < count; frame += 1) {
        list.scrollTop += 180;
        await new Promise((next) => { requestAnimationFrame(next); });
        const now = performance.now();
        found.push(now - before);
        before = now;
      }
      return found;
    }, FRAMES);
    row(`${title}: frame while scrolling, p95`, "≤ 34 ms", ms(p95(frames)));
    await page.evaluate(() => { /** @type {any} */ (document.querySelector("main .window")).scrollTop = 0; });
    await page.keyboard.press("j");
    row(`${title}: j, p95`, "≤ 50 ms", ms(p95(await pressed(page, "j", KEYS))));
    const approved = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      approved.push(await page.evaluate(async () => {
        const chosen = /** @type {HTMLElement} */ (document.querySelector("main .window [aria-current]"));
        const { href } = /** @type {HTMLAnchorElement} */ (chosen);
        const begin = performance.now();
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true, cancelable: true }));
        while ([...document.querySelectorAll("main .window a")].some((link) => /** @type {HTMLAnchorElement} */ (link).href === href)) await new Promise((next) => { requestAnimationFrame(next); });
        return performance.now() - begin;
      }));
      await page.locator("main .window [aria-current]").waitFor();
      await page.getByRole("heading", { name: /^Task/ }).first().waitFor();
    }
    row("approve → row gone, p95", "≤ 100 ms", ms(p95(approved)));
  }),

  stream: () => part(async ({ page, api, url, session }) => {
    await define(api);
    await page.goto(`${url}/events`);
    await page.getByRole("navigation", { name: "Screens" }).getByText("live").waitFor();
    await page.evaluate(() => {
      const longest = { ms: 0 };
      Object.assign(window, { longest });
      new PerformanceObserver((list) => { for (const entry of list.getEntries()) longest.ms = Math.max(longest.ms, entry.duration); }).observe({ type: "longtask" });
    });
    const heap = async () => { await session.send("HeapProfiler.collectGarbage"); return (await session.send("Runtime.getHeapUsage")).usedSize; };
    const before = await heap();
    const begin = Date.now();
    let sent = 0;
    while (Date.now() - begin < SECONDS * 1_000) {
      const due = Math.floor(((Date.now() - begin) / 1_000) * RATE) - sent;
      if (due >= 50) { const from = sent; sent += due; await api("POST", "/events", { events: Array.from({ length: Math.min(due, BATCH) }, (_, offset) => reading(from + offset)) }); sent = from + Math.min(due, BATCH); }
      else await new Promise((next) => { setTimeout(next, 10); });
    }
    const rate = sent / ((Date.now() - begin) / 1_000);
    const { head } = await api("GET", "/system/consumers");
    const end = Date.now();
    await page.getByText(String(head), { exact: true }).first().waitFor();
    row(`${Math.round(rate)} events/s for ${SECONDS} s: last one shown after`, "at once", ms(Date.now() - end));
    row(`${Math.round(rate)} events/s for ${SECONDS} s: longest task`, "≤ 200 ms", ms(await page.evaluate(() => /** @type {any} */ (window).longest.ms)));
    row(`${Math.round(rate)} events/s for ${SECONDS} s: heap`, "≤ +50 MB", `${((await heap() - before) / 1e6).toFixed(1)} MB`);
  }),

  pipeline: () => part(async ({ page, api, url }) => {
    await define(api);
    await append(api, STATES, reading);
    const pipeline = [{ $match: { aggregate_type: "reading" } }, { $fold: {} }, { $group: { _id: "$place", readings: { $sum: 1 }, mean: { $avg: "$value" } } }, { $sort: { _id: 1 } }];
    await page.goto(`${url}/pipelines?q=${encodeURIComponent(JSON.stringify(pipeline))}`);
    await page.getByRole("region", { name: "Results" }).getByText("place-12").waitFor();
    const times = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const answered = page.waitForResponse(/\/aggregates\/query$/);
      await page.getByRole("button", { name: "Run" }).click();
      const request = (await answered).request();
      await (await answered).finished();
      times.push(request.timing().responseEnd - request.timing().requestStart);
      await page.getByRole("region", { name: "Results" }).getByText("place-12").waitFor();
    }
    row(`preview of every stage, ${STATES.toLocaleString("en")} states`, "≤ 250 ms", ms(median(times)));
  }),

  moment: () => part(async ({ page, api }) => {
    await define(api);
    await append(api, READINGS, reading);
    const { head } = await api("GET", "/system/consumers");
    await append(api, EVENTS, (index) => ({ ...reading(index % READINGS), event_type: "reading.updated", payload: { title: `Reading ${index}`, value: index } }));
    const times = [];
    for (let round = 1; round <= ROUNDS; round += 1) {
      const position = head + Math.floor((EVENTS * round) / (ROUNDS + 1));
      const { results } = await api("POST", "/aggregates/query", { pipeline: [{ $match: { aggregate_type: "reading" } }, { $fold: { position } }, { $sort: { _last_event_at: -1 } }, { $limit: 1 }] });
      times.push(await timed(page, `/types/reading?at=@${position}`, results[0].title));
    }
    row(`moment moved → painted, ${EVENTS.toLocaleString("en")} events`, "≤ 300 ms", ms(median(times)));
  }),

  graph: () => part(async ({ page, api }) => {
    await many(NODES - 1, (index) => api("POST", "/articles", { title: `Article ${index}`, slug: `article-${index}`, body: "" }));
    const hub = await api("POST", "/articles", { title: "Hub", slug: "hub", body: Array.from({ length: NODES - 1 }, (_, index) => `[Article ${index}](/article-${index})`).join(" ") });
    while ((await api("GET", `/aggregates/${hub.aggregate_id}/graph?depth=1`)).edges.length < NODES - 1) await new Promise((next) => { setTimeout(next, 100); });
    const slices = [], drawings = [], tasks = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await timed(page, "/settings/appearance", "Single letters");
      const [slice, drawing, task] = await page.evaluate(async (path) => {
        let most = 0;
        const longest = { slice: 0, draw: 0 };
        const request = window.requestAnimationFrame;
        window.requestAnimationFrame = (callback) => request((now) => {
          const begin = performance.now();
          callback(now);
          const { name } = callback;
          if (name === "slice" || name === "draw") longest[name] = Math.max(longest[name], performance.now() - begin);
        });
        const observer = new PerformanceObserver((list) => { for (const entry of list.getEntries()) most = Math.max(most, entry.duration); });
        observer.observe({ type: "longtask" });
        history.pushState(null, "", path);
        window.dispatchEvent(new PopStateEvent("popstate"));
        // The layout settles within this time. No task of the layout remains after its last frame.
        const end = performance.now() + 3_000;
        while (performance.now() < end) await new Promise((next) => { requestAnimationFrame(next); });
        observer.disconnect();
        window.requestAnimationFrame = request;
        return [longest.slice, longest.draw, most];
      }, `/graph/${hub.aggregate_id}`);
      slices.push(slice);
      drawings.push(drawing);
      tasks.push(task);
    }
    row(`layout of ${NODES} nodes: longest slice`, "≤ 12 ms", ms(median(slices)));
    row(`layout of ${NODES} nodes: longest drawing of moved nodes`, "", ms(median(drawings)));
    row(`first drawing of ${NODES} nodes: longest task (0: below 50 ms)`, "", ms(median(tasks)));
  }),
};

/** Returns the times from the press of a key to the next frame. @param {import("playwright-core").Page} page @param {string} key @param {number} count */
const pressed = (page, key, count) => page.evaluate(async ([name, times]) => {
  /** @type {number[]} */
  const found = [];
  for (let index = 0; index < Number(times); index += 1) {
    const begin = performance.now();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: String(name), bubbles: true, cancelable: true }));
    await new Promise((next) => { requestAnimationFrame(() => { setTimeout(next); }); });
    found.push(performance.now() - begin);
  }
  return found;
}, [key, count]);

try {
  for (const [name, measure] of Object.entries(PARTS)) if (!values.only || values.only === name) await measure();
} finally {
  await closeBrowser();
}
console.log(["| what | goal | median |", "|---|---|---|", ...table.map((cells) => `| ${cells.join(" | ")} |`)].join("\n"));
