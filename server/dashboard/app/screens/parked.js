// Parked steps, in groups with one cause, which are tried, replayed or deleted together.

import { html, useEffect } from "../vendor/ui.js";
import { Empty, Failure, Link, Loading } from "../parts/basic.js";
import { useLive, useLoad } from "../parts/load.js";
import { NowNote } from "../parts/now.js";
import { loadStyle } from "../parts/style.js";
import { useAgain } from "./parked/again.js";
import { Group } from "./parked/group.js";
import { readGroups } from "./parked/groups.js";

loadStyle("plugins");
const QUIET_MS = 1_000;
/** The maximum time between two reads while steps wait for a retry, in milliseconds. */
const MOST_MS = 60_000;

/** @param {{query: URLSearchParams}} props */
export default function Parked({ query }) {
  const plugin = query.get("plugin") ?? "";
  const { value, error, reload } = useLoad((abort) => readGroups(plugin, abort), [plugin]);
  const { edit, dialog } = useAgain(reload);
  useLive(reload, () => true, QUIET_MS);
  // A retry appends no event, so the list is read again when the next retry is due.
  useEffect(() => {
    const times = (value ?? []).flatMap(({ first, last }) => [first.retry_at, last.retry_at]).filter(Boolean).map(Date.parse);
    if (times.length === 0) return;
    const timer = setTimeout(reload, Math.min(MOST_MS, Math.max(QUIET_MS, Math.min(...times) - Date.now() + QUIET_MS)));
    return () => clearTimeout(timer);
  }, [value]);
  const count = (value ?? []).reduce((sum, group) => sum + group.count, 0);
  return html`<div class="page"><header class="bar"><h1>Parked steps</h1>${value && html`<span class="dim" role="status">${count.toLocaleString("en")} ${count === 1 ? "step" : "steps"} in ${value.length} ${value.length === 1 ? "group" : "groups"}</span>`}
      ${plugin && html`<span>of <${Link} to=${`/plugins/${plugin}`}>${plugin}<//></span> <${Link} to="/parked">all plugins<//>`}</header>
    <${NowNote}>Parked steps are shown as of now: which were parked at a moment is not kept.<//>
    <p class="dim">A step is the call of a plugin for one event. A step that fails is retried, then parked, and the log goes on. Steps with one cause form a group.</p>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${!value && !error && html`<${Loading} />`}
    ${value?.length === 0 && html`<${Empty}>No step is parked.<//>`}
    ${value?.map((group) => html`<${Group} key=${[group.plugin, group.hook, group.kind, group.line].join(" ")} group=${group} reload=${reload} edit=${edit} />`)}
    ${dialog}
  </div>`;
}
