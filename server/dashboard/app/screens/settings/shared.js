// The common parts of the sections of the settings: reading again on return, and a key that is entered for one request.

import { html, useEffect, useRef } from "../../vendor/ui.js";
import { session } from "../../api/session.js";
import { useLoad } from "../../parts/load.js";

/** All scopes, each with its rights. @type {Record<Schemas["Scope"], string>} */
export const SCOPES = {
  "api:read": "read the workspace", "api:write": "change the workspace",
  "content:read": "read published articles and their files, nothing else",
  "mcp:read": "read with the tools for models", "mcp:write": "change with the tools for models",
  "profile:read": "read the own profile", "email:read": "read the own address", "extension:unlock": "ask whether a device is licensed",
};
/** The scopes that need an active plan. */
export const PAID = ["api:write", "mcp:write", "extension:unlock"];

/** The reason why members and the installation cannot be managed, as a sentence, or an empty text. @param {Schemas["Profile"] | undefined} profile */
export function unmanaged(profile) {
  const lacking = Object.keys(SCOPES).filter((scope) => !session.value?.scopes.includes(scope));
  if (profile && profile.role !== "owner") return `Only owners can do this, and you are ${profile.role === "editor" ? "an editor" : "a viewer"}.`;
  return lacking.length > 0 ? `This needs a key with every scope, and this one lacks ${lacking.join(", ")}.` : "";
}

/**
 * Reads data that the log does not announce, such as keys, and reads the data again when the user returns to the tab.
 *
 * @template T
 * @param {(abort: AbortSignal) => Promise<T>} read @param {any[]} [dependencies]
 */
export const useReturning = (read, dependencies = []) => useReturn(useLoad(read, dependencies));

/**
 * Reloads the loaded data when the user returns to the tab. The element of `list` receives the focus after `removed()`,
 * because the pressed button is gone.
 *
 * @template {{value: any, reload: () => void}} T
 * @param {T} loaded
 */
export function useReturn(loaded) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const isRemoved = useRef(false);
  useEffect(() => {
    window.addEventListener("focus", loaded.reload);
    return () => window.removeEventListener("focus", loaded.reload);
  }, []);
  useEffect(() => {
    if (isRemoved.current && document.activeElement === document.body) list.current?.focus();
    isRemoved.current = false;
  }, [loaded.value]);
  const removed = () => { isRemoved.current = true; loaded.reload(); };
  return { ...loaded, list, removed };
}

/**
 * A field for a key that is used once. A key ends with the key that created it, and the key of a session ends soon.
 *
 * @param {{required?: boolean, why: any}} props
 */
export function OwnKey({ required = false, why }) {
  return html`<label>Your own key${required ? "" : " (optional)"}
      <input type="password" name="own" required=${required} autocomplete="off" spellcheck=${false} placeholder="sk_…" /></label>
    <p class="dim">${why} The entered key is used for this request and forgotten.</p>`;
}

/** The headers of a request for which a key was entered. @param {FormData} fields @returns {{headers?: Record<string, string>}} */
export function entered(fields) {
  const own = String(fields.get("own") ?? "").trim();
  return own ? { headers: { Authorization: `Bearer ${own}` } } : {};
}
