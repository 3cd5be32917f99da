// A part of the page whose failure does not affect the rest of the page.

import { html, useEffect, useErrorBoundary } from "../vendor/ui.js";
import { Failure } from "./basic.js";
import { route } from "../state/route.js";

/** Shows its children, or the exception that they threw until the address changes. @param {{part: string, children?: any}} props */
export function Guard({ part, children }) {
  const [error, reset] = useErrorBoundary();
  const here = route.value;
  useEffect(() => { if (error) reset(); }, [here]);
  if (!error) return children;
  const told = Object.assign(new Error(`${part} cannot be shown: ${error.message}`), { code: "dashboard_error" });
  return html`<div class="guarded"><${Failure} error=${told} retry=${reset} /></div>`;
}
