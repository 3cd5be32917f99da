// A failure of one part of the page: the rest of the page stays, and the part says what is wrong. A failure of a read: what
// was read before stays, and says so.

import { gone, see, story } from "../lib/story.mjs";

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
  // The navigation reads the connection, whose value the list of types does not read.
  await page.route("**/assets/*/api/feed.js", async (route) => {
    const body = await (await route.fetch()).text();
    await route.fulfill({ contentType: "text/javascript", body: body.replace(/^export const connection = .*$/m, "export const connection = { get value() { throw new Error('broken connection'); }, set value(next) {} };") });
  });
  await page.goto(`${server.url}/types`);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await see(page.getByText("The navigation cannot be shown: broken connection"));
  await see(page.getByRole("heading", { name: "Types" }));
});

/** Answers as a server that is out of order. @param {import("playwright-core").Route} route */
const fail = (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error: "the store is unavailable", code: "unavailable" }) });

story("what cannot be read again stays, says that it is not current, and is read again by itself", async ({ page, api, signIn, go, show }) => {
  const head = /\/api\/v1\/aggregates\/n$/;
  const edges = /\/api\/v1\/aggregates\/n\/graph/;
  await api("POST", "/aggregates/define", { type_name: "note", fields: [{ name: "text", type: "string" }] });
  await api("POST", "/aggregates/n/events", { aggregate_type: "note", event_type: "note.created", payload: { text: "first" } });
  await signIn();
  await go("/a/n");
  await see(page.getByText("State at version 1"));
  await see(page.getByText("live", { exact: true }));
  await page.route(head, fail);
  await api("POST", "/aggregates/n/events", { aggregate_type: "note", event_type: "note.updated", payload: { text: "second" } });
  const failure = page.getByRole("alert").filter({ hasText: "the store is unavailable" });
  await see(failure);
  await see(page.getByText("State at version 1"));
  await page.unroute(head);
  await see(page.getByText("State at version 2"));
  await gone(failure);
  await show("/a/n?tab=graph");
  await see(page.getByText("No edge begins or ends here."));
  await page.route(edges, fail);
  await api("POST", "/aggregates/n/events", { aggregate_type: "note", event_type: "note.updated", payload: { text: "third" } });
  await see(failure);
  await see(page.getByText("No edge begins or ends here."));
  await page.unroute(edges);
  await gone(failure);
}, { expected: [503] });

story("an address that is no proper address shows its screen", async ({ page, signIn, show }) => {
  await signIn();
  await show("/a/100%");
  await see(page.getByRole("heading", { name: "100%" }));
}, { expected: [400, 404] });

story("a part of a screen that cannot be loaded says so", async ({ page, api, signIn, go }) => {
  const { id } = await api("POST", "/mailbox", { title: "Cut off" });
  await signIn();
  await page.route("**/assets/*/screens/inbox/task.js", (route) => route.abort("internetdisconnected"));
  await go(`/inbox/${id}`);
  await see(page.getByRole("alert").filter({ hasText: "This part of the dashboard could not be loaded." }));
  await page.unroute("**/assets/*/screens/inbox/task.js");
  await page.getByRole("button", { name: "Try again" }).click();
  await see(page.getByRole("region", { name: "Task", exact: true }).getByRole("heading", { name: "Cut off" }));
}, { isOffline: true });
