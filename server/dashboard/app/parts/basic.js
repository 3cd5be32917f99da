// Small pieces that every screen uses: links, times, badges, errors, empty places.

import { html, signal, useState } from "../vendor/ui.js";
import { go, to } from "../state/route.js";
import { detailOf, say } from "../state/toasts.js";

/** @param {{to: string, query?: Record<string, any>, class?: string, children?: any, [name: string]: any}} props */
export function Link({ to: path, query, children, ...rest }) {
  const target = to(path, query);
  const follow = (/** @type {MouseEvent} */ event) => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(target);
  };
  return html`<a href=${target} onClick=${follow} ...${rest}>${children}</a>`;
}

const UNITS = /** @type {const} */ ([["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]]);
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const date = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });

/** A counter whose changes render relative times again, so that these times stay current. */
const ticks = signal(0);
setInterval(() => { ticks.value += 1; }, 10_000);

/** A time relative to now, with the exact time as a tooltip. @param {{at: string | null | undefined}} props */
export function Time({ at }) {
  if (!at) return html`<span class="dim">–</span>`;
  ticks.value;
  const seconds = (Date.parse(at) - Date.now()) / 1_000;
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  const text = Math.abs(seconds) > 30 * 86_400 ? date.format(Date.parse(at)) : relative.format(Math.round(seconds / length), unit);
  return html`<time datetime=${at} title=${at}>${text}</time>`;
}

/** @param {{kind: string, children?: any}} props */
export const Badge = ({ kind, children }) => html`<span class=${`badge ${kind}`}>${children ?? kind.replaceAll("_", " ")}</span>`;

/** The error of a call, shown instead of the result of the call. @param {{error: any, message?: any, retry?: () => void}} props `message` replaces the error's own message. */
export function Failure({ error, message = error.message, retry }) {
  const detail = detailOf(error);
  return html`<div class="failure" role="alert">
    <p>${message}</p>
    ${detail && html`<p class="dim"><code>${detail}</code></p>`}
    ${error.status === 402 && html`<p>Reading keeps working. <${Link} to="/settings/workspace">The plan and its limits<//></p>`}
    ${retry && html`<button onClick=${retry}>Try again</button>`}
  </div>`;
}

/** @param {{children?: any}} props */
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

/** @param {{what?: string}} props */
export const Loading = ({ what = "Loading" }) => html`<p class="empty" aria-busy="true">${what}…</p>`;

/** A value of an event or a state, in one line. @param {any} value */
export function short(value, most = 80) {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** The name by which people know an aggregate. @param {any} state */
export const label = (state) => [state?.title, state?.name, state?.subject, state?.slug].find((text) => typeof text === "string" && text) ?? "";

/** A line that shows more when its button is pressed. @param {{line: any, children?: any}} props */
export function Expandable({ line, children }) {
  const [isOpen, setOpen] = useState(false);
  return html`<div class="expandable"><div class="line">
    <button class="quiet" aria-expanded=${isOpen} aria-label=${isOpen ? "Show less" : "Show more"} onClick=${() => setOpen(!isOpen)}>${isOpen ? "▾" : "▸"}</button>${line}</div>
    ${isOpen && children}</div>`;
}

/** Copies text, and confirms this on the button. @param {{text: string | (() => string), children?: any}} props */
export function Copy({ text, children = "copy" }) {
  const copy = async (/** @type {Event} */ event) => {
    const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
    const copied = typeof text === "string" ? text : text();
    try { await navigator.clipboard.writeText(copied); } catch {
      return say("The browser copies only over HTTPS or at localhost, and with permission. Select the text instead.", { kind: "error" });
    }
    button.dataset.copied = "true";
    setTimeout(() => delete button.dataset.copied, 1_200);
  };
  return html`<button class="quiet copy" onClick=${copy}>${children}</button>`;
}
