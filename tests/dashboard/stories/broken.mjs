// A failure of one part of the page: the rest of the page stays, and the part says what is wrong.

import { see, story } from "../lib/story.mjs";

/** Serves another module in the place of one. @param {import("playwright-core").Page} page @param {string} module @param {string} text */
const replace = (page, module, text) => page.route(`**/assets/*/${module}`, (route) => route.fulfill({ contentType: "text/javascript", body: text }));

story("an exception in the frame or in a dialog leaves the screen as it is", async ({ page, signIn, go }) => {
  await replace(page, "parts/moment.js", "export function Moment() { throw new Error('broken choice'); }\nexport function MomentBanner() { throw new Error('broken banner'); }");
  await replace(page, "parts/toasts.js", "export function Toasts() { throw new Error('broken toasts'); }");
  await replace(page, "parts/help.js", "export default function Help() { throw new Error('broken help'); }");
  await replace(page, "screens/files.js", "export default function Files() { throw new Error('broken files'); }");
  await signIn();
  await see(page.getByText("The choice of a moment cannot be shown: broken choice"));
  await see(page.getByText("The moment cannot be shown: broken banner"));
  await see(page.getByText("The messages cannot be shown: broken toasts"));
  await see(page.getByRole("heading", { name: "Latest events" }));
  await page.keyboard.press("?");
  await see(page.getByText("The dialog cannot be shown: broken help"));
  await go("/files");
  await see(page.getByText("This screen cannot be shown: broken files"));
  await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Types" }).click();
  await see(page.getByRole("heading", { name: "Types" }));
});

story("an exception in the navigation leaves the screen as it is", async ({ page, api, server }) => {
  const { key } = await api("POST", "/keys", { name: "reader", scopes: ["api:read"] });
  // The navigation reads the connection, whose value no screen reads.
  await page.route("**/assets/*/api/feed.js", async (route) => {
    const body = await (await route.fetch()).text();
    await route.fulfill({ contentType: "text/javascript", body: body.replace(/^export const connection = .*$/m, "export const connection = { get value() { throw new Error('broken connection'); }, set value(next) {} };") });
  });
  await page.goto(server.url);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await see(page.getByText("The navigation cannot be shown: broken connection"));
  await see(page.getByRole("heading", { name: "Latest events" }));
});
