// Limits: the requests and bytes of a cold first screen, and the rows of every list in the document.

import { ok, see, story, until } from "../lib/story.mjs";
import { fill } from "../lib/screens.mjs";

const MAX_REQUESTS = 24;
const MAX_BYTES = 60_000;
const MAX_ROWS = 60;
const MANY = 80;

story("the cold first screen is small", async ({ page, context, server, go }) => {
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  /** @type {Map<string, {url: string, bytes: number}>} */
  const requests = new Map();
  session.on("Network.requestWillBeSent", ({ requestId, request }) => { if (request.url.startsWith(server.url)) requests.set(requestId, { url: request.url, bytes: 0 }); });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => { const known = requests.get(requestId); if (known) known.bytes = encodedDataLength; });
  await go("/");
  await see(page.getByLabel("API key"));
  await until(() => [...requests.values()].every(({ bytes }) => bytes > 0));
  const bytes = [...requests.values()].reduce((sum, known) => sum + known.bytes, 0);
  const list = [...requests.values()].map(({ url, bytes: size }) => `${size} ${url}`).join("\n");
  ok(requests.size <= MAX_REQUESTS, `${requests.size} requests\n${list}`);
  ok(bytes <= MAX_BYTES, `${bytes} bytes\n${list}`);
});

story("no list has more than sixty rows in the document", async ({ page, api, signIn, show }) => {
  const filled = await fill(api);
  const each = async (/** @type {(index: number) => Promise<any>} */ make) => { for (let index = 0; index < MANY; index += 10) await Promise.all(Array.from({ length: 10 }, (_, offset) => make(index + offset))); };
  await each((index) => api("POST", "/mailbox", { title: `Task ${index}` }));
  await each((index) => api("POST", "/articles", { title: `Article ${index}` }));
  await each((index) => api("POST", "/projects", { name: `Project ${index}` }));
  await each((index) => api("POST", "/keys", { name: `Key ${index}`, scopes: ["api:read"] }));
  await each((index) => api("POST", "/members", { email: `person${index}@example.com` }));
  await each((index) => api("POST", "/agents", { name: `Agent ${index}` }));
  await each((index) => api("POST", "/files", { filename: `file${index}.txt`, data: "YQ==" }));
  await each((index) => api("POST", "/functions/v1/validate-license", { instanceId: `device-${index}` }));
  for (let index = 0; index < MANY; index += 1) await api("POST", `/aggregates/note-1/events`, { aggregate_type: "note", event_type: "note.updated", payload: { count: index } });
  await signIn();
  const pipeline = encodeURIComponent(JSON.stringify([{ $match: { aggregate_type: "task" } }, { $fold: {} }]));
  /** @type {string[]} */
  const failures = [];
  const measure = async (/** @type {string} */ path) => {
    await show(path);
    const rows = await page.evaluate(() => Math.max(0, ...[...document.querySelectorAll("main table tbody, main ul, main ol, main [role=list], main .log, main dl")].map((list) =>
      list.querySelectorAll(list.matches("[role=list]") ? "[role=listitem]" : ":scope > tr:not([aria-hidden]), :scope > li, :scope > div, [role=listitem]").length)));
    if (rows > MAX_ROWS) failures.push(`${path}: ${rows} rows in a window of ${page.viewportSize()?.height} pixels`);
  };
  for (const path of ["/inbox", "/inbox?view=all", "/events", "/types/task", "/articles", "/projects", `/projects/${filled.slug}`, `/pipelines?q=${pipeline}`, "/agents", "/files",
    "/a/note-1?tab=events", "/settings/keys", "/settings/members", "/settings/devices", "/settings/installation", "/search?q=article", "/"]) {
    await measure(path);
  }
  await page.setViewportSize({ width: 1280, height: 5_000 });
  for (const path of ["/inbox", "/events", "/types/task", "/articles", "/projects", "/agents", "/files", "/settings/keys", `/pipelines?q=${pipeline}`]) await measure(path);
  ok(failures.length === 0, failures.join("\n"));
});
