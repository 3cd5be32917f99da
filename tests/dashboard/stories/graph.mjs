// The graph: navigation by keyboard, the graph as a table, and the graph as of an earlier moment.

import { ok, see, story, until } from "../lib/story.mjs";

const NAMES = ["Soil", "Compost", "Worms", "Basil", "Beans", "Peas", "Mulch", "Slugs"];
const LINKS = [[0, 1], [0, 2], [1, 2], [3, 0], [4, 0], [4, 5], [5, 6], [7, 5]];
/** @param {number} index */
const day = (index) => new Date(Date.UTC(2026, 0, 1 + index * 10)).toISOString();

/** Creates articles that link to each other, one article every ten days. Returns their project. @param {any} api */
async function garden(api) {
  const project = await api("POST", "/projects", { name: "Garden" });
  const slug = (/** @type {number} */ index) => NAMES[index].toLowerCase();
  for (const [index, title] of NAMES.entries()) {
    await api("POST", `/aggregates/${slug(index)}/events`, { aggregate_type: "article", event_type: "article.created", project_id: project.id, occurred_at: day(index), payload: { title, slug: slug(index), body: title } });
  }
  for (const [from, to] of LINKS) {
    const links = LINKS.filter(([other, end]) => other === from && end <= to).map(([, end]) => `[${NAMES[end]}](/${slug(end)})`).join(" ");
    await api("POST", `/aggregates/${slug(from)}/events`, { event_type: "article.updated", occurred_at: day(Math.max(from, to) + 1), payload: { body: links } });
  }
  await until(async () => (await api("GET", "/aggregates/soil/graph?depth=3")).edges.length === LINKS.length);
  return project;
}

story("the graph is walked through by keyboard, as a picture and as a table", async ({ page, api, signIn, show, axe, screenshot }) => {
  const project = await garden(api);
  await signIn();
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await see(page.getByRole("heading", { name: "Graph", exact: true }));
  await page.getByLabel("Find an aggregate").fill("soil");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Soil" }).focus();
  await page.keyboard.press("Enter");
  await see(page.getByRole("heading", { name: "Soil", level: 1 }));
  await see(page.getByText("5 nodes, 4 edges"));
  await page.keyboard.press("2");
  await until(() => page.url().includes("depth=2"));
  await page.keyboard.press("3");
  await see(page.getByText("8 nodes, 8 edges"));
  await axe();

  // Arrow keys move the focus from node to node. The panel beside the picture describes the node with the focus.
  const beside = page.getByRole("complementary", { name: "The chosen node" });
  const nodes = page.getByRole("button", { name: /, article, \d+ edges$/ });
  await until(async () => (await nodes.count()) === 8);
  await nodes.and(page.locator('[tabindex="0"]')).focus();
  await see(beside.getByRole("heading", { name: "Soil" }));
  const visited = new Set(["Soil"]);
  for (const key of ["ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowLeft", "ArrowUp", "ArrowRight"]) {
    await page.keyboard.press(key);
    visited.add(await beside.getByRole("heading", { level: 2 }).innerText());
  }
  ok(visited.size >= 3, `the arrow keys visited ${[...visited]}`);
  ok(await nodes.and(page.locator('[tabindex="0"]')).evaluate((node) => node === document.activeElement), "the focus follows");
  await screenshot("graph");
  const name = await beside.getByRole("heading", { level: 2 }).innerText();
  await see(beside.getByRole("link", { name: "linker" }));
  await page.keyboard.press("Enter");
  await see(page.getByRole("heading", { name, level: 1 }));

  await page.keyboard.press("t");
  const table = page.getByRole("region", { name: "Edges" });
  await see(table.getByRole("cell", { name: "links_to" }));
  await see(table.getByRole("link", { name: "linker" }));
  await see(table.getByRole("link", { name: /^event/ }));
  await axe();
  await screenshot("graph-table");

  // The edges of an aggregate are live.
  await show("/a/slugs?tab=graph");
  const edges = page.getByRole("tabpanel");
  await see(edges.getByRole("link", { name: "Peas" }));
  await see(page.getByText("live", { exact: true }));
  await api("POST", "/aggregates/slugs/events", { event_type: "article.updated", payload: { body: "[Peas](/peas) [Soil](/soil)" } });
  await until(async () => (await api("GET", "/aggregates/slugs/graph?depth=1")).edges.some((/** @type {any} */ edge) => edge.to === "soil"));
  await api("POST", "/aggregates/mulch/events", { event_type: "article.updated", payload: { title: "Mulch of leaves" } });
  await see(edges.getByRole("link", { name: "Soil" }));

  // A new aggregate that links to a shown one appears in the picture.
  await show("/graph/soil");
  await see(page.getByText("6 nodes, 5 edges"));
  await api("POST", "/aggregates/roots/events", { aggregate_type: "article", event_type: "article.created", project_id: project.id, payload: { title: "Roots", slug: "roots", body: "[Soil](/soil)" } });
  await until(async () => (await api("GET", "/aggregates/soil/graph?depth=1")).edges.some((/** @type {any} */ edge) => edge.from === "roots"));
  await api("POST", "/aggregates/stones/events", { aggregate_type: "article", event_type: "article.created", payload: { title: "Stones" } });
  await see(page.getByText("7 nodes, 6 edges"));
});

story("earlier moments have fewer edges, and closed edges are shown if wanted", async ({ page, api, signIn, go, axe, screenshot }) => {
  await garden(api);
  await api("POST", "/aggregates/peas/events", { event_type: "article.updated", occurred_at: day(12), payload: { body: "Nothing." } });
  await until(async () => (await api("GET", "/aggregates/soil/graph?depth=3")).edges.length === LINKS.length - 1);
  await signIn();
  await go("/graph/peas");
  await see(page.getByText("3 nodes, 2 edges"));
  await page.getByRole("checkbox", { name: "closed edges" }).check();
  await see(page.getByText("4 nodes, 3 edges"));

  await go("/graph/soil?depth=2&view=table");
  const table = page.getByRole("region", { name: "Edges" });
  const count = async () => (await table.getByRole("row").count()) - 1;
  await until(async () => (await count()) === 6);
  const scrubber = page.getByRole("slider", { name: "Edges open at" });
  await scrubber.focus();
  await page.keyboard.press("PageDown");
  await page.keyboard.press("PageDown");
  await page.keyboard.press("PageDown");
  await page.keyboard.press("PageDown");
  await page.keyboard.press("PageDown");
  await page.keyboard.press("PageDown");
  await until(() => page.url().includes("at="));
  await until(async () => [1, 2, 3, 4, 5].includes(await count()));
  await page.keyboard.press("Home");
  await see(page.getByText("No edge was open here at this moment."));
  await axe();
  await page.keyboard.press("End");
  await until(() => !page.url().includes("at="));
  await until(async () => (await count()) === 6);
  await screenshot("graph-scrubber");

  // An earlier version has its own edges, also at a moment.
  const { head } = await api("GET", "/system/consumers");
  await go(`/a/soil?tab=graph&v=1&at=@${head}`);
  await see(page.getByText("No edge begins or ends here at this version."));

  // A position is marked at the time of its event.
  const [event] = (await api("GET", "/aggregates/basil/events")).data.slice(-1);
  await go(`/graph/soil?depth=2&view=table&at=@${event.position}`);
  await until(async () => { const value = Number(await scrubber.inputValue()); return value > 0 && value < 1_000; });
});
