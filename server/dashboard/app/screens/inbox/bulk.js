// Approval of many tasks, with the events that the approval would append.

import { html, useState } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { Failure, label, Link, Loading } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { useLoad } from "../../parts/load.js";
import { sendKeys } from "./decide.js";
import { seen } from "./decisions.js";
import { ownVersion } from "./tasks.js";

/** The maximum number of tasks that are read to show the events that their approval appends. */
const READ = 100;
/** The number of concurrent reads. */
const AT_ONCE = 6;
/** The maximum number of listed tasks. */
const LISTED = 40;

/** @typedef {{task: any, effects: any[], refused: string}} Outlook */

/** The result of an approval of one task. @param {any} task a row, at the version that was selected @param {AbortSignal} abort @returns {Promise<Outlook>} */
async function outlook(task, abort) {
  const whole = await get(`/mailbox/${encodeURIComponent(task.id)}`, { timeline: 0 }, abort);
  const hasChanged = whole.version > ownVersion(task.id, seen(task).version);
  const stale = whole.would_append.find((/** @type {any} */ effect) => effect.stale);
  const refused = hasChanged ? "has changed since it was selected" : whole.would_refuse?.error ?? (stale ? `${stale.aggregate_id} has changed since the author read it` : "");
  return { task, effects: whole.would_append, refused };
}

/** @param {any[]} some @param {AbortSignal} abort */
async function outlooks(some, abort) {
  const wanted = some.slice(0, READ);
  /** @type {Outlook[]} */
  const found = [];
  let next = 0;
  const work = async () => {
    while (next < wanted.length && !abort.aborted) {
      const index = next++;
      found[index] = await outlook(wanted[index], abort);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

/** @param {number} count @param {string} what */
const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

/** @param {import("./decide.js").Props & {what: string}} props */
export function ApproveMany({ tasks, close, decide, what }) {
  const [comment, setComment] = useState("");
  const { value, error, reload } = useLoad((abort) => outlooks(tasks, abort), []);
  const isKnown = value !== undefined || error !== null;
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (!isKnown) return;
    close();
    decide(comment ? { comment } : {});
  };
  return html`<${Dialog} title=${`Approve ${what}`} close=${close} class="wide"><form onSubmit=${send} onKeyDown=${sendKeys}>
    ${value ? html`<${Consequences} found=${value} count=${tasks.length} />` : error ? html`<p>What approval appends could not be read.</p><${Failure} error=${error} retry=${reload} />` : html`<${Loading} what="Reading what approval appends" />`}
    <label>Comment (optional) <textarea name="text" rows="3" autofocus value=${comment} onInput=${(/** @type {any} */ event) => setComment(event.target.value)}></textarea></label>
    <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary" disabled=${!isKnown} title="Ctrl Enter">Approve</button></footer></form><//>`;
}

/** @param {{found: Outlook[], count: number}} props */
function Consequences({ found, count }) {
  const approved = found.filter(({ refused }) => !refused);
  const refused = found.filter((one) => one.refused);
  const effects = approved.flatMap((one) => one.effects);
  const types = [...Map.groupBy(effects, (effect) => effect.event_type)].sort(([, some], [, other]) => other.length - some.length);
  const acting = approved.filter((one) => one.effects.length > 0);
  return html`<section class=${`consequences ${refused.length ? "is-stale" : ""}`} aria-label="What approval does">
    ${count > found.length && html`<p class="dim">This is about the first ${counted(found.length, "task")} of ${count.toLocaleString("en")}.</p>`}
    ${effects.length === 0 ? html`<p>Approval appends nothing but the event of each task.</p>` : html`<p>Approval appends ${counted(effects.length, "event")} to ${counted(new Set(effects.map((effect) => effect.aggregate_id)).size, "aggregate")}:
      ${types.map(([type, some], index) => html`${index ? ", " : " "}<code>${type}</code> × ${some.length}`)}.</p>`}
    ${refused.length > 0 && html`<p><strong>${counted(refused.length, "approval")} would be refused:</strong></p><ul class="plain effects">${refused.slice(0, LISTED).map(({ task, refused: why }) => html`<li key=${task.id}><bdi>${task.title}</bdi> <span class="dim" dir="auto">${why}</span></li>`)}</ul>`}
    ${acting.length > 0 && html`<div class="effects" tabindex="0" role="region" aria-label="Events by task"><ul class="plain">${acting.slice(0, LISTED).map(({ task, effects: own }) => html`<li key=${task.id}><bdi>${task.title}</bdi>${" "}
      ${own.map((effect) => html`<span class="dim" key=${effect.artifact_id}><code>${effect.event_type}</code> → <${Link} to=${`/a/${encodeURIComponent(effect.aggregate_id)}`}><bdi title=${effect.aggregate_id}>${label(effect.state) || effect.aggregate_id}</bdi><//> v${effect.version} </span>`)}</li>`)}</ul></div>`}
    ${acting.length > LISTED && html`<p class="dim">and ${counted(acting.length - LISTED, "more task")}</p>`}
  </section>`;
}
