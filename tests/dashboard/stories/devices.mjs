// Devices: a device appears when an app validates its license. Revoking the device makes its place available again.

import { equal, gone, see, story, until } from "../lib/story.mjs";

story("a device appears, is revoked, and its place is free", async ({ page, api, signIn, go, axe, aria, screenshot }) => {
  const validate = (/** @type {string} */ id, /** @type {string} */ name) => api("POST", "/functions/v1/validate-license", { instanceId: id, name, platform: "linux", app_version: "1.4" });
  await api("PUT", `/users/${(await api("GET", "/profile")).id}/plan`, { limits: { activations: 2 } });
  await signIn();
  await go("/settings/devices");
  await see(page.getByText("No device is activated."));
  await axe();
  equal((await validate("laptop", "Laptop")).code, "VALID");
  equal((await validate("phone", "Phone")).code, "VALID");
  equal((await validate("third", "Third")).code, "ACTIVATION_LIMIT_REACHED");
  await page.evaluate(() => window.dispatchEvent(new Event("focus")));
  await see(page.getByText("of 2 places are used"));
  await see(page.getByText("No further device can be activated."));
  await axe();
  await aria("devices", page.getByRole("region", { name: "Devices" }));
  await screenshot("devices");
  await page.getByRole("button", { name: "Revoke Laptop" }).click();
  const question = page.getByRole("dialog", { name: "Revoke Laptop?" });
  await axe();
  await question.getByRole("button", { name: "Revoke" }).click();
  await gone(page.getByRole("button", { name: "Revoke Laptop" }));
  await see(page.getByText("1 of 2 places are used"));
  await until(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Devices"));
  equal((await validate("laptop", "Laptop")).code, "DEVICE_REVOKED");
  equal((await validate("third", "Third")).code, "VALID");
  await screenshot("devices-revoked");
});
