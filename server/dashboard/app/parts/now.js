// The notes beside the current data of a screen while the application shows the past.

import { html } from "../vendor/ui.js";
import { isCompared, moment } from "../state/route.js";

/** Whether the application shows the past. */
export const isPast = () => moment.value !== null || isCompared.value;

/** A badge beside current data while the application shows the past. @param {{title?: string}} props */
export const OfNow = ({ title = "The past of this is not kept." }) => (isPast() ? html` <span class="badge of-now" title=${title}>now</span>` : null);

/** A sentence on a screen or a list with current data while the application shows the past. @param {{children?: any}} props */
export const NowNote = ({ children }) => (isPast() ? html`<p class="banner now-note"><span class="badge of-now">now</span> ${children}</p>` : null);
