// The address of the page: the screen, and the moment that the whole application shows.

import { computed, signal } from "../vendor/ui.js";

/** @typedef {{path: string[], query: URLSearchParams, hash: string}} Route */

/** A part of an address, which a user may have typed. @param {string} text */
export function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

/** @returns {Route} */
function current() {
  const path = location.pathname.split("/").filter(Boolean).map(decoded);
  return { path, query: new URLSearchParams(location.search), hash: location.hash.slice(1) };
}

export const route = signal(current());
window.addEventListener("popstate", () => { route.value = current(); });

/** Shows another address. @param {string} target @param {{replace?: boolean}} [options] */
export function go(target, { replace = false } = {}) {
  if (target === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  route.value = current();
}

/**
 * Returns the address of a screen. The moment of the application stays.
 *
 * @param {string} path @param {Record<string, string | number | null | undefined>} [query]
 */
export function to(path, query = {}) {
  const parameters = new URLSearchParams();
  const at = route.peek().query.get("at");
  if (at) parameters.set("at", at);
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") parameters.delete(name);
    else parameters.set(name, String(value));
  }
  const text = parameters.toString().replaceAll("%3A", ":").replaceAll("%40", "@");
  return text ? `${path}?${text}` : path;
}

/** Changes parameters of the current address. @param {Record<string, string | number | null | undefined>} changes */
export function change(changes, options = {}) {
  const { query } = route.peek();
  const kept = Object.fromEntries([...query].filter(([name]) => name !== "at"));
  go(to(location.pathname, { ...kept, ...changes }), options);
}

/** A moment: `null` for now, a time, or a position of the log. @typedef {null | {time: string} | {position: number}} Moment */

/**
 * Reads a moment from an address: nothing or `now`, a time, or `@` and a position. Any other text counts as a time,
 * which the server rejects, because the application must not show the present for such a text.
 *
 * @param {string | null} text @returns {Moment}
 */
export function readMoment(text) {
  if (!text || text === "now") return null;
  const position = text.startsWith("@") ? Number(text.slice(1)) : 0;
  return Number.isSafeInteger(position) && position > 0 ? { position } : { time: text };
}

/** The text of a moment in an address. The text of now is empty. @param {Moment} moment */
export const writeMoment = (moment) => (!moment ? "" : "position" in moment ? `@${moment.position}` : moment.time);

/** The `at` of the address: one moment, or two moments that are compared. */
const at = computed(() => route.value.query.get("at") ?? "");
const both = computed(() => at.value.split("..", 2));

/** The moment that the application shows. While two moments are compared, this is the later moment. */
export const moment = computed(() => readMoment(both.value.at(-1) ?? null));

/** Whether two moments are compared, with `?at=A..B`. Without B, the later moment is now. */
export const isCompared = computed(() => both.value.length === 2 && readMoment(both.value[0]) !== null);

/** The earlier of two compared moments, or null if none are compared. */
export const earlier = computed(() => (isCompared.value ? readMoment(both.value[0]) : null));

/** The argument of `$fold` for a moment. @param {Moment} when */
export const foldAt = (when) => (!when ? {} : "position" in when ? { position: when.position } : { at: when.time });

/** The parameters of `GET /aggregates/{id}` and its graph for a moment. @param {Moment} when @returns {Record<string, string | number>} */
export const parametersAt = (when) => (!when ? {} : "position" in when ? { position: when.position } : { at: when.time });

/** The argument of `$fold` for the current moment. */
export const fold = computed(() => foldAt(moment.value));
