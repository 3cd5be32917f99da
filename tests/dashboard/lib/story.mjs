// Stories: the actions of a person in the dashboard, against the real server. The API returns the outcomes to check.
//
//   import { story, see, gone, until, equal } from "../lib/story.mjs";
//
//   story("a key is revoked", async ({ page, api, signIn, go, axe, screenshot, aria }) => {
//     const made = await api("POST", "/keys", { name: "ci", scopes: ["api:read"] });
//     await signIn();                                    // with the owner key; signIn({ key }) with another key
//     await go("/settings/keys");
//     await page.getByRole("button", { name: "Revoke ci" }).click();
//     await gone(page.getByText("ci"));
//     await api("GET", "/keys/self", undefined, { key: made.key, expect: 401 });
//     await axe();                                       // the page in its current state
//     await aria("keys", page.getByRole("table"));       // compared with snapshots/<file>/keys.yml; UPDATE=1 writes it
//     await screenshot("keys");                          // only with SCREENSHOTS=folder: light, dark × 1280, 390 pixels
//   }, { expected: [409] });
//
// Each story has its own server and its own browser context. The server's store is `mem://`. With `isKept: true`, the
// store is a folder, so that `server.stop()` and `server.start()` restart the server on the same port with its data.
// `profile()` opens another context, as on another computer. `tab()` opens another tab of the same context. A story
// fails if there is any fault: an error or a warning in the console, a violation of the content security policy, an
// exception, or a status of 400 or above that `expected` does not list. No story waits for a fixed time: stories wait
// for elements (`see`, `gone`) or for an outcome (`until`).
//
// Options: expected (statuses, or {status, path: /…/}), isOffline (failed connections are expected), isKept,
// env and files of the server (see server.mjs), viewport, scheme ("dark").

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { browser, closeBrowser, PATIENCE_MS, reportViolations, watch } from "./browser.mjs";
import { startServer } from "./server.mjs";

export const equal = assert.deepEqual;
export const ok = assert.ok;

const FOLDER = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FILE = basename(process.argv[1] ?? "stories", ".mjs");
const STORY_MS = 300_000;
const LOOK_MS = 25;
const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];

/** @typedef {import("playwright-core").Locator} Locator */
/** @typedef {import("playwright-core").Page} Page */

/** Waits until an element is visible. @param {Locator} locator */
export async function see(locator) {
  await locator.filter({ visible: true }).first().waitFor({ state: "visible" });
  return locator;
}

/** Waits until no element is visible. @param {Locator} locator */
export const gone = (locator) => until(async () => (await locator.filter({ visible: true }).count()) === 0, () => `${locator} is still visible`);

/**
 * Waits until a function returns a true value, and returns this value.
 *
 * @template T
 * @param {() => Promise<T> | T} read @param {string | (() => string)} [what] the message if no true value is returned in time
 * @returns {Promise<T>}
 */
export async function until(read, what = "the outcome did not come") {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await read();
    if (value) return value;
    if (Date.now() > end) throw new Error(typeof what === "string" ? what : what());
    await new Promise((next) => { setTimeout(next, LOOK_MS); });
  }
}

/** Returns a function that calls the API without the browser. @param {string} url @param {string} defaultKey */
export function caller(url, defaultKey) {
  /**
   * @param {string} method @param {string} path below /api/v1, or the whole path of another surface
   * @param {any} [body] JSON, or a text that is sent unchanged
   * @param {{expect?: number, key?: string | null, headers?: Record<string, string>}} [options]
   * @returns {Promise<any>}
   */
  return async (method, path, body, { expect, key = defaultKey, headers = {} } = {}) => {
    const target = /^\/(functions|mcp|openapi|healthz|readyz|metrics)/.test(path) ? path : `/api/v1${path}`;
    const response = await fetch(url + target, {
      method,
      headers: { ...(key ? { Authorization: `Bearer ${key}` } : {}), ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await response.text();
    if (expect === undefined ? !response.ok : response.status !== expect) {
      throw new Error(`${method} ${path} answered ${response.status}${expect ? ` instead of ${expect}` : ""}: ${text.slice(0, 500)}`);
    }
    try { return JSON.parse(text); } catch { return text; }
  };
}

/** Signs in through the form. @param {Page} page @param {string} url @param {string} key */
async function enter(page, url, key) {
  await page.goto(`${url}/`);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await see(page.getByRole("navigation", { name: "Screens" }));
}

/** Goes to a screen without loading the application again. @param {Page} page @param {string} path */
async function show(page, path) {
  await page.evaluate(async (target) => {
    history.pushState(null, "", target);
    window.dispatchEvent(new PopStateEvent("popstate"));
    for (let frame = 0; frame < 3; frame += 1) await new Promise((next) => { requestAnimationFrame(next); });
  }, path);
  await see(page.locator("main").locator("h1, h2, [role=alert]").filter({ visible: true }));
  await gone(page.locator("main [aria-busy=true]"));
}

/** Runs axe on the page, and fails with all violations. @param {Page} page @param {object} [options] of axe.run */
export async function checkAxe(page, options = {}) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async (given) => {
    // Waits for animations, because they show temporary colors.
    await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
    // @ts-ignore
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"], ...given });
    return violations.map((/** @type {any} */ rule) => `${rule.id} (${rule.impact}): ${rule.help}\n${rule.nodes.slice(0, 5).map((/** @type {any} */ node) =>
      `    ${node.target.join(" ")}\n      ${node.html.slice(0, 200)}\n      ${(node.failureSummary ?? "").split("\n").slice(1, 3).join("; ").trim()}`).join("\n")}`);
  }, options);
  if (found.length > 0) throw new Error(`axe found ${found.length} faults at ${page.url()}:\n  ${found.join("\n  ")}`);
}

/** Replaces the values that differ between runs. @param {string} text */
function masked(text) {
  return text
    .replace(/sk_[0-9a-f]{64}/g, "sk_SECRET").replace(/sk_[0-9a-f]{4}…[0-9a-f]{2}/g, "sk_KEY")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "ID")
    .replace(/\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?/g, "TIME")
    .replace(/\b(now|(in )?\d+ (second|minute|hour|day)s?( ago)?|this minute|yesterday|tomorrow)\b/g, "TIME")
    // The version of a task and its mark differ, because the event that marks the task as read may not have been appended yet.
    .replace(/"v\d+"/g, '"vN"')
    .replace(/Mark as (un)?read/g, "Mark as READ")
    .replace(/127\.0\.0\.1:\d+/g, "SERVER");
}

/** Compares the accessibility tree of an element with the snapshot of that name. @param {string} name @param {Locator} locator */
export async function checkAria(name, locator) {
  const file = join(FOLDER, "snapshots", FILE, `${name}.yml`);
  const found = `${masked(await locator.ariaSnapshot())}\n`;
  if (process.env.UPDATE) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, found);
    return;
  }
  let known = "";
  try { known = readFileSync(file, "utf8"); } catch { throw new Error(`${file} is missing; UPDATE=1 writes it`); }
  assert.equal(found, known, `the snapshot ${name} differs; UPDATE=1 rewrites it`);
}

/** Writes screenshots of a page, if SCREENSHOTS names a folder. @param {Page} page @param {string} name */
export async function photograph(page, name) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  const before = page.viewportSize() ?? SIZES[0];
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    for (const size of SIZES) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(size);
      await page.evaluate(() => new Promise((next) => { requestAnimationFrame(() => requestAnimationFrame(next)); }));
      await page.screenshot({ path: join(folder, `${name}-${colorScheme}-${size.width}.png`), animations: "disabled" });
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(before);
}

let hasEnd = false;

/**
 * @typedef {object} Tools
 * @property {Page} page @property {import("playwright-core").BrowserContext} context
 * @property {import("playwright-core").Browser} browser
 * @property {Awaited<ReturnType<typeof startServer>>} server @property {ReturnType<typeof caller>} api
 * @property {(options?: {key?: string, page?: Page}) => Promise<void>} signIn
 * @property {(path: string, page?: Page) => Promise<void>} go loads an address, as if a person typed it
 * @property {(path: string, page?: Page) => Promise<void>} show goes to a screen within the application, and waits until
 * it has loaded
 * @property {(page?: Page) => Promise<void>} axe @property {(name: string, page?: Page) => Promise<void>} screenshot
 * @property {(name: string, locator?: Locator) => Promise<void>} aria
 * @property {() => Promise<Page>} tab @property {() => Promise<Page>} profile
 * @property {string[]} faults the faults so far
 */

/**
 * Defines a story.
 *
 * @param {string} name @param {(tools: Tools) => Promise<void>} tell
 * @param {import("./server.mjs").ServerOptions & {expected?: import("./browser.mjs").Expected[], isOffline?: boolean,
 *   viewport?: {width: number, height: number}, scheme?: "light" | "dark", skip?: string, only?: boolean}} [options]
 */
export function story(name, tell, { expected = [], isOffline = false, viewport = SIZES[0], scheme = "light", skip, only, ...serverOptions } = {}) {
  if (!hasEnd) after(closeBrowser);
  hasEnd = true;
  test(name, { timeout: STORY_MS, skip, only }, async () => {
    const [server, shared] = await Promise.all([startServer(serverOptions), browser()]);
    /** @type {import("playwright-core").BrowserContext[]} */
    const contexts = [];
    /** @type {string[][]} */
    const watched = [];
    const open = async () => {
      const context = await shared.newContext({ viewport, colorScheme: scheme, locale: "en-GB", timezoneId: "UTC", permissions: ["clipboard-read", "clipboard-write"] });
      context.setDefaultTimeout(PATIENCE_MS);
      await context.addInitScript(reportViolations);
      watched.push(watch(context, { expected, isOffline }));
      contexts.push(context);
      return context;
    };
    try {
      const context = await open();
      const page = await context.newPage();
      const faults = () => watched.flat();
      await tell({
        page, context, browser: shared, server, api: caller(server.url, server.key),
        signIn: ({ key = server.key, page: other = page } = {}) => enter(other, server.url, key),
        go: async (path, other = page) => { await other.goto(server.url + path); },
        show: (path, other = page) => show(other, path),
        axe: (other = page) => checkAxe(other),
        screenshot: (picture, other = page) => photograph(other, picture),
        aria: (snapshot, locator = page.locator("body")) => checkAria(snapshot, locator),
        tab: () => context.newPage(),
        profile: async () => (await open()).newPage(),
        get faults() { return faults(); },
      });
      assert.deepEqual(faults(), [], "the story left something behind");
    } catch (error) {
      const [page] = contexts[0]?.pages() ?? [];
      if (page && error instanceof Error) {
        const seen = await page.locator("body").ariaSnapshot().catch(() => "");
        error.stack += `\n\nat ${page.url()}\n${watched.flat().join("\n")}\n${seen.slice(0, 4_000)}`;
        if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `failed-${FILE}.png`) }).catch(() => {});
      }
      throw error;
    } finally {
      await Promise.all(contexts.map((context) => context.close()));
      await server.remove();
    }
  });
}
