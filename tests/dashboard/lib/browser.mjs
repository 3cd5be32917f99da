// The browser that all stories of a process share, and the collection of faults in the browser.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PROGRAMS = ["/usr/bin/chromium-headless-shell", "/usr/lib/chromium/chromium", "/usr/bin/chromium"];
/** The time limit for an element to appear, in milliseconds. Machines that run tests are slow and busy. */
export const PATIENCE_MS = Number(process.env.PATIENCE_MS) || 15_000;

/** A name of this machine that browsers do not trust without TLS, other than 127.0.0.1. */
export const PLAIN_HOST = "plain.example";

/** @type {Promise<import("playwright-core").Browser> | null} */
let shared = null;

/** Returns the browser of this process. */
export function browser() {
  const executablePath = process.env.CHROMIUM || PROGRAMS.find((path) => existsSync(path));
  if (!executablePath) throw new Error("Chromium is missing: run tests/dashboard/install");
  shared ??= chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", `--host-resolver-rules=MAP ${PLAIN_HOST} 127.0.0.1`] });
  return shared;
}

/** Closes the browser, so that the process can end. */
export async function closeBrowser() {
  const open = shared;
  shared = null;
  await (await open)?.close();
}

/** @typedef {number | {status: number, path: RegExp}} Expected */

/**
 * Collects faults, which no story may cause: errors in the console, violations of the content security policy,
 * exceptions, and responses with a status of 400 or above that are not expected.
 *
 * @param {import("playwright-core").BrowserContext} context
 * @param {{expected: Expected[], isOffline: boolean}} options
 */
export function watch(context, options) {
  /** @type {string[]} */
  const faults = [];
  // Matches operations that the tested server does not have yet, for use during development.
  const tolerated = process.env.TOLERATE ? new RegExp(process.env.TOLERATE) : null;
  const isExpected = (/** @type {number} */ status, /** @type {string} */ url) => tolerated?.test(url) || options.expected.some((known) =>
    typeof known === "number" ? known === status : known.status === status && known.path.test(url));
  context.on("console", (message) => {
    if (message.type() !== "error" && message.type() !== "warning") return;
    const text = message.text();
    // Skips messages about failed responses, because the responses are checked below.
    if (/^Failed to load resource: the server responded/.test(text)) return;
    if (/ERR_(CONNECTION|INTERNET|NETWORK|INCOMPLETE|EMPTY)/.test(text) && options.isOffline) return;
    // Without TLS, the browser ignores this header at any other name than localhost.
    if (/^The Cross-Origin-Opener-Policy header has been ignored/.test(text) && message.location().url.includes(PLAIN_HOST)) return;
    faults.push(`console ${message.type()}: ${text}`);
  });
  context.on("weberror", (error) => { faults.push(`exception: ${error.error().stack}`); });
  context.on("response", (response) => {
    if (response.status() < 400 || isExpected(response.status(), response.url())) return;
    const request = response.request();
    faults.push(`response ${response.status()}: ${request.method()} ${request.url()} ${(request.postData() ?? "").slice(0, 300)}`);
  });
  return faults;
}

/** Reports violations of the content security policy. The browser reports these violations only to the page. */
export function reportViolations() {
  document.addEventListener("securitypolicyviolation", (event) => {
    console.error(`policy violated: ${event.violatedDirective} by ${event.blockedURI} at ${event.sourceFile}:${event.lineNumber}`);
  });
}
