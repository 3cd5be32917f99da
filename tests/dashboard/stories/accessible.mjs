// Every screen without data, with data and with errors: axe finds no violations, in both themes, in a narrow window and
// enlarged, and every screen is usable by keyboard.

import { checkAxe, equal, ok, see, story } from "../lib/story.mjs";
import { EMPTY, fill, SCREENS } from "../lib/screens.mjs";

/** @typedef {import("../lib/story.mjs").Tools} Tools */

/** @param {Tools} tools @param {string[]} paths @param {(path: string) => Promise<void>} check */
async function visit({ show }, paths, check) {
  /** @type {string[]} */
  const failures = [];
  for (const path of paths) {
    await show(path);
    await check(path).catch((error) => failures.push(`${path}: ${error.message}`));
  }
  if (failures.length > 0) throw new Error(failures.join("\n\n"));
}

/** Returns a check that runs axe in both themes. @param {Tools} tools */
const inBothThemes = ({ page }) => async () => {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    await page.emulateMedia({ colorScheme });
    await checkAxe(page);
  }
};

story("axe finds nothing on full screens", async (tools) => {
  const filled = await fill(tools.api);
  await tools.api("POST", "/functions/v1/validate-license", { instanceId: "laptop", name: "Laptop" });
  await tools.signIn();
  await visit(tools, SCREENS(filled), inBothThemes(tools));
});

story("axe finds nothing on empty screens", async (tools) => {
  await tools.signIn();
  await visit(tools, EMPTY, inBothThemes(tools));
});

story("axe finds nothing on the page for signing in, before and after a refusal", async (tools) => {
  const { page, go } = tools;
  await go("/sign-in");
  const check = inBothThemes(tools);
  await see(page.getByLabel("API key"));
  await check();
  await page.getByLabel("API key").fill("sk_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await see(page.getByRole("alert").filter({ hasText: "The server does not accept this key." }));
  await see(page.getByRole("alert").getByText(/invalid_token|unauthorized|request /));
  await check();
}, { expected: [401] });

story("axe finds nothing where the server fails, and the failure is told with its request", async (tools) => {
  const { page, api, show, signIn } = tools;
  const filled = await fill(api);
  await signIn();
  // Begins with a screen that reads no data, so that the next screen has no data yet.
  await show("/settings/appearance");
  await page.route("**/api/v1/**", (route) => (route.request().url().includes("/keys/self") ? route.continue()
    : route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: "the store is unavailable", code: "unavailable", request_id: "story-1" }) })));
  // A new pipeline and a new article read nothing before something is written, and so does the section of the appearance.
  await visit(tools, SCREENS(filled).filter((path) => !/appearance|\/pipelines$|\/articles\/new/.test(path)), async () => {
    await see(page.getByRole("alert").filter({ hasText: "unavailable · request story-1" }));
    await inBothThemes(tools)();
  });
}, { expected: [503] });

story("a window of 320 pixels, and one of 1280 enlarged to 200 %, need no scrolling sideways", async (tools) => {
  const { page, api, signIn, screenshot } = tools;
  const filled = await fill(api);
  await signIn();
  for (const size of [{ width: 320, height: 640 }, { width: 640, height: 400 }]) {
    await page.setViewportSize(size);
    await visit(tools, SCREENS(filled), async () => {
      const overflow = await page.evaluate(() => Math.max(...[document.documentElement, ...document.querySelectorAll("main, .page")].map((box) => box.scrollWidth - box.clientWidth)));
      ok(overflow <= 0, `${overflow} px too wide at ${size.width}`);
      const cut = await page.evaluate(() => [...document.querySelectorAll("main button, main input, main select, main h1")].filter((element) => {
        const box = element.getBoundingClientRect();
        const scrolls = element.closest(".scroll, .window, .tabs, [role=tablist], pre, .table");
        return element.checkVisibility() && !scrolls && box.width > 1 && (box.right > innerWidth + 1 || box.left < -1);
      }).map((element) => element.outerHTML.slice(0, 160)));
      equal(cut, []);
    });
  }
  await screenshot("narrow");
});

story("forced colors show what is chosen, and axe finds nothing", async (tools) => {
  const { page, api, signIn } = tools;
  const filled = await fill(api);
  await signIn();
  await page.emulateMedia({ forcedColors: "active" });
  await visit(tools, SCREENS(filled), () => checkAxe(page));
});

story("Tab reaches every control of every screen, and leaves every editor", async (tools) => {
  const { page, api, signIn } = tools;
  const filled = await fill(api);
  await signIn();
  await visit(tools, SCREENS(filled), async () => {
    const wanted = await page.evaluate(() => {
      const all = [...document.querySelectorAll("a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary")];
      const roving = (/** @type {Element} */ element) => element.closest("[role=tablist], [role=listbox], [role=tree], [role=grid], [role=radiogroup], [role=toolbar], svg") !== null || (element instanceof HTMLInputElement && element.type === "radio");
      const seen = all.filter((element) => element.checkVisibility() && !roving(element) && !element.closest("[inert]"));
      seen.forEach((element, index) => element.setAttribute("data-story", String(index)));
      return seen.length;
    });
    ok(wanted > 10, `only ${wanted} controls`);
    const reached = new Set();
    await page.evaluate(() => { /** @type {HTMLElement} */ (document.activeElement)?.blur(); window.getSelection()?.removeAllRanges(); });
    await page.locator("body").evaluate((body) => { body.tabIndex = -1; body.focus(); body.removeAttribute("tabindex"); });
    for (let step = 0; step < wanted + 60 && reached.size < wanted; step += 1) {
      await page.keyboard.press("Tab");
      const index = await page.evaluate(() => document.activeElement?.getAttribute("data-story"));
      if (index !== null && index !== undefined) reached.add(index);
    }
    const missed = await page.evaluate((known) => [...document.querySelectorAll("[data-story]")].filter((element) => !known.includes(element.getAttribute("data-story") ?? "")).map((element) => element.outerHTML.slice(0, 160)), [...reached]);
    equal(missed, []);
    const named = await page.evaluate(() => [...document.querySelectorAll("*")].flatMap((element) => [...(element.shadowRoot?.querySelectorAll(".cm-content") ?? [])]).filter((editor) => !editor.getAttribute("aria-label") && !editor.getAttribute("aria-labelledby")).length);
    equal(named, 0, "editors without a name");
  });
});
