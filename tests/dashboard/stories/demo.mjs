// The demo: the link that it prints opens a first screen with the imported history, a pipeline and a task to approve.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PATIENCE_MS } from "../lib/browser.mjs";
import { binary } from "../lib/server.mjs";
import { ok, see, story, until } from "../lib/story.mjs";

/** Creates a repository whose Markdown files have a history. @param {string} folder */
function repository(folder) {
  mkdirSync(join(folder, "notes"), { recursive: true });
  const git = (/** @type {string[]} */ ...given) => execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...given], { cwd: folder, stdio: "ignore" });
  git("init", "-q");
  for (const [index, text] of ["Soil is alive.", "Soil is alive. Feed it with [compost](compost.md).", "Soil is alive. Feed it with [compost](compost.md) in autumn."].entries()) {
    writeFileSync(join(folder, "notes/soil.md"), `# Soil\n\n${text}\n`);
    if (index === 1) writeFileSync(join(folder, "notes/compost.md"), "# Compost\n\nLayers of green and brown feed the soil.\n");
    git("add", "-A");
    git("commit", "-q", "-m", `Describes the soil, part ${index + 1}`, "--date", `2026-01-0${index + 1}T10:00:00Z`);
  }
}

story("the link of the demo opens a screen with a history, a pipeline and a task to approve", async ({ page, server, axe, screenshot }) => {
  const folder = join(server.folder, "garden");
  repository(folder);
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith("FOLDWORK_") && !name.toLowerCase().endsWith("_proxy"));
  const demo = spawn(binary, ["demo", "--listen", "127.0.0.1:0", folder], { cwd: server.folder, env: { ...Object.fromEntries(clean), HOME: server.folder, XDG_DATA_HOME: join(server.folder, "data") }, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [demo.stdout, demo.stderr]) stream.on("data", (data) => { output += data; });
  try {
    const start = Date.now();
    const link = await until(() => {
      ok(demo.exitCode === null && Date.now() - start < 4 * PATIENCE_MS, output);
      return /open once in a browser: (\S+)/.exec(output)?.[1];
    }, () => output);
    await until(() => /imported/.test(output), () => output);
    await page.goto(link);
    await see(page.getByRole("heading", { name: "Latest events" }));
    ok(!page.url().includes("sic_"), "the code leaves the address");
    await see(page.getByRole("heading", { name: /^\d+\+? tasks? waits? for a decision/ }));
    await see(page.getByRole("paragraph").getByRole("link", { name: "Most revised articles" }));
    await see(page.getByRole("row", { name: /Soil/ }));
    await see(page.getByRole("link", { name: "garden", exact: true }));
    await axe();
    await screenshot("demo");
    await page.getByRole("paragraph").getByRole("link", { name: "Most revised articles" }).click();
    await see(page.getByRole("region", { name: "Results" }).getByText("Soil"));
    await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Inbox" }).click();
    await page.getByRole("list", { name: "Tasks" }).getByRole("link").first().click();
    await see(page.getByRole("region", { name: "Task", exact: true }).getByRole("button", { name: /^Approve/ }));
    await screenshot("demo-inbox");
  } finally {
    await page.goto("about:blank").catch(() => {});
    const gone = new Promise((done) => { demo.once("exit", done); });
    demo.kill("SIGKILL");
    await gone;
  }
});
