// The types of the workspace: their aggregates, their fields, their events, and how their definitions changed.

import { html, useEffect, useState } from "../vendor/ui.js";
import { get, getAll } from "../api/client.js";
import { listen } from "../api/feed.js";
import { change, moment } from "../state/route.js";
import { Badge, Empty, Failure, Link, Loading, short } from "../parts/basic.js";
import { useLoad } from "../parts/load.js";
import { NowNote } from "../parts/now.js";
import { Act, refusal } from "../parts/refused.js";
import { Rows } from "../parts/rows.js";
import { loadStyle } from "../parts/style.js";
import { arrows } from "../parts/tabs.js";
import { Append } from "./aggregate/append.js";
import { Definitions, schemaAt } from "./types/definitions.js";
import { EventTypes, Fields } from "./types/fields.js";
import { States } from "./types/states.js";

const ROW = 58;
const TABS = /** @type {const} */ ([["aggregates", "Aggregates"], ["fields", "Fields"], ["events", "Events"], ["definitions", "Definitions"]]);

loadStyle("types");

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Types({ path: [type], query }) {
  return type ? html`<${Type} key=${type} type=${type} query=${query} />` : html`<${List} query=${query} />`;
}

/** @param {{query: URLSearchParams}} props */
function List({ query }) {
  const { value, error, reload } = useLoad((abort) => getAll("/aggregate-types", abort), []);
  // Definitions are not events, but the first event of a new type follows soon after its definition.
  useEffect(() => listen((event) => { if (value && !value.data.some((/** @type {any} */ type) => type.type_name === event.aggregate_type)) reload(); }), [value]);
  const failure = error && html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<div class="page"><h1>Types</h1>${failure ?? html`<${Loading} />`}</div>`;
  const wanted = (query.get("q") ?? "").toLowerCase();
  const types = value.data.filter((/** @type {any} */ type) => !wanted || `${type.type_name} ${type.display_name} ${type.traits.join(" ")}`.toLowerCase().includes(wanted));
  return html`<div class="page types"><header class="bar"><h1>Types</h1>
      <label>Find <input type="search" value=${query.get("q") ?? ""} onInput=${(/** @type {any} */ event) => change({ q: event.target.value }, { replace: true })} /></label>
      <span class="dim" role="status">${types.length.toLocaleString("en")} ${types.length === 1 ? "type" : "types"}</span></header>${failure}
    <${NowNote}>The list has the types of now. Each opens with the definition that was valid at the moment.<//>
    ${types.length === 0 ? html`<${Empty}>No type has this name or trait.<//>` : html`<div class="type-rows"><${Rows} count=${types.length} height=${ROW} chosen=${-1} label="Types" id=${(/** @type {number} */ index) => types[index].type_name} row=${(/** @type {number} */ index) => {
      const type = types[index];
      return html`<div class="type-row"><span><${Link} to=${`/types/${encodeURIComponent(type.type_name)}`}><bdi>${type.display_name || type.type_name}</bdi><//> <code class="dim">${type.type_name}</code>
          ${type.builtin && html` <${Badge} kind="origin">built in<//>`} ${type.traits.map((/** @type {string} */ trait) => html`<${Badge} key=${trait} kind="trait">${trait}<//> `)}</span>
        <span class="dim grow">${type.fields.length === 0 ? "any fields" : short(type.fields.map((/** @type {any} */ field) => field.name).join(", "), 160)}</span></div>`;
    }} /></div>`}
  </div>`;
}

/** @param {{type: string, query: URLSearchParams}} props */
function Type({ type, query }) {
  const [isAppending, setAppending] = useState(false);
  const now = moment.value;
  const { value: schema, error, reload } = useLoad(async (abort) => {
    const found = await get(`/aggregate-types/${encodeURIComponent(type)}/schema`, {}, abort);
    return now ? schemaAt(type, found, now, abort) : found;
  }, [type, now]);
  const tab = query.get("tab") ?? "aggregates";
  const back = html`<p class="dim"><${Link} to="/types">Types<//></p>`;
  if (error) return html`<div class="page">${back}<h1><bdi>${type}</bdi></h1><${Failure} error=${error} retry=${reload} /></div>`;
  if (!schema) return html`<div class="page">${back}<h1><bdi>${type}</bdi></h1><${Loading} /></div>`;
  const refused = refusal() || (schema.managed ? "Only the server appends events of this type." : "");
  return html`<div class="page types">${back}
    <header class="bar"><h1 dir="auto">${schema.display_name || type}</h1> <code class="dim">${type}</code>
      ${schema.builtin && html`<${Badge} kind="origin">built in<//>`} ${schema.traits.map((/** @type {string} */ trait) => html`<${Badge} key=${trait} kind="trait">${trait}<//> `)}
      <span class="buttons">${type === "article" && html`<${Link} to="/articles">Open in the editor<//>`}<${Act} refused=${refused} onClick=${() => setAppending(true)}>New aggregate<//></span></header>
    <div class="tabs" role="tablist" aria-label="Views of the type">${TABS.map(([name, text]) => html`<button key=${name} role="tab" id=${`tab-${name}`} aria-controls="tab-panel" aria-selected=${tab === name} tabindex=${tab === name ? 0 : -1}
      onKeyDown=${arrows} onClick=${() => change({ tab: name === "aggregates" ? null : name }, { replace: true })}>${text}</button>`)}</div>
    <div role="tabpanel" id="tab-panel" class="panel" aria-labelledby=${`tab-${tab}`}>
      ${tab === "aggregates" && html`<${States} type=${type} fields=${schema.fields} query=${query} />`}
      ${tab === "fields" && html`${schema.since > 0 && html`<p class="dim">As defined at position ${schema.since.toLocaleString("en")}, which was valid at this moment.</p>`}${schema.since === null ? html`<${Empty}>The type was not defined at this moment: its events could have any fields.<//>` : html`<${Fields} schema=${schema} />`}`}
      ${tab === "events" && html`<${NowNote}>The types of events are those that are declared and in the log now.<//><${EventTypes} schema=${schema} />`}
      ${tab === "definitions" && html`<${Definitions} type=${type} />`}
    </div>
    ${isAppending && html`<${Append} type=${type} version=${0} close=${() => setAppending(false)} />`}
  </div>`;
}
