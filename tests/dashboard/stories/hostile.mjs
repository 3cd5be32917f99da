// Content that could break a page: markup, right-to-left texts, huge texts, and numbers that no double can represent.

import { equal, ok, see, story, until } from "../lib/story.mjs";
import { fillContent } from "../lib/hostile.mjs";
import { fill, SCREENS } from "../lib/screens.mjs";
import { agentOf } from "../lib/tasks.mjs";

const MARKUP = `<img src=x onerror="window.broken=1"><script>window.broken=1</script>{{7*7}}\${7*7}[x](javascript:alert(1))`;
const RTL = "\u202eاﻟﻌﻘﺪ שלום \u2066mixed\u2069 ‏end";
const BIG = "12345678901234567890123";
const PRECISE = "0.12345678901234567890123";

/** Shows every screen, and checks that no content was executed and no content overflows the page. @param {import("../lib/story.mjs").Tools} tools @param {import("../lib/screens.mjs").Filled} filled */
async function visit({ page, show }, filled, also = /** @type {string[]} */ ([])) {
  /** @type {string[]} */
  const wide = [];
  for (const path of [...SCREENS(filled), ...also]) {
    await show(path);
    equal(await page.evaluate(() => ({ broken: "broken" in window, images: document.querySelectorAll("img").length, scripts: document.querySelectorAll("body script").length,
      links: [...document.querySelectorAll("a")].filter((link) => /^(javascript|data|vbscript):/i.test(link.href)).length })), { broken: false, images: 0, scripts: 0, links: 0 }, path);
    const overflow = await page.evaluate(() => Math.max(...[document.documentElement, ...document.querySelectorAll("main, .page")].map((box) => box.scrollWidth - box.clientWidth)));
    if (overflow > 0) wide.push(`${path}: ${overflow} px`);
  }
  equal(wide, [], "pages wider than the window");
}

story("markup in every name stays text on every screen", async (tools) => {
  const { page, api, signIn, go, screenshot } = tools;
  const filled = await fill(api, { text: (name) => `${name} ${MARKUP}` });
  await api("POST", "/keys", { name: `key ${MARKUP}`.slice(0, 100), scopes: ["api:read"] });
  await api("POST", "/functions/v1/validate-license", { instanceId: "laptop", name: `Laptop ${MARKUP}`.slice(0, 100), platform: "<b>linux</b>" });
  const more = await fillContent(api, (name) => `${name} ${MARKUP}`);
  await api("POST", "/members", { email: "<b>bold</b>@example.com" });
  await signIn();
  await visit(tools, filled, more);
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Commands and search" });
  await palette.getByRole("combobox").fill("Pricing <img");
  await see(palette.getByRole("option").filter({ hasText: "Pricing <img src=x" }));
  equal(await page.evaluate(() => ({ broken: "broken" in window, images: document.querySelectorAll("img").length })), { broken: false, images: 0 });
  await page.keyboard.press("Escape");
  await go(`/inbox/${filled.task}`);
  await see(page.getByText("onerror="));
  await screenshot("hostile-inbox");
  await go(`/articles/${filled.article}`);
  await screenshot("hostile-article");
});

story("texts from right to left keep to their place", async (tools) => {
  const { api, page, signIn, go, screenshot } = tools;
  const filled = await fill(api, { text: (name) => `${RTL} ${name}` });
  const more = await fillContent(api, (name) => `${RTL} ${name}`);
  await signIn();
  await visit(tools, filled, more);
  await go("/articles");
  // Each element with right-to-left text isolates the direction of its text.
  const texts = await page.locator("main a, main td, main h1, main p").evaluateAll((elements) => elements
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && /[\u0590-\u06ff\u202e]/.test(node.textContent ?? "")))
    .filter((element) => getComputedStyle(element).unicodeBidi === "normal").map((element) => element.outerHTML.slice(0, 200)));
  equal(texts, [], "texts without bdi or dir=auto");
  await screenshot("hostile-rtl");
});

story("a payload of a megabyte and exact numbers are shown without harm", async (tools) => {
  const { api, page, signIn, go, screenshot } = tools;
  const filled = await fill(api);
  const long = "x".repeat(40) + " word".repeat(190_000);
  await api("POST", "/aggregates/note-big/events", `{"aggregate_type":"note","event_type":"note.created","payload":{"title":"Huge","text":${JSON.stringify(long)},"count":1}}`);
  await api("POST", "/aggregates/note-exact/events", `{"aggregate_type":"note","event_type":"note.created","payload":{"title":"Exact","whole":${BIG},"part":${PRECISE},"unsafe":9007199254740993}}`);
  await api("POST", "/aggregates/note-deep/events", { aggregate_type: "note", event_type: "note.created", payload: { title: "Deep", list: Array.from({ length: 5_000 }, (_, index) => index), tree: JSON.parse("[".repeat(40) + "]".repeat(40)) } });
  await signIn();
  await visit(tools, filled, ["/a/note-big", "/a/note-big?tab=events", "/a/note-deep", "/a/note-exact"]);
  await go("/a/note-exact");
  for (const number of [BIG, PRECISE, "9007199254740993"]) await see(page.getByText(number, { exact: true }));
  await go(`/pipelines?q=${encodeURIComponent(JSON.stringify([{ $match: { aggregate_id: "note-exact" } }, { $fold: {} }]))}`);
  // The server computes with 64-bit integers, and with doubles outside their range.
  await see(page.getByRole("region", { name: "Results" }).getByText("9007199254740993", { exact: true }));
  await go("/a/note-big");
  await see(page.getByText(/characters/));
  const shown = await page.evaluate(() => document.querySelector("main")?.innerText.length ?? 0);
  ok(shown < 20_000, `${shown} characters are laid out`);
  await screenshot("hostile-huge");
});

story("output of a megabyte and exact numbers of a task are shown without harm", async (tools) => {
  const { api, page, signIn, go, show } = tools;
  const agent = await agentOf(api);
  const long = "x".repeat(40) + " word".repeat(190_000);
  await api("POST", "/aggregates/r/events", { aggregate_type: "receipt", event_type: "receipt.created", payload: { text: "Ten" } });
  const task = async (/** @type {string} */ title, /** @type {string} */ artifact) => {
    const made = await api("POST", "/mailbox", { title, assignee_type: "agent", assignee_id: agent.id, source: { aggregate_id: "r" } });
    await api("POST", `/mailbox/${made.id}/claim`, { agent_id: agent.id }, { key: agent.key });
    await api("POST", `/mailbox/${made.id}/complete`, `{"agent_id":"${agent.id}","artifact":${artifact}}`, { key: agent.key });
    return made.id;
  };
  const huge = await task("Huge", JSON.stringify({ name: "text", text: long }));
  const exact = await task("Exact", `{"name":"numbers","data":{"whole":${BIG},"part":${PRECISE},"unsafe":9007199254740993},"effect":{"event_type":"receipt.updated","payload":{"exact":${BIG}}}}`);
  await signIn();
  for (const tab of ["", "?tab=diff", "?tab=effect", "?tab=timeline", "?tab=raw"]) {
    await show(`/inbox/${huge}${tab}`);
    const shown = await page.evaluate(() => /** @type {HTMLElement | null} */ (document.querySelector(".detail"))?.innerText.length ?? 0);
    ok(shown < 50_000, `${shown} characters are laid out at ${tab}`);
  }
  await go(`/inbox/${exact}`);
  // A state has the nearest double of a number beyond 64 bits. The event of an effect has the number as it was written.
  await see(page.getByText("9007199254740993", { exact: true }));
  await go(`/inbox/${exact}?tab=effect`);
  await see(page.getByText(BIG, { exact: true }));
});

const MANIFEST = 'name = "measure"\nversion = "1.0.0"\ndescription = "Repeats <b>notes</b>."\nhooks = ["enrich"]\non = { events = ["memo.*"] }\n';
const SCRIPT = "fn enrich(event, state, settings) {\n    if state.text.len() > 0 { throw state.text; }\n    #{}\n}\n";

story("markup in the errors of plugins stays text", async (tools) => {
  const { api, page, signIn } = tools;
  const filled = await fill(api);
  await api("POST", "/aggregates/define", { type_name: "memo", fields: [{ name: "text", type: "string" }] });
  await api("POST", "/aggregates/memo-1/events", { aggregate_type: "memo", event_type: "memo.created", payload: { text: MARKUP } });
  await until(async () => (await api("GET", "/parked")).data.length > 0);
  await signIn();
  await visit(tools, filled, ["/parked", "/plugins", "/plugins/measure", "/plugins/measure/bench"]);
  await tools.go("/parked");
  await see(page.getByText("onerror=", { exact: false }));
}, { files: { "config.toml": '[plugins]\nenabled = ["linker", "measure"]\n', "scripts/measure/plugin.toml": MANIFEST, "scripts/measure/plugin.rhai": SCRIPT } });
