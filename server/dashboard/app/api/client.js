// Calls of the API: the key, the errors and the exact numbers of every request.

import { signal } from "../vendor/ui.js";
import { parse, stringify } from "./json.js";
import { credentials, forget, recheck } from "./session.js";

export const API = "/api/v1";

/** The last calls of this tab, newest first, for the panel that shows a screen's requests. */
export const calls = signal(/** @type {{method: string, path: string, body?: unknown, headers: Record<string, string>, file?: string, screen: string}[]} */ ([]));
const KEPT_CALLS = 60;

/** The maximum size of all bodies that outlive the page, in bytes. Browsers reject more than 64 KiB. */
const OUTLIVING = 60_000;
let outliving = 0;

/** Whether the bodies in progress are too large to outlive the page. */
export const isHeld = () => outliving > OUTLIVING;

/** An error response of the server, or the failure to get a response. */
export class ApiError extends Error {
  /** @param {number} status @param {any} body @param {string} path */
  constructor(status, body, path) {
    super(body?.error ?? (status ? `the server answered with status ${status}` : "the server cannot be reached"));
    this.status = status;
    this.code = body?.code ?? (status ? "unknown" : "offline");
    this.requestId = body?.request_id ?? "";
    this.body = body ?? {};
    this.path = path;
  }
}

/**
 * @typedef {object} Options
 * @property {Record<string, string | number | boolean | undefined | null>} [query]
 * @property {unknown} [body]
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {boolean} [keepalive]
 */

/** @param {string} path @param {Options["query"]} query */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** The headers of a call, without the key. @param {Record<string, string>} [more] */
export function told(more = {}) {
  const { Authorization, ...headers } = { ...credentials(), ...more };
  return headers;
}

/** Remembers a call. @param {string} method @param {string} path @param {unknown} [body] @param {Record<string, string>} [headers] @param {string} [file] the name of a file that is sent */
export function record(method, path, body, headers, file) {
  calls.value = [{ method, path, body, headers: told(headers), file, screen: location.pathname }, ...calls.peek()].slice(0, KEPT_CALLS);
}

/**
 * Calls an operation and returns its JSON.
 *
 * @param {string} method @param {string} path below the base of the API @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function call(method, path, { query, body, headers = {}, signal: abort, keepalive } = {}) {
  const target = address(path, query);
  record(method, target, body, headers);
  /** @type {Record<string, string>} */
  const sent = { Accept: "application/json", ...credentials(), ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const content = body === undefined ? undefined : stringify(body);
  const bytes = keepalive ? new Blob([content ?? ""]).size : 0;
  outliving += bytes;
  let response;
  try {
    response = await fetch(API + target, { method, headers: sent, body: content, signal: abort, keepalive: keepalive && !isHeld() });
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new ApiError(0, null, target);
  } finally {
    outliving -= bytes;
  }
  const text = await response.text();
  const answer = text ? read(text) : null;
  if (response.ok) return answer;
  // A key that was entered for one request does not show whether the session is valid.
  if (response.status === 401 && !headers.Authorization) forget();
  if (response.status === 403 && !headers.Authorization) recheck();
  throw new ApiError(response.status, answer, target);
}

/** @param {string} text */
function read(text) {
  try {
    return parse(text);
  } catch {
    return { error: text.slice(0, 200) };
  }
}

/** @param {string} path @param {Options["query"]} [query] @param {AbortSignal} [abort] */
export const get = (path, query, abort) => call("GET", path, { query, signal: abort });

/**
 * Returns all rows of a list. A list has one page unless its rows are large or many.
 *
 * @param {string} path @param {AbortSignal} [abort]
 * @returns {Promise<{data: any[], next_cursor: null}>}
 */
export async function getAll(path, abort) {
  const data = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    const page = /** @type {any} */ (await get(path, { cursor }, abort));
    data.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor);
  return { data, next_cursor: null };
}

/** @param {string} path @param {unknown} [body] @param {Options} [options] */
export const post = (path, body = {}, options = {}) => call("POST", path, { body, ...options });

/** Runs a pipeline. @param {object[]} pipeline @param {object} [more] @param {AbortSignal} [abort] */
export const query = (pipeline, more = {}, abort) => call("POST", "/aggregates/query", { body: { pipeline, ...more }, signal: abort });
