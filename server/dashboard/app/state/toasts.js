// Short messages, and actions that can still be undone.

import { signal } from "../vendor/ui.js";
import { isHeld } from "../api/client.js";
import { beforeEnd, isLeaving } from "../api/session.js";

const SHOWN_MS = 6_000;
export const UNDO_MS = 5_000;

/** @typedef {{id: number, text: string, kind: "info" | "error", detail?: string, link?: {to: string, text: string}, undo?: () => void}} Toast */
/** @type {import("../vendor/ui.js").Signal<Toast[]>} */
export const toasts = signal([]);
let last = 0;

/** @param {number} id */
export function dismiss(id) {
  toasts.value = toasts.peek().filter((toast) => toast.id !== id);
}

/** Shows a message. Returns its id. @param {string} text @param {Partial<Toast>} [more] @param {number} [ms] */
export function say(text, more = {}, ms = SHOWN_MS) {
  const toast = { id: ++last, text, kind: /** @type {const} */ ("info"), ...more };
  toasts.value = [...toasts.peek(), toast];
  if (ms) setTimeout(() => dismiss(toast.id), ms);
  return toast.id;
}

/** The code and the request of an error, for a search in the logs. @param {any} error */
export const detailOf = (error) => [error.code, error.requestId && `request ${error.requestId}`].filter(Boolean).join(" · ");

/** Shows the error of a call. @param {any} error @param {string} [what] */
export function complain(error, what = "") {
  say(what ? `${what}: ${error.message}` : error.message, { kind: "error", detail: detailOf(error) }, 15_000);
}

/** @type {Set<(leaving: boolean) => Promise<void> | void>} */
const waiting = new Set();
/** The operations that a sign-out waits for. @type {Set<Promise<any>>} */
const running = new Set();

/** Makes a sign-out wait until an operation is complete. @template T @param {Promise<T>} work @returns {Promise<T>} */
export function hold(work) {
  /** @type {Promise<T>} */
  const done = work.finally(() => running.delete(done));
  running.add(done);
  return done;
}

/**
 * Performs an action after five seconds, unless the action is undone. Leaving the page performs the action immediately.
 *
 * @param {string} text @param {(leaving: boolean) => Promise<void> | void} commit @param {() => void} revert
 */
export function afterUndo(text, commit, revert) {
  const finish = (/** @type {boolean} */ leaving) => {
    if (!waiting.delete(finish)) return;
    clearTimeout(timer);
    dismiss(id);
    return hold(Promise.resolve(commit(leaving)));
  };
  const timer = setTimeout(() => finish(false), UNDO_MS);
  const undo = () => {
    if (!waiting.delete(finish)) return;
    clearTimeout(timer);
    dismiss(id);
    revert();
  };
  waiting.add(finish);
  const id = say(text, { undo }, 0);
}

/** Undoes the last action that can still be undone. */
export function undoLast() {
  toasts.peek().findLast((toast) => toast.undo)?.undo?.();
}

/** Performs all actions that can still be undone immediately, and waits until all operations are complete. @param {boolean} [leaving] whether the page is being left */
export function finishAll(leaving = false) {
  for (const finish of [...waiting]) finish(leaving);
  return Promise.allSettled([...running]);
}
beforeEnd(() => finishAll(true));

/** @param {Event} event */
function leave(event) {
  finishAll(true);
  // While the browser asks whether to leave the page, the requests that cannot outlive the page are sent.
  if (isHeld() && !isLeaving.peek()) event.preventDefault();
}
// A busy browser may end a page before `pagehide` has run, but it waits for `beforeunload`.
for (const leaving of ["beforeunload", "pagehide"]) window.addEventListener(leaving, leave);
