// The inbox: tasks that wait for a decision, and the open task.

import { html, useEffect, useRef } from "../vendor/ui.js";
import { listen } from "../api/feed.js";
import { register } from "../state/keys.js";
import { earlier, go, isCompared, moment, to } from "../state/route.js";
import { lazy } from "../parts/lazy.js";
import { refusal } from "../parts/refused.js";
import { loadStyle } from "../parts/style.js";
import { Filters } from "./inbox/filters.js";
import { Bulk, List, Refusals } from "./inbox/list.js";
import { ACTIONS, asking, blocked, decide, markRead, offers, pending, selected, shown, stale, superseded } from "./inbox/decisions.js";
import { me, readPeople } from "./inbox/people.js";
import { isOwn, more, read, refresh, status, tasks } from "./inbox/tasks.js";
import { FILTERS, parameters } from "./inbox/views.js";

const QUIET_MS = 250;
/** The time until a failed update of the list is retried, in milliseconds. */
const RETRY_MS = 3_000;
/** The time for which a task is shown before it counts as read, in milliseconds. */
const READ_MS = 600;
/**
 * The maximum number of selected tasks. Their ids and versions fit into the 64 KiB that a page may send while the page
 * is left.
 */
const MOST_SELECTED = 1_300;

loadStyle("inbox");

const Task = lazy(() => import("./inbox/task.js").then((module) => module.Task));
const Decide = lazy(() => import("./inbox/decide.js").then((module) => module.Decide));
/** The time until the parts that the first paint does not need are loaded, in milliseconds. */
const LATER_MS = 300;

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Inbox({ path: [id], query }) {
  const now = moment.value;
  const anchor = useRef(-1);
  const opened = useRef(id);
  opened.current = id;
  const list = tasks.value;
  const row = list.find((task) => task.id === id);
  const whole = shown.value?.id === id ? shown.value : null;
  const task = row ?? whole;
  const isPast = now !== null || isCompared.value;
  const refused = refusal() || (isPast ? "Nothing is changed while two moments are compared." : "");
  const mayWrite = refused === "";
  const filters = JSON.stringify(parameters(query, me.value));
  const subject = () => ({ wanted: JSON.parse(filters), now: moment.peek(), before: earlier.peek(), isCompared: isCompared.peek() });
  const again = () => read(subject());

  useEffect(() => {
    readPeople();
    const timer = setTimeout(() => { Task.preload(); Decide.preload(); }, LATER_MS);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => { again(); selected.value = new Map(); }, [filters, now, earlier.value, isCompared.value]);
  useEffect(() => (isPast ? undefined : follow()), [isPast]);
  const open = (/** @type {string | undefined} */ next, replace = true) =>
    go(to(next ? `/inbox/${encodeURIComponent(next)}` : "/inbox", Object.fromEntries([...query].filter(([name]) => FILTERS.includes(name) || name === "tab"))), { replace });
  const step = (/** @type {number} */ by) => {
    if (list.length === 0) return;
    const chosen = list.findIndex((known) => known.id === id);
    const next = Math.min(Math.max(chosen + by, 0), list.length - 1);
    if (next > list.length - 20) more();
    open(list[next].id);
  };
  /** @param {string} other @param {boolean} range */
  const toggle = (other, range = false) => {
    const next = new Map(selected.peek());
    const index = list.findIndex((known) => known.id === other);
    if (range && anchor.current >= 0) {
      const [from, end] = [Math.min(anchor.current, index), Math.max(anchor.current, index)];
      for (const known of list.slice(from, end + 1)) next.set(known.id, known.version);
    } else if (!next.delete(other)) next.set(other, list[index]?.version ?? task?.version);
    anchor.current = index;
    selected.value = next;
  };
  const selectAll = async () => {
    while (tasks.peek().length < MOST_SELECTED && await more());
    selected.value = new Map(tasks.peek().slice(0, MOST_SELECTED).map((known) => [known.id, known.version]));
  };
  // An action does not apply to a selected task that has left the list.
  const chosen = selected.value.size === 0 ? [] : list.flatMap((known) => (selected.value.has(known.id) ? [{ ...known, version: selected.value.get(known.id) }] : []));
  const concerned = () => (chosen.length > 0 ? chosen : task ? [task] : []);
  // An edit applies to the output of one task.
  const may = (/** @type {string} */ action) => mayWrite && concerned().some((known) => offers(known, action)) && !(action === "approve" && chosen.length === 0 && task && blocked(task)) && !(action === "edit" && chosen.length > 1);
  /** Returns a function that shows the next task after a decision on the open one. @param {any[]} gone */
  const nextAfter = (gone) => {
    const ids = new Set(gone.map((known) => known.id));
    const chosen = list.findIndex((known) => known.id === id);
    const next = list.slice(chosen + 1).find((known) => !ids.has(known.id)) ?? list.slice(0, Math.max(chosen, 0)).findLast((known) => !ids.has(known.id));
    return () => {
      if (!id || !ids.has(id) || opened.current !== id) return;
      open(next?.id);
      const isLost = document.activeElement === document.body || document.activeElement?.closest(".detail");
      if (isLost) /** @type {HTMLElement | null} */ (document.querySelector(".inbox .window"))?.focus({ preventScroll: true });
    };
  };
  const begin = (/** @type {string} */ action) => {
    const some = concerned().filter((known) => offers(known, action));
    if (some.length === 0 || !may(action)) return;
    const isPlain = action === "approve" && some.length === 1 && some[0].id === id && stale.peek().length === 0 && !superseded.peek();
    if (!isPlain) { asking.value = { action, tasks: some }; return; }
    const moveOn = nextAfter(some);
    decide(action, some);
    moveOn();
  };
  const isFresh = task?.unread === true && mayWrite && !pending.value.has(task?.id);
  useEffect(() => {
    if (!isFresh) return;
    const timer = setTimeout(() => markRead(task, false), READ_MS);
    return () => clearTimeout(timer);
  }, [id, task !== undefined && task !== null]);
  const here = useRef(/** @type {any} */ ({}));
  here.current = { task, mayWrite, step, toggle, begin, may, selectAll, open, list };
  useEffect(() => {
    const now = () => here.current;
    return register([
      { key: "j", label: "Next task", run: () => now().step(1), repeats: true },
      { key: "k", label: "Previous task", run: () => now().step(-1), repeats: true },
      { key: "arrowright", label: "Next task (arrow)", run: () => now().step(1), enabled: () => Boolean(now().task), repeats: true },
      { key: "arrowleft", label: "Previous task (arrow)", run: () => now().step(-1), enabled: () => Boolean(now().task), repeats: true },
      { key: "ctrl+enter", label: "Approve, and open the next task", run: () => now().begin("approve"), enabled: () => now().may("approve") },
      { key: "x", label: "Select", run: () => now().task && now().toggle(now().task.id) },
      { key: "X", label: "Select up to here", run: () => now().task && now().toggle(now().task.id, true) },
      { key: "*", label: "Select all", run: () => now().selectAll() },
      { key: "enter", label: "Go to the task", run: () => (now().task ? /** @type {HTMLElement | null} */ (document.querySelector(".inbox .detail"))?.focus() : now().step(1)) },
      { key: "escape", label: "Back to the list, select nothing", run: () => back() },
      { key: "u", label: "Mark as read or unread", run: () => markRead(now().task, !now().task.unread), enabled: () => now().mayWrite && now().task },
      ...Object.entries(ACTIONS).map(([action, { key, label }]) => ({ key, label, run: () => now().begin(action), enabled: () => now().may(action) })),
    ]);
  }, []);

  return html`<div class="inbox ${id ? "open" : ""}">
    <section class="list" aria-label="Tasks">
      <${Filters} query=${query} />
      ${chosen.length > 0 && html`<${Bulk} count=${chosen.length} may=${may} begin=${begin} selectAll=${selectAll} />`}
      <${Refusals} open=${open} />
      <${List} id=${id} open=${open} toggle=${toggle} again=${again} isPast=${isPast} />
    </section>
    ${id ? html`<${Task} key=${id} id=${id} row=${row} may=${may} begin=${begin} refused=${refused} close=${() => open(undefined)} />`
      : html`<section class="detail none"><p class="empty">${list.length > 0 && !isCompared.value ? html`Choose a task, or press <kbd>j</kbd>.` : ""}</p></section>`}
    ${asking.value && html`<${Decide} ...${asking.value} close=${() => { asking.value = null; }} nextAfter=${nextAfter} />`}
  </div>`;
}

/** Moves the focus from the task to the list, and at the next call clears the selection. */
function back() {
  const list = /** @type {HTMLElement | null} */ (document.querySelector(".inbox .window"));
  if (document.activeElement?.closest(".detail") && list) list.focus({ preventScroll: true });
  else selected.value = new Map();
}

/** Keeps the list up to date with the events of tasks. Returns a function that stops the updates. */
function follow() {
  /** @type {Map<string, number>} */
  let changed = new Map();
  /** @type {number | undefined} */
  let timer;
  let hasEnded = false;
  // A constant stream of events must not delay the update forever.
  const soon = (wait = QUIET_MS) => { if (!hasEnded) timer ??= setTimeout(update, wait); };
  const update = async () => {
    const some = changed;
    // The page that is being read may be older than the changes.
    const isFree = !status.peek().isLoading;
    if (isFree) changed = new Map();
    const isDone = isFree && await refresh(some).then(() => true, () => false);
    if (isFree && !isDone) changed = new Map([...some, ...changed]);
    timer = undefined;
    if (changed.size > 0) soon(isFree && !isDone ? RETRY_MS : QUIET_MS);
  };
  const stop = listen((event) => {
    if (event.aggregate_type !== "task" || isOwn(event.aggregate_id, event.version)) return;
    changed.set(event.aggregate_id, event.version);
    soon();
  });
  return () => { hasEnded = true; clearTimeout(timer); stop(); };
}
