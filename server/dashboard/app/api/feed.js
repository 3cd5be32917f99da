// The log as it grows: one stream for all visible tabs of a session, resumed by position.
//
// A browser opens at most six connections to a server, so seven streams would block each other. The tab that holds a
// lock reads the stream and passes the events on to the other tabs. When this tab is hidden or closed, another tab
// takes over the lock.

import { signal } from "../vendor/ui.js";
import { API } from "./client.js";
import { parse } from "./json.js";
import { credentials, forget, has, session } from "./session.js";

const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];
/** The maximum number of events per request of a tab that catches up. */
const PAGE = 200;

/** `live` while the stream is open, `paused` in a hidden tab, `offline` after a failure. */
export const connection = signal("paused");
/** @type {Set<(event: any) => void>} */
const listeners = new Set();
/** @type {AbortController | null} */
let running = null;
/** The position up to which this tab has received the log. @type {number | null} */
let position = null;
/** The channel between the tabs of a session. @type {BroadcastChannel | null} */
let tabs = null;
/** Events that another tab passed on while this tab catches up. @type {any[] | null} */
let waiting = null;

/**
 * Calls a function with each event that is appended after this call. Returns a function that ends these calls.
 *
 * @param {(event: any) => void} listener
 */
export function listen(listener) {
  listeners.add(listener);
  update();
  return () => {
    listeners.delete(listener);
    update();
  };
}

/** Joins the stream while this tab is visible and has listeners and a session. Otherwise leaves the stream. */
function update() {
  const isNeeded = listeners.size > 0 && document.visibilityState === "visible" && session.peek() !== null && has("api:read");
  if (isNeeded && !running) {
    running = new AbortController();
    join(running.signal);
  } else if (!isNeeded && running) {
    running.abort();
    running = null;
    tabs?.close();
    tabs = null;
    waiting = null;
    connection.value = "paused";
  }
}

document.addEventListener("visibilitychange", update);
session.subscribe(() => {
  if (!session.peek()) position = null;
  update();
});

/** Takes part in the stream. Reads the stream once the lock is free, and until then gets the events that another tab passes on. @param {AbortSignal} abort */
function join(abort) {
  // A token of an identity provider has no id, and opens several workspaces.
  const { id = "", whose = "", workspace = "" } = session.peek() ?? {};
  const name = `foldwork.feed.${[id, whose, workspace].join(".")}`;
  // Without a secure context, the browser has no locks, and each tab reads its own stream.
  if (!navigator.locks) return follow(abort);
  const channel = new BroadcastChannel(name);
  let isReader = false;
  tabs = channel;
  channel.onmessage = ({ data }) => {
    if (data.ask && isReader) channel.postMessage({ state: connection.peek() });
    if (isReader) return;
    if (data.state) connection.value = data.state;
    if (data.event) receive(parse(data.event));
  };
  channel.postMessage({ ask: true });
  catchUp(abort);
  navigator.locks.request(name, { signal: abort }, () => {
    isReader = true;
    waiting = null;
    return follow(abort);
  }).catch(() => {});
}

/** Reads the events that were appended while this tab was hidden. @param {AbortSignal} abort */
async function catchUp(abort) {
  const mine = (waiting = /** @type {any[]} */ ([]));
  try {
    while (mine === waiting && position !== null) {
      const page = await request(`/events?after=${position}&limit=${PAGE}`, abort);
      if (mine !== waiting) return;
      page.data.forEach(deliver);
      if (page.data.length < PAGE) break;
    }
    if (position === null) {
      const { head } = await request("/system/consumers", abort);
      // Events that another tab passed on meanwhile are delivered below.
      if (mine === waiting) position = Math.min(head, ...mine.map((event) => event.position - 1));
    }
  } catch {
    // The tab that reads the stream reports whether the server can be reached.
  }
  if (mine !== waiting || abort.aborted) return;
  waiting = null;
  mine.forEach(deliver);
}

/** @param {string} path @param {AbortSignal} abort */
async function request(path, abort) {
  const response = await fetch(API + path, { headers: credentials(), signal: abort });
  if (response.status === 401) forget();
  if (!response.ok) throw new Error(`status ${response.status}`);
  return parse(await response.text());
}

/** @param {any} event */
function receive(event) {
  if (waiting) waiting.push(event);
  else deliver(event);
}

/** @param {any} event */
function deliver(event) {
  if (position !== null && event.position <= position) return;
  position = event.position;
  for (const listener of listeners) listener(event);
}

/** @param {string} state */
function tell(state) {
  connection.value = state;
  tabs?.postMessage({ state });
}

/** @param {AbortSignal} abort */
async function follow(abort) {
  for (let failures = 0; !abort.aborted; failures += 1) {
    try {
      await read(abort, () => { failures = 0; });
    } catch {
      if (abort.aborted) return;
    }
    if (abort.aborted) return;
    tell("offline");
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
  }
}

/** @param {AbortSignal} abort @param {() => void} opened */
async function read(abort, opened) {
  if (position === null) position = (await request("/system/consumers", abort)).head;
  // The first screen signs in, and needs no stream.
  const { createParser } = await import("../vendor/stream.js");
  const response = await fetch(`${API}/events?after=${position}`, { headers: { ...credentials(), Accept: "text/event-stream" }, signal: abort });
  if (response.status === 401) return forget();
  if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
  tell("live");
  opened();
  const parser = createParser({
    onEvent: ({ data }) => {
      tabs?.postMessage({ event: data });
      deliver(parse(data));
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body) parser.feed(decoder.decode(chunk, { stream: true }));
}
