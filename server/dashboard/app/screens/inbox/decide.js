// The input of an action: a reason, a time, a text, an assignee, or the consent to overwrite newer content.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../vendor/ui.js";
import { parse } from "../../api/json.js";
import { Failure, Loading } from "../../parts/basic.js";
import { Ask, Dialog } from "../../parts/dialog.js";
import { Value } from "../../parts/value.js";
import { ApproveMany } from "./bulk.js";
import { Stale } from "./content.js";
import { ACTIONS, decide as begin, draftOf, drafts, refusals, shown, superseded } from "./decisions.js";
import { Edit } from "./edit.js";
import { people, readPeople } from "./people.js";

/** @typedef {{action: string, tasks: any[], problem?: any, close: () => void, decide: (body: object, waits?: boolean, version?: number) => Promise<boolean>}} Props */

/** Sends a form with Ctrl+Enter from any of its fields. @param {KeyboardEvent} event */
export function sendKeys(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  /** @type {HTMLElement} */ (event.target).closest("form")?.requestSubmit();
}

/** @param {{action: string, tasks: any[], problem?: any, close: () => void, nextAfter: (gone: any[]) => () => void}} given */
export function Decide(given) {
  const { action, tasks, problem, close, nextAfter } = given;
  /** Decides, and shows the next task: immediately or, with `waits`, after the server has accepted the decision. @param {object} body @param {boolean} [waits] @param {number} [version] that was read */
  const decide = async (body, waits = false, version = undefined) => {
    const moveOn = nextAfter(tasks);
    const deciding = begin(action, tasks, body, version);
    if (!waits) moveOn();
    const isDone = await deciding;
    if (waits && isDone) moveOn();
    return isDone;
  };
  const props = { action, tasks, problem, close, decide };
  const what = tasks.length === 1 ? tasks[0].title : `${tasks.length.toLocaleString("en")} tasks`;
  const written = tasks.length === 1 ? draftOf(tasks[0], action) ?? {} : {};
  switch (action) {
    case "approve": return tasks.length === 1 && (problem || shown.value?.id === tasks[0].id) ? html`<${Accept} ...${props} what=${what} />` : html`<${ApproveMany} ...${props} what=${what} />`;
    case "reject": return html`<${Ask} title=${`Reject ${what}`} label="Reason (optional)" action="Reject" value=${written.reason ?? ""} hint=${problem?.message} keep=${(/** @type {string} */ reason) => { for (const { id } of tasks) drafts.set(`${id} reject`, { reason }); }} close=${close} submit=${(/** @type {string} */ reason) => decide(reason ? { reason } : {})} />`;
    case "retry": return html`<${Ask} title=${`Retry ${what}`} label="Comment (optional)" action="Retry" close=${close} submit=${(/** @type {string} */ comment) => decide(comment ? { comment } : {})} />`;
    case "request_changes": return html`<${Message} ...${props} title=${`Request changes to ${what}`} label="What is to be different" />`;
    case "ask": return html`<${Message} ...${props} title=${`Ask about ${what}`} label="Question" />`;
    case "answer": return html`<${Message} ...${props} title=${`Answer ${what}`} label="Answer" />`;
    case "defer": return html`<${Defer} ...${props} what=${what} />`;
    case "assign": return html`<${Assign} ...${props} what=${what} />`;
    case "edit": return html`<${Edit} ...${props} />`;
    default: return null;
  }
}

/** @param {any} schema whether an answer with this schema is a text that people type */
const isText = (schema) => !schema || schema.type === "string" || (Array.isArray(schema.enum) && schema.enum.every((/** @type {any} */ value) => typeof value === "string"));

/** A text for the agent. The dialog stays open until the server has accepted the text. @param {Props & {title: string, label: string}} props */
function Message({ action, tasks, close, decide, title, label }) {
  const [task] = tasks;
  const question = action === "answer" && tasks.length === 1 && shown.value?.id === task.id ? shown.value.input_request : null;
  const schema = question?.schema ?? null;
  const draft = tasks.length === 1 ? draftOf(task, action) : "";
  const [text, setText] = useState(typeof draft === "string" ? draft : "");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isSending, setSending] = useState(false);
  const write = (/** @type {any} */ event) => { setText(event.target.value); for (const one of tasks) drafts.set(`${one.id} ${action}`, event.target.value); };
  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    /** @type {any} */
    let body = { message: text };
    if (!isText(schema)) {
      try { body = { parts: [{ data: parse(text) }] }; } catch (/** @type {any} */ problem) { return setError(new Error(`The answer is not JSON: ${problem.message}`)); }
    }
    setSending(true);
    const isDone = await decide(body, true);
    setSending(false);
    if (isDone || tasks.length > 1) return close();
    const refusal = refusals.peek().find((one) => one.task.id === task.id);
    setError(Object.assign(new Error([refusal?.who, refusal?.error.message ?? "The server did not accept this."].filter(Boolean).join(": ")), { code: refusal?.error.code, requestId: refusal?.error.requestId }));
  };
  return html`<${Dialog} title=${title} close=${close}><form onSubmit=${send} onKeyDown=${sendKeys}>
    ${question && html`<p class="text" dir="auto">${String(question.message ?? "")}</p>`}
    ${schema && !isText(schema) && html`<details open><summary>The answer is JSON of this form</summary><${Value} value=${schema} /></details>`}
    <label>${label}
      ${schema?.enum && isText(schema) ? html`<select required autofocus value=${text} onChange=${write}><option value="">choose</option>${schema.enum.map((/** @type {string} */ value) => html`<option key=${value} value=${value}>${value}</option>`)}</select>`
        : html`<textarea rows="5" required autofocus class=${isText(schema) ? "" : "code"} value=${text} onInput=${write}></textarea>`}</label>
    ${error && html`<${Failure} error=${error} />`}
    <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary" disabled=${isSending}>${ACTIONS[action].label}</button></footer>
  </form><//>`;
}

/** Asks whether an approval may overwrite changes that the author has not read, or accepts output that was sent back. @param {Props & {what: string}} props */
function Accept({ tasks: [task], problem, close, decide, what }) {
  const whole = shown.value?.id === task.id ? shown.value : null;
  const found = whole?.would_append.filter((/** @type {any} */ effect) => effect.stale) ?? [];
  const told = found.length > 0 ? found : problem?.body?.difference ? [{ aggregate_id: problem.body.aggregate_id, stale: problem.body }] : [];
  const isOld = problem?.code === "superseded" || (whole !== null && superseded.value);
  const isStale = told.length > 0 || problem?.code === "stale";
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const comment = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get("comment") ?? "");
    close();
    decide({ ...(isStale ? { accept_stale: true } : {}), ...(isOld ? { accept_superseded: true } : {}), ...(comment ? { comment } : {}) });
  };
  return html`<${Dialog} title=${`Approve ${what}?`} close=${close} class="wide"><form onSubmit=${send} onKeyDown=${sendKeys}>
    ${isOld && html`<p>The output is from before the changes that were requested.</p>`}
    ${told.length === 0 && !isOld && html`<p>${problem?.message ?? "The output is based on an older version."}</p>`}
    ${told.map((/** @type {any} */ effect) => html`<${Stale} key=${effect.aggregate_id} effect=${effect} />`)}
    <label>Comment (optional) <input name="comment" /></label>
    <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary" autofocus>Approve nevertheless</button></footer></form><//>`;
}

const DURATIONS = /** @type {const} */ ([["1", "an hour", 3_600], ["2", "until tomorrow", 86_400], ["3", "three days", 259_200], ["4", "a week", 604_800]]);

/** @param {Props & {what: string}} props */
function Defer({ close, decide, what }) {
  const choose = (/** @type {object} */ body) => { close(); decide(body); };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const found = DURATIONS.find(([key]) => key === event.key);
    if (!found || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    choose({ until: new Date(Date.now() + found[2] * 1_000).toISOString() });
  };
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const reason = String(fields.get("reason") ?? "");
    choose({ until: new Date(String(fields.get("until"))).toISOString(), ...(reason ? { reason } : {}) });
  };
  return html`<${Dialog} title=${`Defer ${what}`} close=${close}><div onKeyDown=${keys}>
    <div class="choices">${DURATIONS.map(([key, label, seconds], index) => html`<button key=${key} type="button" autofocus=${index === 0} onClick=${() => choose({ until: new Date(Date.now() + seconds * 1_000).toISOString() })}><kbd>${key}</kbd> ${label}</button>`)}
      <button type="button" onClick=${() => choose({ reason: "until somebody acts on it" })}>until somebody acts on it</button></div>
    <form onSubmit=${send}><label>Until <input type="datetime-local" name="until" required /></label><label>Reason (optional) <input name="reason" /></label>
      <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary">Defer</button></footer></form></div>
  <//>`;
}

/** @param {Props & {what: string}} props */
function Assign({ close, decide, what }) {
  const [isReady, setReady] = useState(people.value.length > 0);
  const select = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => { readPeople(true).then(() => setReady(true)); }, []);
  useLayoutEffect(() => { select.current?.focus(); }, [isReady]);
  const choices = people.value.filter((person) => (person.type === "user" ? person.status === "active" : person.status !== "disabled"));
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const fields = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const [type, id] = String(fields.get("to")).split("/");
    const due = String(fields.get("due") ?? "");
    close();
    decide({ ...(type === "nobody" ? { assignee_type: "none" } : { assignee_type: type, assignee_id: id }), ...(due ? { due_at: new Date(due).toISOString() } : {}) });
  };
  return html`<${Dialog} title=${`Assign ${what}`} close=${close}>${!isReady ? html`<${Loading} />` : html`
    <form onSubmit=${send} onKeyDown=${sendKeys}><label>To <select name="to" ref=${select}>
      ${choices.map((choice) => html`<option key=${choice.id} value=${`${choice.type}/${choice.id}`}>${choice.name} (${choice.type === "user" ? "person" : "agent"})</option>`)}
      <option value="nobody">nobody</option></select></label>
      <label>Due (optional) <input type="datetime-local" name="due" /></label>
      <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary" title="Ctrl Enter">Assign</button></footer></form>`}
  <//>`;
}
