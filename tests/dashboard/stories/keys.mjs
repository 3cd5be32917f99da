// Keys: creation with scopes and an expiry, the secret that is shown once, use, rejection outside the scopes, and
// revocation together with derived keys.

import { equal, gone, ok, see, story, until } from "../lib/story.mjs";

const keys = async (/** @type {any} */ api) => (await api("GET", "/keys")).data;

story("a key is created, used, and revoked with what derives from it", async ({ page, api, server, signIn, axe, aria, screenshot }) => {
  await signIn();
  await page.getByRole("link", { name: "Settings" }).click();
  await see(page.getByRole("region", { name: "Keys" }).getByText("owner"));
  await axe();
  await screenshot("keys");
  await page.getByRole("button", { name: "Create key" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a key" });
  await dialog.getByLabel("Name").fill("ci");
  await dialog.getByLabel("Expires").selectOption("in 7 days");
  await dialog.getByLabel("Your own key").fill(server.key);
  await axe();
  await screenshot("create-key");
  await aria("create-key", dialog);
  await dialog.getByRole("button", { name: "Create key" }).click();
  const shown = page.getByRole("dialog", { name: "Key ci" });
  const secret = await shown.locator("code").innerText();
  ok(/^sk_[0-9a-f]{64}$/.test(secret), secret);
  await axe();
  await screenshot("created-key");
  await shown.getByRole("button", { name: "Done" }).click();
  await gone(shown);
  equal(await page.getByText(secret).count(), 0);
  equal(await page.evaluate(() => document.activeElement?.textContent), "Create key");

  const own = await api("GET", "/keys/self", undefined, { key: secret });
  equal(own.scopes, ["api:read"]);
  const days = (Date.parse(own.expires_at) - Date.now()) / 86_400_000;
  ok(days > 6.9 && days < 7.1, String(days));
  await api("POST", "/projects", { name: "No" }, { key: secret, expect: 403 });

  const parent = await api("POST", "/keys", { name: "parent", scopes: ["api:read", "api:write"] });
  await api("POST", "/keys", { name: "child", scopes: ["api:read"] }, { key: parent.key });
  await page.reload();
  await page.getByRole("button", { name: "Revoke parent" }).click();
  const question = page.getByRole("dialog", { name: "Revoke parent?" });
  await see(question.getByText("child"));
  await aria("revoke", question);
  await screenshot("revoke-key");
  await question.getByLabel("Your own key").fill(server.key);
  await question.getByRole("button", { name: "Revoke" }).click();
  await gone(page.getByRole("button", { name: "Revoke parent" }));
  await gone(page.getByRole("button", { name: "Revoke child" }));
  await api("GET", "/keys/self", undefined, { key: parent.key, expect: 401 });
  equal((await keys(api)).some((/** @type {any} */ key) => key.name === "child"), false);
  await until(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Keys"), "the focus is not on the list");
});

story("a key is rotated, and the old one ends when its user has said", async ({ page, api, server, signIn, go, axe, screenshot }) => {
  const old = await api("POST", "/keys", { name: "deploy", scopes: ["api:read", "api:write"] });
  const child = await api("POST", "/keys", { name: "child", scopes: ["api:read"] }, { key: old.key });
  await signIn();
  await go("/settings/keys");
  await page.getByRole("button", { name: "Rotate deploy" }).click();
  const dialog = page.getByRole("dialog", { name: "Rotate deploy" });
  equal(await dialog.getByLabel("The old key ends").inputValue(), "3600");
  await dialog.getByLabel("The old key ends").selectOption("at once");
  await dialog.getByLabel("Your own key").fill(server.key);
  await axe();
  await screenshot("rotate-key");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  const secret = await page.getByRole("dialog", { name: "Key deploy" }).locator("code").innerText();
  const own = await api("GET", "/keys/self", undefined, { key: secret });
  equal([own.name, own.scopes, own.id === old.id], ["deploy", ["api:read", "api:write"], false]);
  await api("GET", "/keys/self", undefined, { key: old.key, expect: 401 });
  equal((await api("GET", "/keys/self", undefined, { key: child.key })).derived_from, own.id);
  await page.getByRole("button", { name: "Done" }).click();
  equal(await page.getByText(secret).count(), 0);
});

story("what hangs on a revoked key is kept if its user says so, also what was made meanwhile", async ({ page, api, server, signIn, go, axe }) => {
  const parent = await api("POST", "/keys", { name: "parent", scopes: ["api:read", "api:write"] });
  await signIn();
  await go("/settings/keys");
  await page.getByRole("button", { name: "Revoke parent" }).click();
  const late = await api("POST", "/keys", { name: "late", scopes: ["api:read"] }, { key: parent.key });
  const dialog = page.getByRole("dialog", { name: "Revoke parent?" });
  await dialog.getByLabel("Your own key").fill(server.key);
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await see(dialog.getByRole("alert").getByText("derived_keys"));
  await see(dialog.getByText("late"));
  await dialog.getByLabel("keeps working").check();
  await axe();
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await gone(dialog);
  await api("GET", "/keys/self", undefined, { key: parent.key, expect: 401 });
  equal((await api("GET", "/keys/self", undefined, { key: late.key })).name, "late");
}, { expected: [409] });

story("a key that ends with the session needs no other key, and a wrong own key keeps the session", async ({ page, api, signIn, go }) => {
  await signIn();
  await go("/settings/keys");
  await page.getByRole("button", { name: "Create key" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a key" });
  await dialog.getByLabel("Name").fill("wrong");
  await dialog.getByLabel("Your own key").fill(`sk_${"0".repeat(64)}`);
  await dialog.getByRole("button", { name: "Create key" }).click();
  await see(dialog.getByRole("alert").getByText("unauthenticated"));
  equal(await dialog.getByLabel("Name").inputValue(), "wrong");
  await dialog.getByLabel("Name").fill("short");
  await dialog.getByLabel("Expires").selectOption("with this session");
  await dialog.getByRole("button", { name: "Create key" }).click();
  await see(page.getByRole("dialog", { name: "Key short" }));
  const made = (await keys(api)).find((/** @type {any} */ key) => key.name === "short");
  equal((await keys(api)).find((/** @type {any} */ key) => key.id === made.derived_from).name.startsWith("dashboard · "), true);
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await until(async () => !(await keys(api)).some((/** @type {any} */ key) => key.name === "short"));
}, { expected: [401] });

story("a key for agents works for them only", async ({ page, api, server, signIn, go }) => {
  const agent = await api("POST", "/agents", { name: "Scribe" });
  await api("POST", "/agents", { name: "Other" });
  await signIn();
  await go("/settings/keys");
  await page.getByRole("button", { name: "Create key" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a key" });
  await dialog.getByLabel("Name").fill("scribe");
  await dialog.getByText("api:write").click();
  await dialog.getByLabel("For agents").check();
  await dialog.getByRole("listbox", { name: "Agents" }).selectOption("Scribe");
  await dialog.getByLabel("Your own key").fill(server.key);
  await dialog.getByRole("button", { name: "Create key" }).click();
  const secret = await page.getByRole("dialog", { name: "Key scribe" }).locator("code").innerText();
  equal((await api("GET", "/keys/self", undefined, { key: secret })).agent_ids, [agent.id]);
  await api("POST", "/projects", { name: "No" }, { key: secret, expect: 403 });
});

story("a lapsed plan is explained where something is refused", async ({ page, api, server, signIn, go, axe, screenshot }) => {
  await signIn();
  await go("/settings/keys");
  await see(page.getByRole("region", { name: "Keys" }));
  await api("PUT", `/users/${(await api("GET", "/profile")).id}/plan`, { status: "past_due" });
  await page.getByRole("button", { name: "Create key" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a key" });
  await dialog.getByLabel("Name").fill("ci");
  await dialog.getByLabel("Your own key").fill(server.key);
  await dialog.getByRole("button", { name: "Create key" }).click();
  await see(dialog.getByText("subscription_required"));
  await screenshot("lapsed");
  await dialog.getByRole("link", { name: "The plan and its limits" }).click();
  await see(page.getByText("The plan is not paid."));
  await axe();
  await screenshot("lapsed-plan");
}, { expected: [402] });
