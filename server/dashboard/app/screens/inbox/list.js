// The list of the inbox, the bar of the selected tasks, and the rejected decisions.

import { html } from "../../vendor/ui.js";
import { to } from "../../state/route.js";
import { detailOf } from "../../state/toasts.js";
import { Badge, Empty, Failure, Loading, Time } from "../../parts/basic.js";
import { lazy } from "../../parts/lazy.js";
import { Rows } from "../../parts/rows.js";
import { ACTIONS, asking, dismissRefusal, draftOf, refusals, selected } from "./decisions.js";
import { nameOf } from "./people.js";
import { compared, more, status, tasks, total } from "./tasks.js";

const Compared = lazy(() => import("../../parts/compared.js").then((module) => module.Compared));
const ROW = 60;
/** The number of rejected decisions that are listed until the user requests more. */
const REFUSED = 50;

/** @param {{id: string | undefined, open: (id: string, replace?: boolean) => void, toggle: (id: string, range: boolean) => void, again: () => void, isPast: boolean}} props */
export function List({ id, open, toggle, again, isPast }) {
  const list = tasks.value;
  const { isLoading, error } = status.value;
  if (error) return html`<${Failure} error=${error} retry=${again} />`;
  if (isLoading && list.length === 0) return html`<${Loading} />`;
  if (compared.value) return html`<div class="scroll-y"><${Compared} result=${compared.value} label="Tasks at two moments" title=${(/** @type {any} */ state) => html`<bdi>${state.title}</bdi> <${Badge} kind=${state.status} />`} /></div>`;
  if (list.length === 0) return html`<${Empty}>No task is in this view${isPast ? " at this moment" : ""}.<//>`;
  // The scroll bar shows the number of all tasks, even while pages are still being read.
  const count = status.value.next ? Math.max(total.value ?? 0, list.length) : list.length;
  return html`<${Rows} count=${count} loaded=${list.length} height=${ROW} chosen=${list.findIndex((task) => task.id === id)} label="Tasks" id=${(/** @type {number} */ index) => list[index]?.id ?? index} reachedEnd=${more} row=${(/** @type {number} */ index) => {
    const task = list[index];
    if (!task) return html`<div class="task dim" aria-busy="true">…</div>`;
    const follow = (/** @type {MouseEvent} */ event) => {
      if (event.button !== 0 || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      if (event.shiftKey) toggle(task.id, true);
      else open(task.id, false);
    };
    return html`<div class=${`task ${task.id === id ? "chosen" : ""} ${task.unread ? "is-unread" : ""}`}>
      ${!isPast && html`<input type="checkbox" aria-label=${`Select ${task.title}`} checked=${selected.value.has(task.id)} onClick=${(/** @type {MouseEvent} */ event) => toggle(task.id, event.shiftKey)} />`}
      <a href=${to(`/inbox/${encodeURIComponent(task.id)}`)} aria-current=${task.id === id ? "true" : undefined} onClick=${follow}>
        <span class="title" dir="auto">${task.unread && html`<span class="hidden">Unread: </span>`}${task.title}</span>
        <span class="about dim"><${Badge} kind=${task.status} />${task.priority !== "normal" && html` <${Badge} kind=${task.priority} />`}${task.overdue && html` <${Badge} kind="overdue" />`}
          <span class="grow">${task.assignee_id ? html`<bdi>${nameOf(task.assignee_id)}</bdi>` : ""}</span> <${Time} at=${task.updated_at} /></span>
      </a></div>`;
  }} />`;
}

/** The actions for all selected tasks. @param {{count: number, may: (action: string) => boolean, begin: (action: string) => void, selectAll: () => void}} props */
export function Bulk({ count, may, begin, selectAll }) {
  return html`<div class="bulk" role="toolbar" aria-label="Selected tasks">
    <strong role="status">${count.toLocaleString("en")} selected</strong>
    ${Object.entries(ACTIONS).filter(([action]) => action !== "edit").map(([action, { label, key }]) => may(action) && html`
      <button key=${action} onClick=${() => begin(action)} title=${`${label} (${key})`}>${label}</button>`)}
    <button class="quiet" onClick=${selectAll} title="Select all (*)">Select all</button>
    <button class="quiet" onClick=${() => { selected.value = new Map(); }} title="Select nothing (Escape)">Clear</button></div>`;
}

/** The decisions that the server rejected, one line for each task. @param {{open: (id: string) => void}} props */
export function Refusals({ open }) {
  const some = refusals.value;
  if (some.length === 0) return null;
  const again = (/** @type {any} */ refusal) => {
    open(refusal.task.id);
    asking.value = { action: refusal.action, tasks: [refusal.task], problem: refusal.error };
  };
  return html`<section class="refusals" aria-label="Refused decisions">
    <header class="bar"><h2>${some.length.toLocaleString("en")} refused</h2><button class="quiet" onClick=${() => { refusals.value = []; }}>Dismiss all</button></header>
    <ul class="plain">${some.slice(0, REFUSED).map((refusal) => {
      const { task, action, error, who } = refusal;
      const isOpen = (task.allowed_actions ?? []).includes(action);
      return html`<li key=${task.id}><button class="link" dir="auto" onClick=${() => open(task.id)}>${task.title}</button>
        <span>${who ? `${who[0].toUpperCase()}${who.slice(1)}.` : error.message}</span> <code class="dim">${detailOf(error)}</code>
        ${error.code === "stale" && html`<button onClick=${() => again(refusal)}>See the difference</button>`}
        ${error.code === "superseded" && action === "approve" && html`<button onClick=${() => again(refusal)}>Approve nevertheless</button>`}
        ${error.code !== "stale" && isOpen && (action === "edit" || action === "reject") && html`<button onClick=${() => again(refusal)}>${draftOf(task, action) ? "Open my text" : "Try again"}</button>`}
        ${!(isOpen && (action === "edit" || action === "reject")) && draftText(refusal) && html`<details><summary>My text</summary><p class="text" dir="auto">${draftText(refusal)}</p></details>`}
        <button class="quiet" aria-label=${`Dismiss the refusal of ${task.title}`} onClick=${() => dismissRefusal(task.id)}>×</button></li>`;
    })}</ul>
    ${some.length > REFUSED && html`<p class="dim">and ${(some.length - REFUSED).toLocaleString("en")} more</p>`}
  </section>`;
}

/** The typed text of a decision that is no longer possible. @param {{body: any}} refusal */
function draftText({ body }) {
  const artifacts = (body.artifacts ?? []).map((/** @type {any} */ artifact) => artifact.text ?? JSON.stringify(artifact.data ?? artifact.parts, null, 2));
  return [...artifacts, body.reason, body.comment, body.message].filter(Boolean).join("\n\n");
}
