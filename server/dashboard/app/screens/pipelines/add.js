// The choice of a new stage: every stage with its purpose and an example.

import { html, useState } from "../../vendor/ui.js";
import { Failure, Loading } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { useLoad } from "../../parts/load.js";
import { pretty } from "./model.js";
import { words } from "./words.js";

/** Initial values that suit any workspace. The other stages begin with their examples. */
const BEGUN = /** @type {Record<string, any>} */ ({
  $match: { aggregate_type: "article" }, $fold: {}, $project: { title: 1 }, $sort: { _last_event_at: -1 }, $limit: 20, $skip: 20,
  $group: { _id: "$aggregate_type", count: { $sum: 1 } }, $unwind: "$tags", $count: "count", $sortByCount: "$tags",
});

/** @param {{close: () => void, add: (stage: any) => void}} props */
export function Add({ close, add }) {
  const [text, setText] = useState("");
  const { value, error, reload } = useLoad(async () => (await words()).operators.filter(({ kind }) => kind === "stage"), []);
  const found = (value ?? []).filter(({ name, summary }) => `${name} ${summary}`.toLowerCase().includes(text.trim().toLowerCase()));
  const choose = (/** @type {any} */ stage) => add({ [stage.name]: BEGUN[stage.name] ?? stage.example.usage?.[stage.name] ?? {} });
  const send = (/** @type {SubmitEvent} */ event) => { event.preventDefault(); if (found[0]) choose(found[0]); };
  return html`<${Dialog} title="Add a stage" close=${close}>
    <form onSubmit=${send}><label>Name or purpose <input type="search" autofocus value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} /></label></form>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!value && !error && html`<${Loading} />`}
    <ul class="plain choosable">${found.map((stage) => html`<li key=${stage.name}><button class="quiet" onClick=${() => choose(stage)}><strong>${stage.name}</strong> <span>${stage.summary}</span>
      <code class="dim">${pretty(stage.example.usage).replace(/\s+/g, " ")}</code></button></li>`)}</ul>
  <//>`;
}
