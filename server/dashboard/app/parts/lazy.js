// Parts of a screen that are loaded when they are needed first, or before that when nothing else is to be done.

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
    // Some browsers do not load a module again that they could not load.
    return hasFailed ? html`<${Failure} error=${new Error("This part of the dashboard could not be loaded. The server may have been updated.")} retry=${() => location.reload()} />` : html`<${Loading} />`;
  };
  /** Loads the component before its first use, where a failure is told. */
  const preload = () => { loaded().catch(() => {}); };
  return Object.assign(Lazy, { preload });
}
