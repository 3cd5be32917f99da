// Sign-in and sign-out: with a key, with a one-time link, in a second tab, and when the session ends elsewhere.

import { PLAIN_HOST } from "../lib/browser.mjs";
import { equal, gone, ok, see, story, until } from "../lib/story.mjs";
import { agentOf, taskOf } from "../lib/tasks.mjs";

/** @param {any} api */
const sessions = async (api) => (await api("GET", "/keys")).data.filter((/** @type {any} */ key) => key.name.startsWith("dashboard · "));

story("a person signs in by key, reloads, and signs out", async ({ page, api, signIn, server, go, show, axe, aria, screenshot }) => {
  await go("/");
  await see(page.getByRole("heading", { name: "Foldwork" }));
  await axe();
  await aria("form");
  await screenshot("sign-in");
  await signIn();
  const [session] = await sessions(api);
  ok(session.scopes.includes("api:write"));
  const hours = (Date.parse(session.expires_at) - Date.now()) / 3_600_000;
  ok(hours > 11.9 && hours <= 12, `${hours} hours`);
  const stored = await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }));
  ok(!stored.includes(server.key), "the entered key is stored");
  await page.reload();
  await see(page.getByRole("navigation", { name: "Screens" }));
  // What is typed and not saved does not stay for the next person.
  await show("/articles/new");
  await page.getByLabel("Title").fill("Mine");
  page.once("dialog", (question) => question.accept());
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("API key").fill(server.key);
  equal(page.url(), `${server.url}/`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await see(page.getByRole("navigation", { name: "Screens" }));
  await show("/articles/new");
  equal(await page.getByLabel("Title").inputValue(), "");
  await page.getByRole("button", { name: "Sign out" }).click();
  await see(page.getByLabel("API key"));
  await until(async () => (await sessions(api)).length === 0);
  await page.reload();
  await see(page.getByLabel("API key"));
  await gone(page.getByRole("navigation", { name: "Screens" }));
});

story("a wrong key is refused, and the next one accepted", async ({ page, server, go, axe, screenshot }) => {
  await go("/inbox");
  await page.getByLabel("API key").fill(`sk_${"0".repeat(64)}`);
  await page.getByLabel("API key").press("Enter");
  await see(page.getByRole("alert").getByText("The server does not accept this key."));
  await axe();
  await screenshot("sign-in-refused");
  await page.getByLabel("API key").fill(server.key);
  await page.getByLabel("API key").press("Enter");
  // The page shows the address that was requested before the sign-in.
  await see(page.getByRole("heading", { name: "Inbox" }));
}, { expected: [401] });

story("a one-time link signs in once, and its code leaves the address", async ({ page, api, profile, server }) => {
  const { code } = await api("POST", "/keys/sign-in-codes", { name: "phone", scopes: ["api:read", "api:write"] });
  await page.goto(`${server.url}/sign-in#${code}`);
  await see(page.getByRole("navigation", { name: "Screens" }));
  equal(page.url(), `${server.url}/`);
  equal((await sessions(api)).length, 1);
  const other = await profile();
  await other.goto(`${server.url}/sign-in#${code}`);
  await see(other.getByText("The link cannot be used"));
  await see(other.getByLabel("API key"));
  ok(!other.url().includes(code));
}, { expected: [401] });

story("a second tab takes the session over, and signing out ends both", async ({ page, api, signIn, tab, server }) => {
  await signIn();
  const second = await tab();
  await second.goto(`${server.url}/settings/keys`);
  await see(second.getByRole("heading", { name: "Settings" }));
  equal((await sessions(api)).length, 1);
  await second.getByRole("button", { name: "Sign out" }).click();
  await see(page.getByLabel("API key"));
  await until(async () => (await sessions(api)).length === 0);
  await see(second.getByLabel("API key"));
  equal(second.url(), `${server.url}/`);
});

story("signing out ends the tabs of the same person that have another key, and revokes it", async ({ page, api, signIn, show, tab, server }) => {
  await signIn();
  const { code } = await api("POST", "/keys/sign-in-codes", { name: "second", scopes: ["api:read", "api:write"] });
  const second = await tab();
  await second.goto(`${server.url}/sign-in#${code}`);
  await see(second.getByRole("navigation", { name: "Screens" }));
  equal((await sessions(api)).length, 2);
  // A text that is not saved keeps no tab from its end.
  await show("/articles/new");
  await page.getByLabel("Title").fill("Mine");
  await second.getByRole("button", { name: "Sign out" }).click();
  await see(page.getByLabel("API key"));
  await until(async () => (await sessions(api)).length === 0);
  await see(second.getByLabel("API key"));
});

story("signing out waits for what another tab with the same key is sending", async ({ page, api, signIn, show, tab, server }) => {
  const task = await taskOf(api, await agentOf(api), "Sent slowly");
  await signIn();
  const second = await tab();
  await second.goto(`${server.url}/types`);
  await see(second.getByRole("heading", { name: "Types" }));
  equal((await sessions(api)).length, 1);
  let begun = false;
  let release = () => {};
  const held = new Promise((done) => { release = () => done(null); });
  await page.route("**/request-changes", async (route) => { begun = true; await held; await route.continue(); });
  await show(`/inbox/${task.id}`);
  await see(page.getByRole("region", { name: "Task", exact: true }).getByRole("tab", { name: "Timeline" }));
  await page.keyboard.press("c");
  await page.getByRole("dialog").getByRole("textbox").fill("shorter");
  await page.keyboard.press("Control+Enter");
  await until(() => begun);
  await second.getByRole("button", { name: "Sign out" }).click();
  await see(second.getByText("Loading…"));
  // The key would be revoked after this time if nothing needed it.
  const ended = Date.now();
  await until(() => Date.now() - ended > 500);
  release();
  await see(page.getByLabel("API key"));
  await see(second.getByLabel("API key"));
  equal((await api("GET", `/mailbox/${task.id}`)).status, "awaiting_reply");
  await until(async () => (await sessions(api)).length === 0);
});

story("a session that is revoked elsewhere ends by itself and says why", async ({ page, api, signIn, axe, screenshot }) => {
  await signIn();
  await see(page.getByText("live", { exact: true }));
  const [session] = await sessions(api);
  await api("DELETE", `/keys/${session.id}?cascade=true`);
  await see(page.getByText("The server no longer accepts the key of this session"));
  await see(page.getByLabel("API key"));
  await axe();
  await screenshot("sign-in-ended");
}, { expected: [401] });

story("nothing is left after the last tab", async ({ page, signIn, tab, server }) => {
  await signIn();
  await page.close();
  const later = await tab();
  await later.goto(`${server.url}/`);
  await see(later.getByLabel("API key"));
});

story("over plain HTTP at another name, browsers keep functions back, and the dashboard works without them", async ({ page, api, server }) => {
  const url = server.url.replace("127.0.0.1", PLAIN_HOST);
  await page.goto(url);
  equal(await page.evaluate(() => isSecureContext), false);
  await page.getByLabel("API key").fill(server.key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await see(page.getByText("live", { exact: true }));
  await page.goto(`${url}/inbox?priority=high`);
  await page.getByRole("button", { name: "Save view" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("High");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await see(page.getByText("is saved"));
  const [view] = (await api("GET", "/aggregates?type=view")).data;
  ok(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(view._id ?? view.aggregate_id ?? view.id), JSON.stringify(view));
  await page.goto(`${url}/settings/workspace`);
  await page.getByRole("button", { name: "copy" }).first().click();
  await see(page.getByText("Select the text instead."));
});
