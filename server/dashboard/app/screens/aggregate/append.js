// A form that appends one event to an aggregate, or creates an aggregate.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { call, get } from "../../api/client.js";
import { parse, stringify } from "../../api/json.js";
import { go, to } from "../../state/route.js";
import { say } from "../../state/toasts.js";
import { Failure } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";

/**
 * @param {{id?: string, type: string, version: number, close: () => void, done?: () => void, begin?: {event_type: string, payload: any, event_id: string}, children?: any}} props
 * Without an id, the event creates an aggregate. `begin` is an event whose content the form has at first.
 */
export function Append({ id = "", type, version, close, done, begin, children }) {
  const [known, setKnown] = useState(/** @type {string[]} */ ([]));
  const [base, setBase] = useState(version);
  const [target, setTarget] = useState(id);
  const [name, setName] = useState(begin?.event_type ?? (id ? `${type}.updated` : `${type}.created`));
  const [text, setText] = useState(() => (begin ? stringify(begin.payload, 2) : "{\n  \n}"));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isSending, setSending] = useState(false);
  useEffect(() => { get(`/aggregate-types/${encodeURIComponent(type)}/schema`).then((schema) => setKnown(schema.event_schemas.map((/** @type {any} */ event) => event.event_type)), () => {}); }, [type]);
  let problem = "";
  try { parse(text); } catch (/** @type {any} */ wrong) { problem = `Not JSON: ${wrong.message}`; }
  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (problem) return;
    setSending(true);
    setError(null);
    const subject = target || crypto.randomUUID();
    try {
      const made = await call("POST", `/aggregates/${encodeURIComponent(subject)}/events`, {
        body: { aggregate_type: type, event_type: name, payload: parse(text), ...(begin ? { metadata: { caused_by: begin.event_id } } : {}) }, headers: id ? { "If-Match": `"${base}"` } : { "Idempotency-Key": crypto.randomUUID() },
      });
      say(`${name} is appended as version ${made.version}`);
      close();
      done?.();
      if (!id) go(to(`/a/${encodeURIComponent(subject)}`));
    } catch (/** @type {any} */ failed) {
      setError(failed);
      // The next attempt uses the version that the message names.
      if (failed.code === "version_conflict") setBase(Number(failed.body.current_version));
    }
    setSending(false);
  };
  return html`<${Dialog} title=${begin ? "Append again, edited" : id ? "Append an event" : `New ${type}`} close=${close} class="wide"><form onSubmit=${send}>
    ${children}
    ${!id && html`<label>Id (optional) <input value=${target} onInput=${(/** @type {any} */ event) => setTarget(event.target.value)} /></label>`}
    <label>Event type <input list="event-types" required value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} autofocus /></label>
    <datalist id="event-types">${known.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>
    <label for="payload">Payload <span class="dim">JSON</span></label>
    <textarea id="payload" class="code" rows="10" spellcheck=${false} value=${text} aria-invalid=${problem !== ""} aria-describedby="payload-problem" onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>
    <p class="error" id="payload-problem">${problem}</p>
    ${error && html`<${Failure} error=${error} message=${error.code === "version_conflict" ? `Somebody was first: the aggregate is at version ${error.body.current_version} now. Your event is kept; send it again to append it after that.` : error.message} />`}
    <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary" disabled=${isSending || problem !== ""}>${id ? `Append after version ${base}` : "Create"}</button></footer>
  </form><//>`;
}
