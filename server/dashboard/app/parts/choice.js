// The form that chooses the moment that the whole application shows.

import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { get } from "../api/client.js";
import { change, earlier, isCompared, moment, readMoment, writeMoment } from "../state/route.js";
import { dateOf } from "./moment.js";

/** @typedef {import("../state/route.js").Moment} When */

const AGO = /** @type {const} */ ([["an hour ago", 3_600], ["a day ago", 86_400], ["a week ago", 604_800]]);

/** @param {string} local the content of a field for date and time */
const instant = (local) => new Date(local).toISOString();

/** A time in the format of a field for date and time. @param {string} time */
function local(time) {
  const at = dateOf(time);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** @param {{close: () => void}} props */
export function Choice({ close }) {
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
