// Commands by name, aggregates by their content, and aggregates, tasks, agents and events by id or position.

import { html, useEffect, useState } from "../vendor/ui.js";
import { get, post } from "../api/client.js";
import { has } from "../api/session.js";
import { go, to } from "../state/route.js";
import { shortcuts } from "../state/keys.js";
import { Failure, label as labelOf } from "./basic.js";
import { NowNote } from "./now.js";
import { Dialog } from "./dialog.js";

const MOST = 8;
const QUIET_MS = 150;

/** The form of an id, which is neither a word nor a command. */
const ID = /^(?=.*[\d:-])[\w.:-]{4,200}$/;
const POSITION = /^@?\d+$/;
/** The screens of the types that have their own screen. @type {Record<string, string>} */
const SCREENS = { task: "/inbox/", agent: "/agents/", article: "/articles/", view: "/pipelines/" };

/** Finds the results for an id or a position. @param {string} text @param {AbortSignal} abort @returns {Promise<{title: string, note: string, to: string}[]>} */
async function byId(text, abort) {
  const quietly = (/** @type {Promise<any>} */ found) => found.catch(() => null);
  if (POSITION.test(text)) {
    const position = Number(text.replace("@", ""));
    const found = position > 0 ? await quietly(get("/events", { after: position - 1, limit: 1 }, abort)) : null;
    const event = found?.data[0];
    return event?.position === position ? [{ title: event.event_type, note: `event at position ${position.toLocaleString("en")}`, to: `/events/${encodeURIComponent(event.event_id)}` }] : [];
  }
  if (!ID.test(text)) return [];
  const [state, event] = await Promise.all([`/aggregates/`, "/events/"].map((path) => quietly(get(path + encodeURIComponent(text), {}, abort))));
  const type = state?.aggregate_type ?? "";
  return [
    ...(state ? [{ title: labelOf(state) || text, note: `${type || "aggregate"} by its id`, to: `${SCREENS[type] ?? "/a/"}${encodeURIComponent(text)}` }] : []),
    ...(event ? [{ title: event.event_type, note: `event at position ${event.position.toLocaleString("en")}`, to: `/events/${encodeURIComponent(text)}` }] : []),
  ];
}

/** @param {{close: () => void}} props */
export default function Palette({ close }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState(/** @type {any[]} */ ([]));
  const [identified, setIdentified] = useState(/** @type {{title: string, note: string, to: string}[]} */ ([]));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    setChosen(0);
    setIdentified([]);
    // A key for published content cannot search.
    if (!text.trim() || !has("api:read")) return setFound([]);
    const abort = new AbortController();
    const timer = setTimeout(() => {
      byId(text.trim(), abort.signal).then((result) => { if (!abort.signal.aborted) setIdentified(result); });
      if (text.trim().length < 2) return setFound([]);
      post("/aggregates/search", { query: text.trim(), limit: MOST }, { signal: abort.signal })
        .then((result) => { setProblem(null); setFound(result.results); }, (error) => { if (!abort.signal.aborted) setProblem(error); });
    }, QUIET_MS);
    return () => { clearTimeout(timer); abort.abort(); };
  }, [text]);
  const wanted = text.trim().toLowerCase();
  // A command that a screen replaces with its own is listed once.
  const byLabel = new Map(shortcuts.value.map((shortcut) => [shortcut.label, shortcut]));
  const commands = [...byLabel.values()].filter(({ label, key, enabled }) => key !== "ctrl+k" && (enabled?.() ?? true) && label.toLowerCase().includes(wanted)).slice(0, MOST);
  const rows = [
    ...commands.map((command) => ({ title: command.label, note: command.group ?? "This screen", keys: command.key, run: command.run })),
    ...identified.map(({ title, note, to: target }) => ({ title, note, keys: "", run: () => go(to(target)) })),
    ...found.map((hit) => ({ title: hit.label || hit.aggregate_id, note: hit.aggregate_type, keys: "", run: () => go(to(`/a/${encodeURIComponent(hit.aggregate_id)}`)) })),
    ...(wanted.length > 1 && has("api:read") ? [{ title: `All results for “${text.trim()}”`, note: "Search", keys: "", run: () => go(to("/search", { q: text.trim() })) }] : []),
  ];
  const run = (/** @type {number} */ index) => {
    const row = rows[index];
    close();
    row?.run();
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "ArrowDown") setChosen(Math.min(chosen + 1, rows.length - 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") run(Math.min(chosen, rows.length - 1));
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title="Commands and search" close=${close} class="palette">
    <input type="search" aria-label="Command, or words to find" placeholder="Command, or words to find" value=${text} autofocus
      role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant=${rows.length ? `found-${chosen}` : undefined}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${keys} />
    <ul id="found" role="listbox" aria-label="Results">${rows.map((row, index) => html`<li key=${index} id=${`found-${index}`} role="option" aria-selected=${index === chosen} onClick=${() => run(index)}>
      <span><bdi>${row.title}</bdi></span><span class="dim">${row.note}</span>${row.keys && html`<kbd>${row.keys}</kbd>`}
    </li>`)}</ul>
    ${found.length > 0 && html`<${NowNote}>Search knows the present only: the aggregates are those of now.<//>`}
    ${problem && html`<${Failure} error=${problem} message=${`The search failed: ${problem.message}`} />`}
    ${rows.length === 0 && html`<p class="empty" role="status">No command has this name.</p>`}
  <//>`;
}
