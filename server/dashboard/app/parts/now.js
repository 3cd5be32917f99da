// What a screen shows of the present while the application looks at the past: it says so beside it.

import { html } from "../vendor/ui.js";
import { isCompared, moment } from "../state/route.js";

/** Whether the application looks at the past. */
export const isPast = () => moment.value !== null || isCompared.value;

/** A badge beside what is of now, in the past. @param {{title?: string}} props */
export const OfNow = ({ title = "The past of this is not kept." }) => (isPast() ? html` <span class="badge of-now" title=${title}>now</span>` : null);

/** A sentence for a screen or a list that is of now, in the past. @param {{children?: any}} props */
export const NowNote = ({ children }) => (isPast() ? html`<p class="banner now-note"><span class="badge of-now">now</span> ${children}</p>` : null);
