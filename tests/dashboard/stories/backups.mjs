// The backups of an installation: how far the archive is, and what a server without an archive says.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { see, story, until } from "../lib/story.mjs";

const folder = mkdtempSync(join(tmpdir(), "foldwork-archive-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

story("an owner sees how far each workspace is archived", async ({ page, api, signIn, go, axe, screenshot }) => {
  await api("POST", "/articles", { title: "Kept" });
  const { head } = await api("GET", "/system/consumers");
  await until(async () => (await api("GET", "/system/backups")).workspaces[0]?.position >= head);
  await signIn();
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("link", { name: "Backups" }).click();
  const table = page.getByRole("region", { name: "Backups of workspaces" });
  await see(table.getByRole("cell", { name: String(head), exact: true }));
  await see(page.getByText("No workspace was restored."));
  await axe();
  await screenshot("backups");
}, { env: { FOLDWORK_BACKUP__URL: `file://${folder}`, FOLDWORK_BACKUP_KEY: randomBytes(32).toString("base64") }, isKept: true });

story("a server without an archive says how to set one", async ({ signIn, go, page, axe }) => {
  await signIn();
  await go("/settings/backups");
  await see(page.getByText("This server has no backup."));
  await axe();
}, { expected: [{ status: 409, path: /system\/(backups|restores)/ }] });
