// Sign-in at an identity provider: success, renewal of the session, and rejection.

import { after } from "node:test";
import { equal, ok, see, story, until } from "../lib/story.mjs";
import { startProvider } from "../lib/issuer.mjs";

const ada = await startProvider({ email: "ada@example.com", life: 63 });
after(() => ada.stop());

story("a person signs in at the identity provider, and the token is renewed", async ({ page, server, go, tab, axe, screenshot }) => {
  await go("/settings/workspace");
  await see(page.getByRole("button", { name: "Sign in with the identity provider" }));
  await axe();
  await screenshot("sign-in-provider");
  await page.getByRole("button", { name: "Sign in with the identity provider" }).click();
  // The page shows the address that was requested before the sign-in, and no address contains the code.
  await see(page.getByText("ada@example.com"));
  equal(page.url(), `${server.url}/settings/workspace`);
  equal(ada.granted.authorization_code, 1);
  const held = () => page.evaluate(() => JSON.parse(sessionStorage.getItem("foldwork.session") ?? "{}").key);
  const first = await held();
  const second = await tab();
  await second.goto(`${server.url}/settings/members`);
  await see(second.getByText("No workspace invites you."));
  await until(async () => (await held()) !== first, "the token is not renewed");
  ok(ada.granted.refresh_token >= 1);
  await page.reload();
  await see(page.getByText("ada@example.com"));
  await page.getByRole("button", { name: "Sign out" }).click();
  await see(second.getByRole("button", { name: "Sign in with the identity provider" }));
}, ada.settings);

story("a refusal of the provider is told, and a forged answer is not accepted", async ({ page, go }) => {
  ada.provider.refuses = true;
  await go("/");
  await page.getByRole("button", { name: "Sign in with the identity provider" }).click();
  await see(page.getByText("access_denied"));
  ada.provider.refuses = false;
  await go("/sign-in?code=stolen&state=forged");
  await see(page.getByText("this sign-in was not begun in this tab"));
  await see(page.getByLabel("API key"));
  equal(await page.evaluate(() => sessionStorage.length), 0);
}, ada.settings);
