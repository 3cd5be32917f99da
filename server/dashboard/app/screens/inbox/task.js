// One task: its subject, its actions, and its tabs.

import { html, useEffect, useRef } from "../../vendor/ui.js";
import { get, query as run } from "../../api/client.js";
import { change, moment, parametersAt, route } from "../../state/route.js";
import { Badge, Failure, label, Link, Loading, Time } from "../../parts/basic.js";
import { useLive, useLoad } from "../../parts/load.js";
import { Markdown } from "../../parts/markdown.js";
import { Reason } from "../../parts/refused.js";
import { arrows } from "../../parts/tabs.js";
import { Raw, Value } from "../../parts/value.js";
import { ACTIONS, blocked, markRead, offers, pending, shown, stale, superseded } from "./decisions.js";
import { Changes, current, Effects, Output, Timeline } from "./content.js";
import { nameOf, readPeople } from "./people.js";
import { rowOf } from "./views.js";

const QUIET_MS = 200;
/** The maximum number of shown events of a timeline. */
const TIMELINE = 200;
/** The maximum number of shown events of an approval. */
const APPENDED = 100;

/** A task with all its content, and the states that its effects would change. @param {string} id @param {AbortSignal} abort */
async function load(id, abort) {
  const whole = await get(`/mailbox/${encodeURIComponent(id)}`, { timeline: TIMELINE }, abort);
  const before = await Promise.all(whole.would_append.map((/** @type {any} */ effect) => (effect.version <= 1 ? null
    : get(`/aggregates/${encodeURIComponent(effect.aggregate_id)}`, { version: effect.version - 1 }, abort).catch(() => null))));
  return { whole, before, appended: await appendedOf(whole, abort) };
}

/** The events that approval has appended for the artifacts of a task. @param {any} whole @param {AbortSignal} abort @returns {Promise<any[]>} */
async function appendedOf(whole, abort) {
  if (whole.status !== "approved") return [];
  const effects = current(whole.artifacts).flatMap((artifact) => artifact.effect ?? []);
  const ids = [...new Set(effects.map((effect) => effect.aggregate_id ?? whole.source?.aggregate_id).filter(Boolean))];
  if (ids.length === 0) return [];
  const found = await run([{ $match: { aggregate_id: { $in: ids }, "metadata.task_id": whole.id, "metadata.source": "task" } }], { limit: APPENDED }, abort).catch(() => ({ results: [] }));
  return found.results;
}

/** A task at a moment: its state, and its events up to this moment. @param {string} id @param {import("../../state/route.js").Moment} when @param {AbortSignal} abort */
async function loadPast(id, when, abort) {
  const path = `/aggregates/${encodeURIComponent(id)}`;
  const state = await get(path, parametersAt(when), abort);
  const { data } = await get(`${path}/events`, { limit: TIMELINE, direction: "desc", after_version: Number(state._version) + 1 }, abort);
  const timeline = data.toReversed().map((/** @type {any} */ event) => ({
    ...event, ...event.metadata, detail: event.payload, status: event.payload.status ?? null,
    messages: (event.payload.messages ?? []).map((/** @type {any} */ message) => message.id), artifacts: (event.payload.artifacts ?? []).map((/** @type {any} */ artifact) => artifact.id),
  }));
  const empty = { artifacts: [], messages: [], source: {}, metadata: {}, attempt: 1 };
  return { whole: { ...empty, ...rowOf(state), timeline, would_append: [], would_refuse: null }, before: [], appended: [] };
}

/** @param {{id: string, row: any, may: (action: string) => boolean, begin: (action: string) => void, refused: string, close: () => void}} props */
export function Task({ id, row, may, begin, refused, close }) {
  const now = moment.value;
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const { value, error, reload } = useLoad((abort) => (now ? loadPast(id, now, abort) : load(id, abort)), [id, now]);
  useEffect(() => { shown.value = now ? null : value?.whole ?? null; }, [value, now]);
  useEffect(() => () => { if (shown.peek()?.id === id) shown.value = null; }, [id]);
  useEffect(() => { readPeople(); }, []);
  useLive(reload, now ? null : (event) => concerns(event, id, shown.peek()), QUIET_MS);
  const back = html`<button class="quiet back" onClick=${close}>← Inbox</button>`;
  if (error && !value) return html`<section class="detail" aria-label="Task" tabindex="-1">${back}<${Failure} error=${error} retry=${reload} /></section>`;
  if (!value) return html`<section class="detail" aria-label="Task" tabindex="-1" ref=${element}>${back}${row && html`<h2 dir="auto">${row.title}</h2>`}<${Loading} /></section>`;
  const { whole, before, appended } = value;
  const task = { ...whole, ...(row && row.version >= whole.version ? { allowed_actions: row.allowed_actions, unread: row.unread } : {}) };
  // A key that can only read has no actions. The decisions stay visible, with the scope that they need.
  const isWithheld = (/** @type {string} */ action) => refused !== "" && task.status === "review" && ["approve", "edit", "reject"].includes(action);
  const effects = (appended.length > 0 ? appended : whole.would_append).length;
  const tab = route.value.query.get("tab") ?? "output";
  const tabs = [["output", "Output"], ["diff", "Diff"], ["effect", `Effect${effects ? ` (${effects})` : ""}`], ["timeline", "Timeline"], ["raw", "JSON"]];
  return html`<section class="detail" aria-label="Task" tabindex="-1" ref=${element}>
    ${back}${error && html`<${Failure} error=${error} retry=${reload} />`}
    <header><h2 dir="auto">${whole.title}</h2><${About} task=${task} /></header>
    ${pending.value.has(id) && html`<p class="banner">A decision on this task is about to be sent. <kbd>z</kbd> takes it back.</p>`}
    ${!now && html`<${Consequence} whole=${whole} show=${() => change({ tab: "diff" }, { replace: true })} />`}
    ${appended.length > 0 && html`<div class="consequence"><ul class="plain">${appended.map((event) => html`<li key=${event.event_id}>Approval appended <${Link} to=${`/events/${encodeURIComponent(event.event_id)}`}><code>${event.event_type}</code><//> to <${Link} to=${`/a/${encodeURIComponent(event.aggregate_id)}`} query=${{ v: event.version }}><bdi>${event.aggregate_id}</bdi> v${event.version}<//></li>`)}</ul></div>`}
    ${!now && html`<div class="actions" role="toolbar" aria-label="Actions">${Object.entries(ACTIONS).map(([action, { key, label }]) => (offers(task, action) || isWithheld(action)) && html`
      <button key=${action} class=${action === "approve" ? "primary" : ""} disabled=${!may(action)} title=${refused || (action === "approve" && blocked(task) ? `Approval would be refused: ${blocked(task).error}` : `${label} (${key})`)} onClick=${() => begin(action)}>${label} <kbd>${key}</kbd></button>`)}
      <button class="quiet" disabled=${refused !== ""} title=${refused || "Mark as read or unread (u)"} onClick=${() => markRead(task, !task.unread)}>${task.unread ? "Mark as read" : "Mark as unread"} <kbd>u</kbd></button></div>`}
    ${!now && html`<${Reason} refused=${refused} />`}
    ${whole.input_request && html`<div class="question"><h3>The agent asks</h3><${Markdown} text=${String(whole.input_request.message ?? "")} />
      ${whole.input_request.schema && html`<details><summary>The answer has a form</summary><${Value} value=${whole.input_request.schema} /></details>`}</div>`}
    <div class="tabs" role="tablist" aria-label="Content of the task">${tabs.map(([name, text]) => html`<button key=${name} role="tab" id=${`tab-${name}`} aria-controls="tab-panel" aria-selected=${tab === name} tabindex=${tab === name ? 0 : -1}
      onClick=${() => change({ tab: name === "output" ? null : name }, { replace: true })} onKeyDown=${arrows}>${text}</button>`)}</div>
    <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${tab}`}>
      ${tab === "output" && html`<${Output} task=${whole} />`}
      ${tab === "diff" && html`<${Changes} task=${whole} effects=${whole.would_append} before=${before} appended=${appended} isPast=${now !== null} />`}
      ${tab === "effect" && html`<${Effects} task=${whole} effects=${appended.length > 0 ? appended : whole.would_append} isPast=${now !== null} />`}
      ${tab === "timeline" && html`<${Timeline} task=${whole} />`}
      ${tab === "raw" && html`<${Raw} value=${whole} />`}
    </div>
  </section>`;
}

/** The resolution of a task in words, by its last action. @type {Record<string, string>} */
const RESOLVED = { approve: "approved", edit: "edited and approved", reject: "rejected", complete: "completed", fail: "failed", cancel: "canceled" };

/** @param {{task: any}} props */
function About({ task }) {
  const review = task.metadata?.review ?? {};
  return html`<p class="dim about"><${Badge} kind=${task.status} /> <${Badge} kind=${task.priority} />${task.overdue && html` <${Badge} kind="overdue" />`}
    <span>for <bdi>${nameOf(task.assignee_id)}</bdi></span>
    ${task.attempt > 1 && html`<span>attempt ${task.attempt}</span>`}
    ${task.source?.aggregate_id && html`<span>about <${Link} to=${`/a/${encodeURIComponent(task.source.aggregate_id)}`}><bdi>${task.source.aggregate_id}</bdi><//></span>`}
    ${task.due_at && html`<span>due <${Time} at=${task.due_at} /></span>`}
    ${task.status === "deferred" && html`<span>until ${task.deferred_until ? html`<${Time} at=${task.deferred_until} />` : "somebody acts on it"}</span>`}
    ${review.required_role && html`<span>decided by at least the role ${review.required_role}</span>`}
    ${task.resolution && html`<span>${RESOLVED[task.resolution.action] ?? String(task.resolution.action).replaceAll("_", " ")} by <bdi>${nameOf(task.resolution.by)}</bdi> <${Time} at=${task.resolution.at} /></span>`}
    <${Link} to=${`/a/${encodeURIComponent(task.id)}`} title="The task as an aggregate">v${task.version}<//></p>
    ${task.resolution && (task.resolution.comment || task.resolution.reason || task.resolution.error) && html`<p class="text" dir="auto">“${task.resolution.comment ?? task.resolution.reason ?? task.resolution.error}”</p>`}`;
}

/** The result of an approval, in one line. @param {{whole: any, show: () => void}} props */
function Consequence({ whole, show }) {
  if (superseded.value) return html`<div class="consequence is-stale" role="note"><strong>The output is from before the changes that were requested.</strong> Approval asks whether to accept it.</div>`;
  if (whole.would_refuse) return html`<div class="failure" role="note"><p>Approval would be refused: ${whole.would_refuse.error}</p><p class="dim"><code>${whole.would_refuse.code}</code></p></div>`;
  if (whole.would_append.length === 0) return null;
  return html`<div class=${`consequence ${stale.value.length ? "is-stale" : ""}`}>
    <ul class="plain">${whole.would_append.map((/** @type {any} */ effect) => html`<li key=${effect.artifact_id}>Approving appends <code>${effect.event_type}</code> to <${Link} to=${`/a/${encodeURIComponent(effect.aggregate_id)}`}><bdi title=${effect.aggregate_id}>${label(effect.state) || effect.aggregate_id}</bdi><//> → v${effect.version}
      ${effect.stale && html` <strong>The author read v${effect.stale.expected_version}; it is at v${effect.stale.current_version} now.</strong>`}</li>`)}</ul>
    <button class="quiet" onClick=${show}>Show the difference</button></div>`;
}

/** Whether an event changes the shown content of a task. @param {any} event @param {string} id @param {any} task that is shown */
function concerns(event, id, task) {
  const isAbout = task?.would_append?.some((/** @type {any} */ effect) => effect.aggregate_id === event.aggregate_id);
  return isAbout || (event.aggregate_id === id && event.version > (task?.version ?? 0));
}
