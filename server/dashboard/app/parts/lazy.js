// Parts of a screen that are loaded when they are needed first, or before that when nothing else is to be done.

import { html, useEffect, useState } from "../vendor/ui.js";
import { complain } from "../state/toasts.js";
import { Loading } from "./basic.js";

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
  const preload = () => (loading ??= load().then((loaded) => { View = loaded; }));
  const Lazy = (/** @type {any} */ props) => {
    const [, again] = useState(0);
    useEffect(() => { if (!View) preload().then(() => again(1), complain); }, []);
    return View ? html`<${View} ...${props} />` : html`<${Loading} />`;
  };
  return Object.assign(Lazy, { preload });
}
