// A server for one story: the real binary with an empty store, its own port and a known owner key.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
const START_MS = 120_000;
const STOP_MS = 20_000;
/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
process.on("exit", () => { for (const child of running) child.kill("SIGKILL"); });

/** The tested program. */
export const binary = process.env.FOLDWORK_BINARY || join(process.env.CARGO_TARGET_DIR || join(REPOSITORY, "target"), "debug/foldwork");

/**
 * @typedef {object} ServerOptions
 * @property {Record<string, string>} [env] settings, such as `FOLDWORK_HTTP__BODY_LIMIT`
 * @property {Record<string, string>} [files] files in the folder where the server starts: `config.toml`, `plugins/…`
 * @property {boolean} [isKept] whether the store is a folder, so that it survives a restart
 */

/** Starts a server. @param {ServerOptions} [options] */
export async function startServer({ env = {}, files = {}, isKept = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "foldwork-story-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const key = `sk_${randomBytes(32).toString("hex")}`;
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith("FOLDWORK_") && !name.toLowerCase().endsWith("_proxy"));
  const server = {
    key, folder, url: "", port: 0, output: "",
    /** @type {import("node:child_process").ChildProcess | null} */
    child: null,

    /** Starts the server. A restart uses the same port. */
    async start() {
      const child = spawn(binary, ["serve", "--listen", `127.0.0.1:${server.port}`], {
        cwd: folder,
        env: {
          ...Object.fromEntries(clean), FOLDWORK_BOOTSTRAP_KEY: key,
          FOLDWORK_STORE__URL: isKept ? `surrealkv://${join(folder, "db")}` : "mem://", FOLDWORK_FILES__URL: "mem://", ...env,
        },
        stdio: ["ignore", "pipe", "pipe"],
      });
      running.add(child);
      server.child = child;
      await new Promise((done, fail) => {
        const timer = setTimeout(() => fail(new Error(`the server did not start:\n${server.output}`)), START_MS);
        const read = (/** @type {Buffer} */ data) => {
          server.output += data;
          const found = /listening on (http:\/\/[\d.]+:(\d+))/.exec(server.output);
          if (!found) return;
          [, server.url] = found;
          server.port = Number(found[2]);
          clearTimeout(timer);
          done(undefined);
        };
        child.stdout?.on("data", read);
        child.stderr?.on("data", read);
        child.once("error", (error) => { clearTimeout(timer); fail(error); });
        child.once("exit", (code) => { clearTimeout(timer); fail(new Error(`the server ended with ${code}:\n${server.output}`)); });
      });
    },

    /** Stops the server and waits until the process has ended. @param {NodeJS.Signals} [signal] */
    async stop(signal = "SIGTERM") {
      const { child } = server;
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((done) => { child.once("exit", done); });
      child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await gone;
      clearTimeout(timer);
      running.delete(child);
      server.output = "";
    },

    /** Kills the server and removes its folder. */
    async remove() {
      await server.stop("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}
