// The differences between two states, field by field, and between two texts, word by word.

import { html, useEffect, useState } from "../vendor/ui.js";
import { changes, Value } from "./value.js";

/** Above this size, the texts are shown side by side, because a comparison would take seconds. */
const MOST = 200_000;
/** Above this size, texts are compared by lines. */
const BY_WORDS = 20_000;
/** The unchanged characters that stay beside a change. */
const CONTEXT = 240;

/** @param {{before: string, after: string, whole?: boolean}} props `whole` shows long unchanged parts as well. */
export function TextDiff({ before, after, whole = false }) {
  const [found, setFound] = useState({ before: "", after: "", parts: /** @type {any[]} */ ([]) });
  const [isWhole, setWhole] = useState(whole);
  const isTooLong = before.length + after.length > MOST;
  useEffect(() => {
    let isCurrent = true;
    if (isTooLong) return;
    import("../vendor/diff.js").then(({ diffLines, diffWordsWithSpace }) => {
      const compare = before.length + after.length > BY_WORDS ? diffLines : diffWordsWithSpace;
      if (isCurrent) setFound({ before, after, parts: compare(before, after) });
    });
    return () => { isCurrent = false; };
  }, [before, after]);
  if (isTooLong) return html`<div class="pair"><del><${Value} value=${before} /></del><ins><${Value} value=${after} /></ins></div>`;
  const { parts } = found;
  if (found.before !== before || found.after !== after) return html`<div class="text" dir="auto">${after}</div>`;
  const isCut = !isWhole && parts.some((part) => !part.added && !part.removed && part.value.length > 2 * CONTEXT);
  return html`<div class="text diff" dir="auto">${parts.map((part, index) => {
    if (part.added) return html`<ins key=${index}>${part.value}</ins>`;
    if (part.removed) return html`<del key=${index}>${part.value}</del>`;
    return isWhole ? part.value : cut(part.value, index === 0, index === parts.length - 1);
  })}</div>
  ${isCut && html`<button class="quiet" onClick=${() => setWhole(true)}>Show the unchanged text</button>`}`;
}

/** Shortens an unchanged text to the parts near a change. @param {string} text @param {boolean} isFirst @param {boolean} isLast */
function cut(text, isFirst, isLast) {
  if (text.length <= 2 * CONTEXT) return text;
  return html`${!isFirst && text.slice(0, CONTEXT)}<span class="dim" aria-label="unchanged text"> … </span>${!isLast && text.slice(-CONTEXT)}`;
}

/** @param {{before: any, after: any, none?: string}} props */
export function StateDiff({ before, after, none = "No field differs." }) {
  const found = changes(before, after);
  if (found.length === 0) return html`<p class="dim">${none}</p>`;
  return html`<dl class="changes">${found.map(({ name, before: was, after: is }) => html`<div key=${name}>
    <dt>${name}</dt>
    <dd><${Difference} before=${was} after=${is} /></dd>
  </div>`)}</dl>`;
}

/** One value before and after. @param {{before: any, after: any}} props */
export function Difference({ before, after }) {
  if (typeof before === "string" && typeof after === "string") return html`<${TextDiff} before=${before} after=${after} />`;
  return html`<span class="pair">
    ${before === undefined ? html`<span class="dim">absent</span>` : html`<del><${Value} value=${before} open=${false} /></del>`}
    <span class="dim"><span aria-hidden="true">→</span><span class="hidden">becomes</span></span>
    ${after === undefined ? html`<span class="dim">absent</span>` : html`<ins><${Value} value=${after} open=${typeof after === "object"} before=${before} /></ins>`}
  </span>`;
}
