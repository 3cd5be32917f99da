// The fields of the filter: each changes the address, so that a filtered list can be shared.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { get, getAll } from "../../api/client.js";
import { change } from "../../state/route.js";
import { today } from "../../parts/clock.js";
import { useLoad } from "../../parts/load.js";

/** @param {{filter: import("./filter.js").Filter}} props */
export function Filters({ filter }) {
  const { value } = useLoad(async (abort) => {
    const [types, projects] = await Promise.all([getAll("/aggregate-types", abort), get("/projects", { limit: 200 }, abort)]);
    return { types: types.data, projects: projects.data };
  }, []);
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => change({ [name]: event.target.value.trim() || null });
  const events = (value?.types ?? []).flatMap((/** @type {any} */ type) => [`${type.type_name}.*`, ...Object.keys(type.events ?? {})]);
  const isFiltered = filter.types || filter.except || filter.text || filter.type || filter.project || filter.actor || filter.from || filter.to;
  return html`<div class="filters" role="search" aria-label="Filter of the events">
    <${Field} label="Event types" list="event-types" value=${filter.types} placeholder="article.*, task.created" change=${(/** @type {string} */ text) => change({ types: text || null })} />
    <${Field} label="Except types" list="event-types" value=${filter.except} placeholder="task.*" change=${(/** @type {string} */ text) => change({ except: text || null })} />
    <${Field} label="Text" value=${filter.text} placeholder="in ids, actors and payloads" change=${(/** @type {string} */ text) => change({ text: text || null })} />
    <datalist id="event-types">${events.map((/** @type {string} */ name) => html`<option value=${name}></option>`)}</datalist>
    <label>Aggregate type <select value=${filter.type} onChange=${set("type")}><option value="">all</option>
      ${(value?.types ?? []).map((/** @type {any} */ type) => html`<option value=${type.type_name}>${type.type_name}</option>`)}
      ${filter.type && !value?.types.some((/** @type {any} */ type) => type.type_name === filter.type) && html`<option value=${filter.type}>${filter.type}</option>`}</select></label>
    <label>Project <select value=${filter.project} onChange=${set("project")}><option value="">all</option>
      ${(value?.projects ?? []).map((/** @type {any} */ project) => html`<option value=${project.id}>${project.name}</option>`)}
      ${filter.project && !value?.projects.some((/** @type {any} */ project) => project.id === filter.project) && html`<option value=${filter.project}>${filter.project}</option>`}</select></label>
    <${Field} label="Actor" value=${filter.actor} placeholder="user:…, key:…, plugin:…" change=${(/** @type {string} */ text) => change({ actor: text || null })} />
    <${Start} start=${filter.start} />
    ${isFiltered && html`<button class="quiet" onClick=${(/** @type {any} */ event) => { event.currentTarget.closest(".filters").querySelector("input").focus(); change({ types: null, except: null, text: null, type: null, project: null, actor: null, from: null, to: null }); }}>Clear the filter</button>`}
  </div>`;
}

/** A field that keeps what is being typed while live events render the screen. @param {{label: string, value: string, change: (text: string) => void, placeholder: string, list?: string}} props */
function Field({ label, value, change: changed, ...rest }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return html`<label>${label} <input type="search" spellcheck=${false} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onChange=${(/** @type {any} */ event) => changed(event.target.value.trim())} ...${rest} /></label>`;
}

/** @param {{start: string}} props */
function Start({ start }) {
  const [text, setText] = useState(start);
  const [problem, setProblem] = useState("");
  useEffect(() => { setText(start); setProblem(""); }, [start]);
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const wanted = text.trim();
    if (!wanted) return change({ start: null });
    if (/^@?\d+$/.test(wanted)) return change({ start: `@${wanted.replace("@", "")}` });
    // Times of today are shown without their date, and may be typed without a date.
    const at = new Date(/^\d\d:/.test(wanted) ? `${today()} ${wanted}` : wanted);
    if (Number.isNaN(at.getTime())) return setProblem("This is neither a time nor a position.");
    change({ start: at.toISOString() });
  };
  return html`<form onSubmit=${send} class="start"><label>Start at <input value=${text} placeholder="time or position" spellcheck=${false} aria-invalid=${problem !== ""} onInput=${(/** @type {any} */ event) => { setText(event.target.value); setProblem(""); }} /></label>
    <button>Go</button>${problem && html`<span class="error" role="alert">${problem}</span>`}</form>`;
}
