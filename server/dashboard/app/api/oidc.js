// Signing in at an identity provider: the code flow with PKCE, and new tokens before the old one ends.

import { renew, session, signIn } from "./session.js";

const PENDING = "foldwork.oidc";
const EARLY_MS = 60_000;
const LEAST_MS = 1_000;
/** The time for the other tabs to receive a new token, in milliseconds. */
const HEARD_MS = 500;

/** @param {string} name */
const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";
const client = () => meta("oidc-client-id");

/** @param {Uint8Array} bytes */
const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** Returns the metadata of the provider. @returns {Promise<any>} */
async function discover() {
  const issuer = meta("oidc-issuer");
  const response = await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const found = response.ok ? await response.json() : {};
  if (found.issuer !== issuer) throw new Error(`the identity provider ${issuer} does not describe itself`);
  return found;
}

/** Leaves the page and opens the sign-in page of the provider. */
export async function leave() {
  const { authorization_endpoint, scopes_supported = [] } = await discover();
  const pending = { verifier: random(), state: random(), back: location.pathname === "/sign-in" ? "/" : location.pathname + location.search };
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(pending.verifier));
  const target = new URL(authorization_endpoint);
  const scope = ["openid", "email", "profile", ...(scopes_supported.includes("offline_access") ? ["offline_access"] : [])].join(" ");
  const given = { response_type: "code", client_id: client(), redirect_uri: `${location.origin}/sign-in`, scope, state: pending.state, code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: "S256" };
  for (const [name, value] of Object.entries(given)) target.searchParams.set(name, value);
  location.assign(target.href);
}

/** @param {Record<string, string>} fields */
async function tokens(fields) {
  const { token_endpoint } = await discover();
  const response = await fetch(token_endpoint, { method: "POST", body: new URLSearchParams({ client_id: client(), ...fields }) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(`the identity provider refuses: ${answer.error_description ?? answer.error ?? response.status}`);
  // Some providers issue access tokens that only the provider can read. The id tokens of these providers are readable.
  const isReadable = String(answer.access_token ?? "").split(".").length === 3;
  return { token: isReadable ? answer.access_token : answer.id_token, refresh: answer.refresh_token, ends: Date.now() + Number(answer.expires_in ?? 300) * 1_000 };
}

/** Completes the sign-in after the provider's page. Returns the address from before the sign-in. @param {URLSearchParams} query @returns {Promise<string>} */
export async function arrive(query) {
  const pending = JSON.parse(sessionStorage.getItem(PENDING) ?? "null");
  sessionStorage.removeItem(PENDING);
  if (query.has("error")) throw new Error(`the identity provider refuses: ${query.get("error_description") ?? query.get("error")}`);
  if (!pending || query.get("state") !== pending.state) throw new Error("this sign-in was not begun in this tab");
  const { token, refresh, ends } = await tokens({ grant_type: "authorization_code", code: query.get("code") ?? "", redirect_uri: `${location.origin}/sign-in`, code_verifier: pending.verifier });
  await signIn(token);
  renew({ refresh, ends });
  return pending.back;
}

/** Gets a new token before the token of the session expires, as long as the provider issues new tokens. */
export function keepFresh() {
  const { refresh, ends = 0 } = session.peek() ?? {};
  if (!refresh) return;
  // One tab requests a token, and the other tabs take over this token: many providers accept a refresh token only once.
  const ask = async () => {
    if ((session.peek()?.ends ?? 0) > ends) return;
    const next = await tokens({ grant_type: "refresh_token", refresh_token: session.peek()?.refresh ?? refresh });
    renew({ key: next.token, refresh: next.refresh ?? refresh, ends: next.ends });
    await new Promise((heard) => { setTimeout(heard, HEARD_MS); });
  };
  // Without a new token, the session ends with the old token, and the page shows the reason.
  setTimeout(() => navigator.locks.request(PENDING, ask).then(keepFresh, () => {}), Math.max(LEAST_MS, ends - Date.now() - EARLY_MS));
}
