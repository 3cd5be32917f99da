// How a pipeline was executed: the data that was read, the stages that the source executed, and the time of each step.

import { html } from "../../vendor/ui.js";
import { short } from "../../parts/basic.js";
import { Value } from "../../parts/value.js";
import { stringify } from "../../api/json.js";
import { milliseconds } from "./card.js";

/** The meanings of the names of the sources. */
const SOURCES = {
  resident: "the states in memory",
  log: "states folded from the log",
  events: "the events of the log",
  documents: "the given documents",
};
/** The members of a step that have their own column. */
const SHOWN = new Set(["source", "operator", "stage", "from", "rows", "us"]);

/** The notes on each card: the step of the plan that executed the card. @param {any} explain @param {import("./model.js").Built} built @returns {Map<number, string[]>} */
export function notesOf(explain, built) {
  const notes = new Map();
  if (!explain?.stages) return notes;
  const steps = new Map(explain.stages.filter((/** @type {any} */ step) => step.stage !== undefined).map((/** @type {any} */ step) => [step.stage, step]));
  const [source] = explain.stages;
  built.cards.forEach((card, index) => {
    if (card === null) return;
    const step = steps.get(index);
    if (step) notes.set(card, [step.operator]);
    else notes.set(card, [`done by the source${source?.source ? ` (${source.source})` : ""}`]);
  });
  return notes;
}

/** @param {{explain: any}} props */
export function Plan({ explain }) {
  const total = explain.stages.reduce((/** @type {number} */ sum, /** @type {any} */ step) => sum + (step.us ?? 0), 0);
  return html`<section class="plan" aria-label="Plan"><h2>Plan</h2>
    <div class="scroll"><table class="rows"><thead><tr><th>Step</th><th>From stage</th><th>Rows</th><th>Time</th><th>How</th></tr></thead><tbody>
      ${explain.stages.map((/** @type {any} */ step, /** @type {number} */ index) => html`<tr key=${index}>
        <td>${step.source ? html`read <strong>${step.source}</strong><br /><span class="dim">${SOURCES[/** @type {keyof typeof SOURCES} */ (step.source)] ?? ""}</span>` : html`<strong>${step.operator}</strong>`}</td>
        <td>${step.stage !== undefined && html`${step.stage + 1} <code class="dim">${short(stringify(step.from) ?? "", 60)}</code>`}</td>
        <td class="number">${step.rows?.toLocaleString("en") ?? "–"}</td>
        <td class="number">${step.us === undefined ? "–" : milliseconds(step.us / 1_000)}</td>
        <td><${How} step=${step} /></td></tr>`)}
    </tbody></table></div>
    <p class="dim">${milliseconds(total / 1_000)} in all. ${explain.rules?.length ? html`Rules of the optimizer that applied: ${explain.rules.map((/** @type {string} */ rule) => html`<code>${rule}</code> `)}` : "No rule of the optimizer applied."}</p>
  </section>`;
}

/** @param {{step: any}} props */
function How({ step }) {
  const rest = Object.entries(step).filter(([name]) => !SHOWN.has(name));
  if (rest.length === 0) return html`<span class="dim">–</span>`;
  return html`<${Value} value=${Object.fromEntries(rest)} />`;
}
