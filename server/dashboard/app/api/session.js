// The key with which this tab calls the API: entered, exchanged for a one-time code, or taken over from another tab.

import { signal } from "../vendor/ui.js";
import { parse } from "./json.js";

const STORED = "foldwork.session";
const HOURS = 12;
const PATIENCE_MS = 150;
/** The time for which the end of a session waits for the decisions of a page, in milliseconds. */
const DECIDED_MS = 5_000;
const READ = "api:read";
const WRITE = "api:write";
const CONTENT = "content:read";

/**
 * @typedef {object} Session
 * @property {string} key the secret key
 * @property {string} id the id of the key
 * @property {boolean} derived whether this session made the key, so that signing out revokes it
 * @property {string[]} scopes
 * @property {string} [role] the role of the user in the workspace
 * @property {boolean} [isForAgents] whether the key acts for agents only
 * @property {string} [refresh] the refresh token of the identity provider
 * @property {number} [ends] when the token ends
 * @property {string} [workspace] the workspace, if a token of an identity provider opens several
 * @property {string} [whose] the user who signed in, and the workspace of the key
 */

/** Whether this tab takes over the session of another tab. */
let asking = false;
/** The session of this tab, or null. @type {import("../vendor/ui.js").Signal<Session | null>} */
export const session = signal(stored());
/** Whether the page is about to load again, without any data of the previous user. */
export const isLeaving = signal(false);
/** The user and the workspace whose data this page has, or null if no user has signed in. */
let owner = session.peek() ? session.peek()?.whose ?? "" : null;

/** @returns {Session | null} */
function stored() {
  const text = sessionStorage.getItem(STORED);
  return text ? JSON.parse(text) : null;
}

/** @param {Session | null} next */
function set(next) {
  if (next) sessionStorage.setItem(STORED, JSON.stringify(next));
  else sessionStorage.removeItem(STORED);
  asking = false;
  const isOther = next !== null && owner !== null && owner !== (next.whose ?? "");
  if (isOther) return leave(() => location.reload());
  if (next) owner = next.whose ?? "";
  session.value = next;
}

/** Hides the page until the page loads again. @param {() => void} begin */
function leave(begin) {
  isLeaving.value = true;
  // The browser may keep this page in its cache for going back.
  addEventListener("pageshow", () => location.reload());
  // Runs after the next render, which hides the page.
  setTimeout(begin);
}

/** Forgets the session and the page. */
function end() {
  set(null);
  leave(() => location.assign("/"));
}

/** Sends the decisions of the page. @type {() => Promise<unknown>} */
let finish = () => Promise.resolve();

/** Sets the function that this page calls before another tab ends the page. @param {() => Promise<unknown>} how */
export function beforeEnd(how) {
  finish = how;
}

/** Waits for this time, or until the page ends. @param {number} ms */
const pause = (ms) => new Promise((over) => { setTimeout(over, ms); addEventListener("pagehide", over); });

/** Ends this page if its user has signed out in another tab. @param {{id: string, whose?: string}} out the session of that tab */
async function follow({ id, whose = "" }) {
  if (owner !== whose || isLeaving.peek()) return;
  const own = session.peek();
  isLeaving.value = true;
  sessionStorage.removeItem(STORED);
  const isShared = own?.id === id;
  if (isShared) tabs.postMessage({ deciding: 1 });
  await Promise.race([finish(), pause(DECIDED_MS)]);
  // The other tab revokes only its own key, after the tabs that share the key have reported that they are done.
  if (isShared) tabs.postMessage({ deciding: -1 });
  else revoke(own);
  end();
}

/** The number of other tabs whose decisions need the key that is about to be revoked. */
let deciding = 0;
/** Called when the last of these tabs is done. */
let decided = () => {};

/** The reason why a session ended without a sign-out. */
export const ended = signal("");

/** Returns the reason why the caller does not have the rights of a scope, as a sentence, or an empty text. @param {string} scope */
export function lacks(scope) {
  const { scopes = [], role, isForAgents } = session.value ?? {};
  if (!scopes.includes(scope)) return `This key lacks the scope ${scope}.`;
  if (!scope.endsWith(":write")) return "";
  if (isForAgents) return "This key works on tasks of agents and changes nothing else.";
  return role === "viewer" ? "You are a viewer of this workspace, and viewers only read." : "";
}

/** Whether the caller has the rights of a scope. @param {string} scope */
export const has = (scope) => lacks(scope) === "";

/** The headers that authenticate a request and select its workspace. */
export function credentials() {
  const { key = "", workspace } = session.peek() ?? {};
  /** @type {Record<string, string>} */
  const headers = { Authorization: `Bearer ${key}` };
  if (workspace) headers["Foldwork-Workspace"] = workspace;
  return headers;
}

const tabs = new BroadcastChannel("foldwork.session");
tabs.onmessage = (/** @type {MessageEvent} */ { data }) => {
  if (data === "ask" && session.value && !isLeaving.value) tabs.postMessage({ session: session.value });
  if (data?.out) follow(data.out);
  if (data?.deciding && (deciding += data.deciding) === 0) decided();
  if (data?.renewed && session.value?.refresh && session.value.whose === data.whose) set({ ...session.value, ...data.renewed });
  if (data?.session && !session.value && asking) set(data.session);
};

/** Requests the session of another tab of this browser. A new tab has no session. */
export async function askOtherTabs() {
  if (session.value) return;
  asking = true;
  tabs.postMessage("ask");
  // A busy tab may respond later. This tab accepts its session until a user signs in here.
  await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
}

/** Returns a response as JSON, or null if the response is not JSON. @param {string} text */
function read(text) {
  try { return parse(text || "null"); } catch { return null; }
}

/** @param {string} path @param {string | null} key @param {string} [method] @param {object} [body] @param {string} [workspace] */
async function request(path, key, method = "GET", body = undefined, workspace = undefined) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (workspace) headers["Foldwork-Workspace"] = workspace;
  if (body) headers["Content-Type"] = "application/json";
  // A revocation outlives the page.
  const response = await fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body), keepalive: method === "DELETE" });
  const answer = read(await response.text());
  if (!response.ok) throw Object.assign(new Error(answer?.error ?? `the server answered with status ${response.status}`), { status: response.status, code: answer?.code ?? "unknown", requestId: answer?.request_id ?? "" });
  return answer;
}

/** The name of a session's key in the list of keys. */
function name() {
  const agent = navigator.userAgent;
  const browser = ["Firefox", "Edg", "Chrome", "Safari"].find((known) => agent.includes(known)) ?? "browser";
  return `dashboard · ${browser === "Edg" ? "Edge" : browser}`;
}

/** Returns the fields of a profile that a session has. @param {any} profile */
const ofProfile = ({ id, workspace_id: workspace, scopes, role }) => ({ whose: `${id} ${workspace}`, scopes, role });

/**
 * Signs in with a key. The tab creates its own key, which expires after twelve hours, and forgets the entered key. If
 * the entered key cannot create keys, the tab keeps the entered key. The tab also keeps a token of an identity
 * provider, which expires on its own.
 *
 * @param {string} entered
 */
export async function signIn(entered) {
  const kept = { key: entered, id: "", derived: false };
  ended.value = "";
  try {
    const profile = ofProfile(await request("/profile", entered)), { scopes, role } = profile;
    if (!entered.startsWith("sk_")) return set({ ...kept, ...profile });
    const own = scopes.includes(READ) ? await request("/keys/self", entered) : { id: "" };
    const isForAgents = (own.agent_ids ?? []).length > 0;
    if (!scopes.includes(READ) || !scopes.includes(WRITE) || isForAgents || role === "viewer") return set({ ...kept, ...profile, id: own.id, isForAgents });
    const latest = Date.now() + HOURS * 3_600_000;
    const expires = own.expires_at ? Math.min(latest, Date.parse(own.expires_at)) : latest;
    const made = await request("/keys", entered, "POST", { name: name(), scopes: own.scopes, expires_at: new Date(expires).toISOString() });
    set({ ...profile, key: made.key, id: made.id, derived: true, scopes: made.scopes });
  } catch (/** @type {any} */ error) {
    // The plan has lapsed: the tab keeps the entered key, which can only read.
    if (error.status === 402) return keep(kept);
    if (error.code !== "insufficient_scope") throw error;
    await request("/articles?limit=1", entered);
    set({ ...kept, scopes: [CONTENT] });
  }
}

/** @param {{key: string, id: string, derived: boolean}} kept */
async function keep(kept) {
  const [own, profile] = await Promise.all([request("/keys/self", kept.key), request("/profile", kept.key)]);
  set({ ...kept, ...ofProfile(profile), id: own.id, scopes: own.scopes });
}

/** Signs in with the code of a one-time link. @param {string} code */
export async function exchange(code) {
  const made = await request("/keys/sign-in-codes/exchange", null, "POST", { code, name: name() });
  const profile = await request("/profile", made.key).then(ofProfile, () => ({}));
  set({ ...profile, key: made.key, id: made.id, derived: true, scopes: made.scopes });
}

/** Fetches the caller's rights again. Called when the server rejects a request that the session seems to allow. */
export async function recheck() {
  const { value } = session;
  if (!value) return;
  const { scopes, role } = await request("/profile", value.key, "GET", undefined, value.workspace).catch(() => value);
  if (session.value === value && (role !== value.role || scopes.join() !== value.scopes.join())) set({ ...value, scopes, role });
}

/** Switches to another workspace of the signed-in user. @param {string} workspace @param {string} role */
export function enter(workspace, role) {
  if (session.value) set({ ...session.value, workspace, role });
}

/** Continues the session with another token. @param {{key?: string, refresh?: string, ends?: number}} next */
export function renew(next) {
  if (!session.value) return;
  set({ ...session.value, ...next });
  tabs.postMessage({ renewed: next, whose: session.value?.whose });
}

/** Whether the server's settings name an identity provider for people. */
export const hasProvider = () => document.querySelector('meta[name="oidc-issuer"]') !== null;

/** Revokes the key of a session that made it. @param {Session | null} own */
async function revoke(own) {
  if (own?.derived) await request(`/keys/${own.id}?cascade=true`, own.key, "DELETE").catch(() => {});
}

/** Signs the user out in all tabs, and revokes the key of the session. */
export async function signOut() {
  const { value } = session;
  if (!value || isLeaving.value) return;
  isLeaving.value = true;
  set(null);
  tabs.postMessage({ out: { id: value.id, whose: value.whose } });
  // The other tabs may send their decisions with the same key.
  await pause(PATIENCE_MS);
  if (deciding > 0) await Promise.race([new Promise((done) => { decided = () => done(null); }), pause(DECIDED_MS)]);
  await revoke(value);
  end();
}

/** Forgets a session that the server no longer accepts. Typed texts stay. */
export function forget() {
  if (session.value) ended.value = "The server no longer accepts the key of this session: it was revoked or has expired.";
  set(null);
}
