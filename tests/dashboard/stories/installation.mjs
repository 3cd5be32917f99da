// The name and the color of an installation, by which people tell it from others.

import { equal, ok, see, story, until } from "../lib/story.mjs";

/** The list of all workspaces, which only the settings read. */
const WORKSPACES = /\/api\/v1\/workspaces\?/;

story("the name and the color of the installation stand in the header, the title and the icon", async ({ page, go, signIn, axe, screenshot }) => {
  await go("/");
  await see(page.getByRole("heading", { name: "Staging <b>1</b>" }));
  equal(await page.title(), "Sign in · Staging <b>1</b>");
  await signIn();
  await see(page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Staging <b>1</b>" }));
  await until(async () => (await page.title()) === "Overview · Staging <b>1</b>");
  ok(decodeURIComponent(await page.locator('link[rel="icon"]').getAttribute("href") ?? "").includes('fill="#b3261e"'));
  equal(await page.locator(".frame").evaluate((frame) => getComputedStyle(frame).borderTopColor), "rgb(179, 38, 30)");
  await axe();
  await screenshot("installation");
}, { files: { "config.toml": "[plugins]\nenabled = []\n[dashboard]\nname = \"Staging <b>1</b>\"\ncolor = \"#b3261e\"\n" } });

story("a list of the installation that cannot be read says so, and is read again", async ({ page, signIn, go }) => {
  await signIn();
  await page.route(WORKSPACES, (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: "the store is unavailable", code: "unavailable" }) }));
  await go("/settings/installation");
  await see(page.getByRole("alert").filter({ hasText: "the store is unavailable" }));
  await page.unroute(WORKSPACES);
  await page.getByRole("button", { name: "Try again" }).click();
  await see(page.getByRole("region", { name: "Workspaces" }));
}, { expected: [503] });
