// Signing in with a key.

import { html, useState } from "../vendor/ui.js";
import { ended, hasProvider, signIn } from "../api/session.js";
import { Failure } from "../parts/basic.js";
import { installation, useTitle } from "../parts/title.js";

/** The error with a message for people. Its code and request id stay. @param {any} failure @param {string} [message] */
const told = (failure, message = failure.message) => Object.assign(new Error(message), { code: failure.code, requestId: failure.requestId });

export function SignIn() {
  useTitle("Sign in");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const key = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("key") ?? "").trim();
    setBusy(true);
    setError(null);
    try {
      await signIn(key);
    } catch (/** @type {any} */ failure) {
      const isRefused = failure.status === 401;
      setError(told(failure, isRefused ? "The server does not accept this key." : failure.code === "insufficient_scope" ? "This key opens no screen: it has neither api:read nor content:read." : failure instanceof TypeError ? "The server cannot be reached." : failure.message));
    }
    setBusy(false);
  };
  const leave = async () => {
    setBusy(true);
    setError(null);
    try {
      await (await import("../api/oidc.js")).leave();
    } catch (/** @type {any} */ failure) {
      setError(told(failure, failure instanceof TypeError ? "The identity provider cannot be reached." : failure.message));
      setBusy(false);
    }
  };
  return html`<main class="sign-in">
    <h1><bdi>${installation.name || "Foldwork"}</bdi></h1>
    ${ended.value && html`<p class="banner" role="status">${ended.value}</p>`}
    ${hasProvider() && html`<p><button class="primary" disabled=${isBusy} onClick=${leave}>Sign in with the identity provider</button></p>`}
    <form onSubmit=${send}>
      <label>API key
        <input type="password" name="key" required autocomplete="off" spellcheck=${false} placeholder="sk_…" autofocus aria-invalid=${error !== null} aria-describedby="sign-in-error" />
      </label>
      <div id="sign-in-error">${error && html`<${Failure} error=${error} />`}</div>
      <button class=${hasProvider() ? "" : "primary"} disabled=${isBusy}>${isBusy ? "Signing in…" : "Sign in"}</button>
    </form>
    <p class="dim">The browser keeps a key of its own for twelve hours, and forgets this one. Signing out revokes it.</p>
  </main>`;
}
