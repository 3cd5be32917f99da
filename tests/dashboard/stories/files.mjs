// Files and projects: creation, uploads, replacement, downloads, deletion, and the state as of an earlier moment.

import { readFileSync } from "node:fs";
import { equal, gone, ok, see, story, until } from "../lib/story.mjs";

story("files are uploaded to an article, replaced, downloaded and deleted", async ({ page, api, signIn, go, axe, aria, screenshot }) => {
  const project = await api("POST", "/projects", { name: "Handbook" });
  const article = await api("POST", "/articles", { title: "Pricing", project_id: project.id });
  await signIn();
  await go("/files");
  await see(page.getByText("No file is stored."));
  await axe();
  await screenshot("files-empty");
  const send = async (/** @type {string} */ text, /** @type {string} */ action) => {
    await page.getByRole("button", { name: "Upload" }).click();
    const dialog = page.getByRole("dialog", { name: "Upload files" });
    await dialog.getByLabel("Files", { exact: true }).setInputFiles([{ name: "ü #1?.svg", mimeType: "image/svg+xml", buffer: Buffer.from(text) }]);
    await dialog.getByLabel("Id of the aggregate").fill(article.aggregate_id);
    await dialog.getByRole("button", { name: "Upload" }).click();
    if (action === "replace") {
      await see(dialog.getByText("a file with this name is stored there"));
      await axe();
      await screenshot("upload");
      await dialog.getByRole("button", { name: "Upload and replace" }).click();
    }
    await gone(dialog);
  };
  await send("<svg onload='alert(1)'/>", "");
  await see(page.getByRole("link", { name: "ü #1?.svg" }));
  await page.getByRole("button", { name: "{ }" }).click();
  await see(page.getByRole("dialog", { name: "This screen as API calls" }).getByText("-H 'Content-Type: image/svg+xml' -g -T 'ü #1?.svg'"));
  await page.keyboard.press("Escape");
  await gone(page.getByRole("dialog"));
  await send("<svg/>", "replace");
  const [file] = (await api("GET", "/files")).data;
  equal([file.size, file.version, file.aggregate_id, file.project_id], [6, 2, article.aggregate_id, project.id]);

  const started = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download ü #1?.svg" }).click();
  const download = await started;
  equal(download.suggestedFilename(), "ü #1_.svg");
  equal(readFileSync(await download.path(), "utf8"), "<svg/>");

  // A file that another program stores appears without a reload.
  await api("POST", "/files", { filename: "notes.txt", data: Buffer.from("notes").toString("base64") });
  await see(page.getByRole("link", { name: "notes.txt" }));
  await axe();
  await aria("files", page.getByRole("region", { name: "Files" }));
  await screenshot("files");
  await page.getByLabel("project").selectOption("Handbook");
  await gone(page.getByRole("link", { name: "notes.txt" }));
  await page.getByLabel("project").selectOption("all files");
  const before = (await api("GET", "/system/consumers")).head;
  await page.getByRole("button", { name: "Delete notes.txt" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await gone(page.getByRole("link", { name: "notes.txt" }));
  equal((await api("GET", "/files")).data.length, 1);
  await until(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label") === "Files"));

  await go(`/files?at=@${before}`);
  await see(page.getByRole("link", { name: "notes.txt" }));
  ok(await page.getByRole("button", { name: "Delete notes.txt" }).isDisabled());
  ok(await page.getByRole("button", { name: "Upload" }).isDisabled());
});

story("an upload beyond the quota says so, and can be stopped", async ({ page, api, signIn, go }) => {
  await signIn();
  await go("/files");
  await page.getByRole("button", { name: "Upload" }).click();
  const dialog = page.getByRole("dialog", { name: "Upload files" });
  await dialog.getByLabel("Files", { exact: true }).setInputFiles([{ name: "big.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(5_000) }]);
  await dialog.getByRole("button", { name: "Upload" }).click();
  await see(dialog.getByText("storage_quota_exceeded"));
  await see(dialog.getByRole("button", { name: "Upload", exact: true }));
  await dialog.getByRole("button", { name: "Cancel" }).click();
  equal((await api("GET", "/files")).data, []);
}, { expected: [400], env: { FOLDWORK_FILES__QUOTA: "1000" } });

story("a project is created, shows what it groups, and is as it was", async ({ page, api, signIn, go, axe, aria, screenshot }) => {
  await signIn();
  await go("/projects");
  await see(page.getByText("There is no project."));
  const empty = (await api("GET", "/system/consumers")).head;
  await page.getByRole("button", { name: "Create project" }).click();
  const dialog = page.getByRole("dialog", { name: "Create a project" });
  await dialog.getByLabel("Name").fill("Handbook of Größe");
  await dialog.getByLabel("Description").fill("How we work.");
  await axe();
  await dialog.getByRole("button", { name: "Create project" }).click();
  await see(page.getByRole("heading", { name: "Handbook of Größe" }));
  const [project] = (await api("GET", "/projects")).data;
  ok(page.url().endsWith(`/projects/${project.slug}`));
  await api("POST", "/articles", { title: "Pricing", project_id: project.id });
  await see(page.getByRole("link", { name: "Pricing" }));
  await axe();
  await screenshot("project");
  await page.getByRole("main").getByRole("link", { name: "Projects" }).click();
  await see(page.getByRole("region", { name: "Projects" }));
  await axe();
  await aria("projects", page.getByRole("region", { name: "Projects" }));
  await screenshot("projects");
  await page.getByRole("button", { name: "Create project" }).click();
  await dialog.getByLabel("Name").fill("Another");
  await dialog.getByLabel("Slug").fill(project.slug);
  await dialog.getByRole("button", { name: "Create project" }).click();
  await see(dialog.getByText("slug_taken"));
  equal(await dialog.getByLabel("Name").inputValue(), "Another");
  await go(`/projects?at=@${Math.max(empty, 1)}`);
  await see(page.getByText("There is no project at this moment."));
}, { expected: [409] });
