// Callers with limited rights: the dashboard offers no action that the server would reject.

import { equal, ok, see, story, until } from "../lib/story.mjs";
import { issuer, token } from "../lib/issuer.mjs";
import { fill, SCREENS } from "../lib/screens.mjs";

/** The first words of buttons that change data on the server. */
const WRITES = /^(approve|edit and approve|reject|request changes|answer|defer|assign|retry|cancel|create|revoke|invite|upload|delete|save|publish|unpublish|replay|give up|resume|reload|append|define|remove|withdraw|role|archive|set the plan|rename|keep|new|add|register|disconnect|connect|claim|release|message|comment|send|disable|enable|rebuild)\b/i;
/** The buttons that begin with one of these words but change only the view. */
const HARMLESS = /^(new$|add (a )?(stage|filter|tab|pipeline)|new (pipeline|tab|stage)|delete stage|remove (stage|filter)|resume( \(\+\d+\))?$|reload the page|save the picture)/i;

/** Returns the enabled buttons that would change data on the server. @param {import("playwright-core").Page} page */
async function offered(page) {
  const names = await page.locator("main button:enabled, dialog button:enabled").evaluateAll((buttons) =>
    buttons.filter((button) => button.checkVisibility()).map((button) => (button.getAttribute("aria-label") ?? button.textContent ?? "").trim()));
  return names.filter((name) => WRITES.test(name) && !HARMLESS.test(name));
}

/** Shows each screen, and returns the buttons that it offers. @param {import("../lib/story.mjs").Tools} tools */
async function walk({ page, show, api }, paths = SCREENS) {
  /** @type {Record<string, string[]>} */
  const found = {};
  for (const path of paths(await fill(api, { isKept: true }))) {
    await show(path);
    const names = await offered(page);
    if (names.length > 0) found[path] = names;
  }
  return found;
}

story("a key that only reads is offered nothing else, and told why", async (tools) => {
  const { page, api, signIn, go } = tools;
  const reader = await api("POST", "/keys", { name: "reader", scopes: ["api:read", "profile:read"] });
  await fill(api);
  await signIn({ key: reader.key });
  equal(await walk(tools), {});
  await go("/settings/keys");
  await see(page.getByText("This key lacks the scope api:write."));
  equal(await page.getByRole("link", { name: "Installation" }).count(), 0);
  await page.getByRole("button", { name: "Sign out" }).click();
  await see(page.getByLabel("API key"));
  // The session used the key itself, so signing out does not revoke the key.
  equal((await api("GET", "/keys/self", undefined, { key: reader.key })).name, "reader");
});

story("a key for published content shows articles and nothing else", async ({ page, api, signIn, go, axe, screenshot }) => {
  const made = await api("POST", "/keys", { name: "site", scopes: ["content:read"] });
  const article = await api("POST", "/articles", { title: "Pricing", body: "Ten." });
  await api("POST", `/articles/${article.aggregate_id}/publish`, {});
  await api("POST", "/articles", { title: "Secret draft" });
  await signIn({ key: made.key });
  await see(page.getByText("This screen needs the scope api:read"));
  equal(await page.getByRole("navigation", { name: "Screens" }).getByRole("listitem").allInnerTexts(), ["Articles"]);
  await axe();
  await screenshot("content-read");
  // Nothing is searched that the key may not read.
  await page.keyboard.press("Control+k");
  await see(page.getByRole("combobox", { name: "Command, or words to find" }));
  await page.keyboard.type("pricing");
  await see(page.getByText("No command has this name."));
  // Escape empties the field before it closes the dialog.
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await page.getByRole("link", { name: "Articles", exact: true }).click();
  await see(page.getByRole("main").getByText("Pricing"));
  equal(await page.getByText("Secret draft").count(), 0);
  equal(await page.getByRole("link", { name: "Open as a pipeline" }).count(), 0);
  equal(await offered(page), []);
}, { expected: [{ status: 403, path: /\/profile$/ }] });

story("a key that opens no screen says so", async ({ page, api, go }) => {
  const made = await api("POST", "/keys", { name: "model", scopes: ["mcp:read"] });
  await go("/");
  await page.getByLabel("API key").fill(made.key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await see(page.getByText("This key opens no screen: it has neither api:read nor content:read."));
}, { expected: [403] });

story("a viewer reads, and an editor who becomes a viewer stops being offered changes", async (tools) => {
  const { page, api, server, signIn, go } = tools;
  const ada = token("ada@example.com", "Ada");
  const invited = await api("POST", "/members", { email: "ada@example.com", role: "editor" });
  await api("POST", `/invitations/${invited.id}/accept`, {}, { key: ada });
  const [member] = (await api("GET", "/members")).data.filter((/** @type {any} */ one) => one.email === "ada@example.com");
  const workspace = (await api("GET", "/workspace")).id;
  const made = await api("POST", "/keys", { name: "ada", scopes: ["api:read", "api:write"] }, { key: ada, headers: { "Foldwork-Workspace": workspace } });
  await fill(api);
  await signIn({ key: made.key });
  await go("/projects");
  ok(await page.getByRole("button", { name: "Create project" }).isEnabled());
  await api("PATCH", `/members/${member.id}`, { role: "viewer" });
  await page.getByRole("button", { name: "Create project" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("No");
  await dialog.getByRole("button", { name: "Create project" }).click();
  await see(dialog.getByText("insufficient_role"));
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await until(() => page.getByRole("button", { name: "Create project" }).isDisabled());
  await see(page.getByText("You are a viewer of this workspace, and viewers only read."));
  equal(await walk(tools), {});
  await page.getByRole("button", { name: "Sign out" }).click();
  await see(page.getByLabel("API key"));

  // A viewer cannot create a key for the session, but can still sign in.
  await signIn({ key: made.key });
  await go("/settings/members");
  await see(page.getByText("Only owners can do this, and you are a viewer."));
  equal(await offered(page), []);
  ok(server.url);
}, { ...issuer, expected: [{ status: 403, path: /\/(projects|keys.*)$/ }] });
