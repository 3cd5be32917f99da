// The moment at which the whole application looks: now, an earlier time or position, or two moments compared.

import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { get } from "../api/client.js";
import { change, earlier, isCompared, moment, readMoment, writeMoment } from "../state/route.js";
import { register } from "../state/keys.js";

/** @typedef {import("../state/route.js").Moment} When */

const AGO = /** @type {const} */ ([["an hour ago", 3_600], ["a day ago", 86_400], ["a week ago", 604_800]]);

/** @param {string} local what a field for date and time contains */
const instant = (local) => new Date(local).toISOString();

/** A time as a field for date and time contains it. @param {string} time */
function local(time) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** A moment in words. @param {When} when */
export function inWords(when) {
  if (!when) return "now";
  if ("position" in when) return `position ${when.position.toLocaleString("en")}`;
  const at = new Date(when.time);
  return Number.isNaN(at.getTime()) ? when.time : at.toLocaleString("en-CA", { dateStyle: "short", timeStyle: "medium", hour12: false });
}

/** The button of the moment with its form, for the top of the page. */
export function Moment() {
  const [isOpen, setOpen] = useState(false);
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  const close = () => { setOpen(false); button.current?.focus(); };
  useEffect(() => register([{ key: "@", label: "Look at another moment", group: "Everywhere", run: () => setOpen(true) }]), []);
  const now = moment.value;
  const text = isCompared.value ? `${inWords(earlier.value)} → ${inWords(now)}` : inWords(now);
  return html`<div class="moment">
    <button class="quiet" ref=${button} aria-expanded=${isOpen} aria-haspopup="dialog" title="Look at another moment (@)" onClick=${() => setOpen(!isOpen)}>as of: ${text}</button>
    ${isOpen && html`<${Choice} close=${close} />`}
  </div>`;
}

/** Says at which moment the application looks, and what is off there. */
export function MomentBanner() {
  const now = moment.value;
  const [head, setHead] = useState(0);
  const position = now && "position" in now ? now.position : null;
  useEffect(() => { if (position) get("/system/consumers").then((found) => setHead(Number(found.head)), () => {}); }, [position !== null]);
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
    <span>Shown as of <strong title=${now && "time" in now ? new Date(now.time).toISOString() : undefined}>${inWords(now)}</strong>. Lists are folded at this moment, facts of plugins are absent, nothing updates, and nothing can be changed.</span>
    ${position !== null && html`<button class="quiet" disabled=${position <= 1} onClick=${() => show({ position: position - 1 })} title="One event earlier" aria-label="One event earlier">◀</button>
      <button class="quiet" disabled=${head > 0 && position >= head} onClick=${() => show({ position: position + 1 })} title="One event later" aria-label="One event later">▶</button>`}
    <button class="quiet" onClick=${() => change({ at: `${writeMoment(now)}..` })}>Compare with now</button>
    <button class="quiet" onClick=${() => show(null)}>Back to now</button></div>`;
}

/** @param {{close: () => void}} props */
function Choice({ close }) {
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [isTwo, setTwo] = useState(isCompared.value);
  const [head, setHead] = useState(0);
  const [problem, setProblem] = useState("");
  const first = isCompared.value ? earlier.value : moment.value;
  useEffect(() => { get("/system/consumers").then((found) => setHead(Number(found.head)), () => {}); }, []);
  useEffect(() => { form.current?.querySelector("button")?.focus(); }, []);
  useEffect(() => {
    const outside = (/** @type {MouseEvent} */ event) => { if (!form.current?.closest(".moment")?.contains(/** @type {Node} */ (event.target))) close(); };
    document.addEventListener("mousedown", outside);
    return () => document.removeEventListener("mousedown", outside);
  }, []);
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const read = (/** @type {string} */ prefix) => {
      const position = String(fields.get(`${prefix}-position`) ?? "").trim();
      const time = String(fields.get(`${prefix}-time`) ?? "");
      return position ? readMoment(`@${Number(position)}`) : time ? { time: instant(time) } : null;
    };
    const [from, until] = [read("first"), read("second")];
    if (isTwo && !from) return setProblem("A comparison needs the earlier moment.");
    close();
    change({ at: isTwo ? `${writeMoment(from)}..${writeMoment(until)}` : writeMoment(from) || null });
  };
  const ago = (/** @type {number} */ seconds) => {
    close();
    const time = new Date(Math.floor(Date.now() / 1_000 - seconds) * 1_000).toISOString();
    change({ at: isTwo ? `${time}..` : time });
  };
  const keys = (/** @type {KeyboardEvent} */ event) => { if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); close(); } };
  return html`<div class="popover" role="dialog" aria-label="The moment"><form ref=${form} onSubmit=${send} onKeyDown=${keys}>
    <div class="choices">${AGO.map(([text, seconds]) => html`<button key=${text} type="button" onClick=${() => ago(seconds)}>${text}</button>`)}</div>
    <${Fields} prefix="first" legend=${isTwo ? "Earlier moment" : "Moment"} when=${first} head=${head} />
    <label class="check"><input type="checkbox" checked=${isTwo} onChange=${(/** @type {any} */ event) => { setTwo(event.target.checked); setProblem(""); }} /> compare with a later moment</label>
    ${isTwo && html`<${Fields} prefix="second" legend="Later moment (empty is now)" when=${isCompared.value ? moment.value : null} head=${head} />`}
    ${problem && html`<p class="error" role="alert">${problem}</p>`}
    <p class="form-end"><button type="button" class="quiet" onClick=${() => { close(); change({ at: null }); }}>Now</button><button class="primary">Show</button></p>
  </form></div>`;
}

/** @param {{prefix: string, legend: string, when: When, head: number}} props */
function Fields({ prefix, legend, when, head }) {
  const [position, setPosition] = useState(when && "position" in when ? String(when.position) : "");
  const [time, setTime] = useState(when && "time" in when ? local(when.time) : "");
  const both = (/** @type {string} */ next) => { setPosition(next); if (next) setTime(""); };
  return html`<fieldset><legend>${legend}</legend>
    <label>Time <input type="datetime-local" step="1" name=${`${prefix}-time`} value=${time} onInput=${(/** @type {any} */ event) => { setTime(event.target.value); if (event.target.value) setPosition(""); }} /></label>
    <label>or position in the log${head ? `, 1 to ${head.toLocaleString("en")}` : ""} <input type="number" min="1" name=${`${prefix}-position`} value=${position} onInput=${(/** @type {any} */ event) => both(event.target.value)} /></label>
    ${head > 1 && html`<input type="range" min="1" max=${head} value=${position || head} aria-label=${`Position of the ${legend.toLowerCase()}`} onInput=${(/** @type {any} */ event) => both(event.target.value)} />`}
  </fieldset>`;
}
