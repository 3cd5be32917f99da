// Approval with changes: the content of artifacts, and the effects that follow from it.

import { html, useEffect, useLayoutEffect, useState } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { parse, stringify } from "../../api/json.js";
import { Failure, Loading } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { Value } from "../../parts/value.js";
import { current, Stale } from "./content.js";
import { sendKeys } from "./decide.js";
import { draftOf, drafts, shown } from "./decisions.js";
import { Sides, typedRow } from "./sides.js";
import { ownVersion } from "./tasks.js";

/** @typedef {{key: string, label: string, isJson: boolean, before: string, value: string, artifact: any, part?: number, field?: string}} Field */

/** The fields of a form for the artifacts of a task. @param {any} task @returns {Field[]} */
function fieldsOf(task) {
  return current(task.artifacts).flatMap((/** @type {any} */ artifact) => {
    const field = (/** @type {string} */ key, /** @type {string} */ label, /** @type {any} */ value, /** @type {object} */ more) => {
      const isJson = typeof value !== "string";
      const text = isJson ? stringify(value ?? null, 2) : value;
      return { key: `${artifact.name} ${key}`, label, isJson, before: text, value: text, artifact, ...more };
    };
    const parts = artifact.parts.map((/** @type {any} */ part, /** @type {number} */ index) => {
      const number = artifact.parts.length > 1 ? `, part ${index + 1}` : "";
      return field(`part ${index}`, `${artifact.name}${number}`, part.text ?? part.data ?? part, { part: index });
    });
    const payload = Object.entries(artifact.effect?.payload ?? {}).map(([name, value]) => field(`effect ${name}`, name, value, { field: name }));
    return [...parts, ...payload];
  });
}

/** The value of a field, which throws if it is not JSON. @param {Field} field */
const read = (field) => (field.isJson ? parse(field.value) : field.value);
/** @param {Field} field */
const isChanged = (field) => field.value !== field.before;

/** The reason why a field cannot be sent. @param {Field} field */
function problemOf(field) {
  if (!field.isJson) return "";
  try { parse(field.value); return ""; } catch (/** @type {any} */ error) { return `Not JSON: ${error.message}`; }
}

/** The changed artifacts as the operation accepts them. @param {Field[]} fields */
function changedArtifacts(fields) {
  const byArtifact = Map.groupBy(fields, (field) => field.artifact);
  return [...byArtifact].flatMap(([artifact, own]) => {
    if (!own.some(isChanged)) return [];
    /** @type {any} */
    const changed = { name: artifact.name };
    const parts = own.filter((field) => field.part !== undefined);
    if (parts.some(isChanged)) {
      const values = artifact.parts.map((/** @type {any} */ part, /** @type {number} */ index) => {
        const value = read(parts[index]);
        if (part.text !== undefined) return { ...part, text: value };
        return part.data !== undefined ? { ...part, data: value } : value;
      });
      const [only] = values;
      if (values.length === 1 && Object.keys(only).length === 1 && "text" in only) changed.text = only.text;
      else if (values.length === 1 && Object.keys(only).length === 1 && "data" in only) changed.data = only.data;
      else changed.parts = values;
    }
    const payload = own.filter((field) => field.field !== undefined);
    if (payload.some(isChanged)) changed.effect = { ...artifact.effect, payload: Object.fromEntries(payload.map((field) => [field.field, read(field)])) };
    return [changed];
  });
}

/** The payload fields that the server changes together with the content. @param {Field} part @param {Field[]} fields */
function followers(part, fields) {
  if (part.isJson || part.part === undefined) return [];
  return fields.filter((field) => field.artifact === part.artifact && field.field !== undefined && !isChanged(field) && field.before === part.before);
}

/** The typed value of a field, even if the text is not JSON yet. @param {Field} field @param {"before" | "value"} which */
function valueOf(field, which) {
  if (!field.isJson) return field[which];
  try { return parse(field[which]); } catch { return field[which]; }
}

/** The current sides of an artifact in the form. @param {Field[]} own */
function typedSides(own) {
  return own.map((field) => {
    const leader = field.field === undefined ? undefined : own.find((part) => isChanged(part) && followers(part, own).includes(field));
    const now = valueOf(leader ?? field, "value");
    return typedRow({ name: field.field ?? (own.filter((one) => one.part !== undefined).length > 1 ? `content, part ${(field.part ?? 0) + 1}` : "content"), before: valueOf(field, "before"), now, ...(field.field === undefined ? {} : { effective: now }) });
  });
}

/** @param {import("./decide.js").Props} props */
export function Edit({ tasks: [task], problem, close, decide }) {
  // After a rejection, the shown task may still be the rejected version.
  const [whole, setWhole] = useState(/** @type {any} */ (shown.peek()?.id === task.id && !problem ? shown.peek() : null));
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const [fields, setFields] = useState(/** @type {Field[]} */ ([]));
  const [comment, setComment] = useState("");
  const [accepts, setAccepts] = useState(false);
  const [acceptsOld, setAcceptsOld] = useState(false);
  const [error, setError] = useState("");
  const draft = draftOf(task, "edit");
  useEffect(() => { if (!whole) get(`/mailbox/${task.id}`).then(setWhole, setFailure); }, [task.id]);
  useEffect(() => {
    if (!whole) return;
    const typed = draft?.typed ?? {};
    setFields(fieldsOf(whole).map((field) => (field.key in typed ? { ...field, value: typed[field.key] } : field)));
    setComment(draft?.comment ?? "");
  }, [whole]);
  // The fields appear after the dialog, so the browser does not focus a field. The fields of a newer version replace
  // the focused button.
  const origin = fields[0]?.artifact;
  useLayoutEffect(() => { if (origin) /** @type {HTMLElement | null} */ (document.querySelector("dialog.edit textarea"))?.focus(); }, [origin]);
  /** Applies the text to another version, for which the user has not accepted anything yet. @param {any} newer */
  const take = (newer) => {
    setWhole(newer);
    setAccepts(false);
    setAcceptsOld(false);
  };
  const keep = (/** @type {Field[]} */ next, note = comment) => {
    const typed = Object.fromEntries(next.filter(isChanged).map((field) => [field.key, field.value]));
    drafts.set(`${task.id} edit`, { typed, comment: note });
  };
  const write = (/** @type {string} */ key, /** @type {string} */ value) => {
    const next = fields.map((field) => (field.key === key ? { ...field, value } : field));
    setFields(next);
    setError("");
    keep(next);
  };
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const wrong = fields.find((field) => problemOf(field));
    if (wrong) return setError(`${wrong.label}: ${problemOf(wrong)}`);
    const artifacts = changedArtifacts(fields);
    if (artifacts.length === 0) return setError("Nothing is changed. Approve the output as it is, or change it first.");
    const typed = Object.fromEntries(fields.filter(isChanged).map((field) => [field.key, field.value]));
    close();
    const body = { artifacts, ...(comment ? { comment } : {}), ...(accepts ? { accept_stale: true } : {}), ...(acceptsOld ? { accept_superseded: true } : {}) };
    decide(body, false, whole.version);
    drafts.set(`${task.id} edit`, { typed, comment });
  };
  const stale = whole?.would_append?.filter((/** @type {any} */ effect) => effect.stale) ?? [];
  const artifacts = [...Map.groupBy(fields, (field) => field.artifact)];
  const newer = whole && shown.value?.id === task.id && shown.value.version > ownVersion(task.id, whole.version) ? shown.value : null;
  const mustName = problem?.code === "effect_unchanged";
  return html`<${Dialog} title=${`Edit and approve ${task.title}`} close=${close} class="wide edit">
    ${problem && html`<${Failure} error=${problem} message=${`${problem.message}${mustName ? ". Change the fields of the effect below to say what is written." : ""}`} />`}
    ${failure && html`<${Failure} error=${failure} />`}
    ${newer && html`<p class="banner" role="status">The task has changed since you began, and an edit of version ${whole.version} will be refused. <button type="button" class="quiet" onClick=${() => take(newer)}>Use my text in version ${newer.version}</button></p>`}
    ${!whole && !failure && html`<${Loading} />`}
    ${whole && artifacts.length === 0 && html`<p>The task has no output that could be edited.</p>`}
    ${artifacts.length > 0 && html`<form onSubmit=${send} onKeyDown=${sendKeys}>
      ${whole.metadata?.review?.arguments_schema && html`<details><summary>Edits must have this form</summary><${Value} value=${whole.metadata.review.arguments_schema} /></details>`}
      ${artifacts.map(([artifact, own]) => html`<section key=${artifact.id} aria-label=${artifact.name}>
        <h3>${artifact.name} <span class="dim">version ${artifact.version}, becomes version ${artifact.version + 1}</span></h3>
        ${own.filter((field) => field.part !== undefined).map((field) => html`<${Input} key=${field.key} field=${field} write=${write} followers=${followers(field, fields)} />`)}
        ${artifact.effect && html`<details class="card" open=${mustName || own.some((field) => field.field !== undefined && isChanged(field))}><summary>Effect: <code>${artifact.effect.event_type}</code> <span class="dim">follows the content unless it is changed here</span></summary>
          ${own.filter((field) => field.field !== undefined).map((field) => html`<${Input} key=${field.key} field=${field} write=${write} rows=${field.value.length > 80 ? 5 : 2} />`)}</details>`}
        ${own.some(isChanged) && html`<${Sides} label=${`Proposed, edited and effective: ${artifact.name}`} rows=${typedSides(own)} heads=${["Proposed", "Edited", "Will be appended"]} />`}
      </section>`)}
      ${stale.map((/** @type {any} */ effect) => html`<${Stale} key=${effect.artifact_id} effect=${effect} />`)}
      ${(stale.length > 0 || problem?.code === "stale") && html`<label class="check"><input type="checkbox" checked=${accepts} required onChange=${(/** @type {any} */ event) => setAccepts(event.target.checked)} /> approve although the aggregate has changed</label>`}
      ${problem?.code === "superseded" && html`<label class="check"><input type="checkbox" checked=${acceptsOld} required onChange=${(/** @type {any} */ event) => setAcceptsOld(event.target.checked)} /> approve the unchanged output, too, although it is from before the changes that were requested</label>`}
      <label>Comment (optional) <input value=${comment} onInput=${(/** @type {any} */ event) => { setComment(event.target.value); keep(fields, event.target.value); }} /></label>
      ${error && html`<p class="error" role="alert">${error}</p>`}
      <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary" title="Ctrl Enter">Approve with changes</button></footer></form>`}
  <//>`;
}

/** @param {{field: Field, write: (key: string, value: string) => void, followers?: Field[], rows?: number}} props */
function Input({ field, write, followers: follow = [], rows = 10 }) {
  const problem = problemOf(field);
  const id = `edit ${field.key}`.replaceAll(/\W+/g, "-");
  return html`<label for=${id}>${field.label}${field.isJson && html` <span class="dim">JSON</span>`}</label>
    <textarea id=${id} rows=${rows} class=${field.isJson ? "code" : ""} dir=${field.isJson ? "ltr" : "auto"} spellcheck=${!field.isJson} value=${field.value} aria-invalid=${problem !== ""} aria-describedby=${`${id}-problem`}
      onInput=${(/** @type {any} */ event) => write(field.key, event.target.value)}></textarea>
    <p class="error" id=${`${id}-problem`}>${problem}</p>
    ${isChanged(field) && follow.length > 0 && html`<p class="dim">The effect's ${follow.map((one) => one.label).join(", ")} changes as well.</p>`}`;
}
