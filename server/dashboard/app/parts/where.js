// Conditions on the fields of a list, which are in the address, and the stage with these conditions.

import { html, useEffect, useRef, useState } from "../vendor/ui.js";
import { ExactNumber, parse } from "../api/json.js";
import { change, decoded } from "../state/route.js";

/** The comparisons by their name in the address. @type {Record<string, {label: string, match: (value: any, text: string) => any, bare?: boolean}>} */
const COMPARISONS = {
  is: { label: "is", match: (value, text) => (value === text ? text : { $in: [value, text] }) },
  not: { label: "is not", match: (value, text) => ({ $nin: value === text ? [text] : [value, text] }) },
  has: { label: "contains", match: (_, text) => ({ $regex: text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), $options: "i" }) },
  min: { label: "is at least", match: (value) => ({ $gte: value }) },
  max: { label: "is at most", match: (value) => ({ $lte: value }) },
  set: { label: "is there", match: () => ({ $ne: null }), bare: true },
  unset: { label: "is absent", match: () => null, bare: true },
};

/** @typedef {{field: string, how: string, text: string}} Condition */

/** The conditions of an address. Invalid parts are left out. @param {URLSearchParams} query @returns {Condition[]} */
export const conditionsOf = (query) => (query.get("where") ?? "").split(";").flatMap((part) => {
  const [field, how, text = ""] = part.split("~").map(decoded);
  return field && how in COMPARISONS ? [{ field, how, text }] : [];
});

/** @param {Condition[]} conditions */
const write = (conditions) => conditions.map(({ field, how, text }) => [field, how, text].map((part) => encodeURIComponent(part).replaceAll("~", "%7E")).join("~")).join(";");

/** Returns the value of a typed text: an exact number, true or false, or the text itself. @param {string} text */
function valueOf(text) {
  try {
    const value = parse(text);
    return typeof value === "number" || typeof value === "boolean" || value instanceof ExactNumber ? value : text;
  } catch { return text; }
}

/** The conditions as a stage, or an empty list. @param {Condition[]} conditions @returns {any[]} */
export const matched = (conditions) => (conditions.length === 0 ? [] : [{ $match: { $and: conditions.map(({ field, how, text }) => ({ [field]: COMPARISONS[how].match(valueOf(text), text) })) } }]);

/** Adds and removes conditions. @param {{conditions: Condition[], fields: string[]}} props */
export function Where({ conditions, fields }) {
  const [how, setHow] = useState("is");
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  /** The index of the condition whose button was used and has no focus any more. @type {{current: number | null}} */
  const removed = useRef(null);
  useEffect(() => {
    if (removed.current === null) return;
    const chips = /** @type {NodeListOf<HTMLElement> | undefined} */ (form.current?.querySelectorAll(".chip"));
    const next = chips?.[Math.min(removed.current, chips.length - 1)];
    (next ?? form.current?.querySelector("button"))?.focus();
    removed.current = null;
  }, [write(conditions)]);
  const remove = (/** @type {number} */ index) => {
    removed.current = index;
    set(conditions.filter((_, other) => other !== index));
  };
  const set = (/** @type {Condition[]} */ next) => change({ where: write(next) || null });
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const given = new FormData(form);
    set([...conditions, { field: String(given.get("field")), how, text: String(given.get("text") ?? "") }]);
    form.reset();
    setHow("is");
  };
  return html`<form class="where" ref=${form} onSubmit=${send} aria-label="Filter">
    <select name="field" aria-label="Field" required>${fields.map((field) => html`<option key=${field} value=${field}>${field}</option>`)}</select>
    <select aria-label="Comparison" value=${how} onChange=${(/** @type {any} */ event) => setHow(event.target.value)}>${Object.entries(COMPARISONS).map(([name, { label }]) => html`<option key=${name} value=${name}>${label}</option>`)}</select>
    ${!COMPARISONS[how].bare && html`<input name="text" aria-label="Value" autocomplete="off" />`}
    <button>Filter</button>
    ${conditions.map((one, index) => html`<button type="button" key=${index} class="chip" aria-label=${`Remove the filter ${one.field} ${COMPARISONS[one.how].label} ${one.text}`} onClick=${() => remove(index)}><bdi>${one.field} ${COMPARISONS[one.how].label} ${one.text}</bdi> ×</button>`)}</form>`;
}
