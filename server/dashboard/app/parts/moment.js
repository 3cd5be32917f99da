// The moment that the whole application shows: now, an earlier time or position, or two moments compared.

import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { get } from "../api/client.js";
import { change, earlier, isCompared, moment, writeMoment } from "../state/route.js";
import { register } from "../state/keys.js";
import { complain } from "../state/toasts.js";

/** @typedef {import("../state/route.js").Moment} When */

/** A time in an address, which may be invalid. Browsers find a date in many other texts. @param {string} time */
export const dateOf = (time) => new Date(/^\d/.test(time) ? time : NaN);

/** A moment in words. @param {When} when */
export function inWords(when) {
  if (!when) return "now";
  if ("position" in when) return `position ${when.position.toLocaleString("en")}`;
  const at = dateOf(when.time);
  return Number.isNaN(at.getTime()) ? when.time : at.toLocaleString("en-CA", { dateStyle: "short", timeStyle: "medium", hour12: false });
}

/** The button of the moment with its form, for the top of the page. The form is loaded when it is first opened. */
export function Moment() {
  const [form, setForm] = useState(/** @type {any} */ (null));
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  const open = () => import("./choice.js").then(setForm, complain);
  const close = () => { setForm(null); button.current?.focus(); };
  useEffect(() => register([{ key: "@", label: "Look at another moment", group: "Everywhere", run: open }]), []);
  const now = moment.value;
  const text = isCompared.value ? `${inWords(earlier.value)} → ${inWords(now)}` : inWords(now);
  return html`<div class="moment">
    <button class="quiet" ref=${button} aria-expanded=${form !== null} aria-haspopup="dialog" title="Look at another moment (@)" onClick=${form ? close : open}>as of: ${text}</button>
    ${form && html`<${form.Choice} close=${close} />`}
  </div>`;
}

/** Names the moment that the application shows, and what is disabled at this moment. */
export function MomentBanner() {
  const now = moment.value;
  const [head, setHead] = useState(0);
  const position = now && "position" in now ? now.position : null;
  // At the known end, the end is read again, because the log may have grown.
  const isAtEnd = position !== null && position >= head;
  useEffect(() => { if (isAtEnd) get("/system/consumers").then((found) => setHead(Number(found.head)), () => {}); }, [isAtEnd]);
  if (!now && !isCompared.value) return null;
  const show = (/** @type {When} */ when) => change({ at: writeMoment(when) || null }, { replace: true });
  if (isCompared.value) {
    return html`<div class="banner as-of" role="status">
      <span>Two moments compared: <strong>${inWords(earlier.value)}</strong> and <strong>${inWords(now)}</strong>. Lists show what was added, removed and changed between them.
        ${now ? " Nothing can be changed here." : ""}</span>
      <button class="quiet" onClick=${() => show(earlier.value)}>Earlier only</button>
      ${now && html`<button class="quiet" onClick=${() => show(now)}>Later only</button>`}
      <button class="quiet" onClick=${() => show(null)}>Back to now</button></div>`;
  }
  return html`<div class="banner as-of" role="status">
    <span>Shown as of <strong title=${now && "time" in now ? now.time : undefined}>${inWords(now)}</strong>. Lists are folded at this moment, facts of plugins are absent, nothing updates, and nothing can be changed.</span>
    ${position !== null && html`<button class="quiet" disabled=${position <= 1} onClick=${() => show({ position: position - 1 })} title="One event earlier" aria-label="One event earlier">◀</button>
      <button class="quiet" disabled=${head > 0 && position >= head} onClick=${() => show({ position: position + 1 })} title="One event later" aria-label="One event later">▶</button>`}
    <button class="quiet" onClick=${() => change({ at: `${writeMoment(now)}..` })}>Compare with now</button>
    <button class="quiet" onClick=${() => show(null)}>Back to now</button></div>`;
}
