// Parts of a screen that are loaded when they are first needed, or earlier while the page is idle.

import { html, useEffect, useState } from "../vendor/ui.js";
import { Failure, Loading } from "./basic.js";

/**
 * A component whose module is loaded with its first use.
 *
 * @param {() => Promise<any>} load returns the component
 */
export function lazy(load) {
  /** @type {any} */
  let View = null;
  /** @type {Promise<void> | null} */
  let loading = null;
  const loaded = () => (loading ??= load().then((found) => { View = found; }, (error) => { loading = null; throw error; }));
  const Lazy = (/** @type {any} */ props) => {
    const [hasFailed, end] = useState(false);
    const [, again] = useState(0);
    useEffect(() => { if (!View) loaded().then(() => again(1), () => end(true)); }, []);
    if (View) return html`<${View} ...${props} />`;
    // Some browsers do not retry a module that failed to load.
    return hasFailed ? html`<${Failure} error=${new Error("This part of the dashboard could not be loaded. The server may have been updated.")} retry=${() => location.reload()} />` : html`<${Loading} />`;
  };
  /** Loads the component before its first use. A failure is shown at the first use. */
  const preload = () => { loaded().catch(() => {}); };
  return Object.assign(Lazy, { preload });
}
