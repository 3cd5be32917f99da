// A parked step's event, edited and appended again, for the case that the event is wrong and not the plugin.

import { html, useState } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { complain } from "../../state/toasts.js";
import { Failure, Loading } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { useLoad } from "../../parts/load.js";
import { Append } from "../aggregate/append.js";
import { deleteStep } from "./groups.js";

/**
 * The dialog of a screen for one step. The typed text stays even if the step or its group is removed.
 *
 * @param {() => void} done
 */
export function useAgain(done) {
  const [step, edit] = useState(/** @type {any} */ (null));
  return { edit, dialog: step && html`<${Again} step=${step} close=${() => edit(null)} done=${done} />` };
}

/** @param {{step: any, close: () => void, done: () => void}} props */
function Again({ step, close, done }) {
  const [isGivenUp, setGivenUp] = useState(true);
  const { value, error, reload } = useLoad(async (abort) => {
    const [event, page] = await Promise.all([
      get(`/events/${encodeURIComponent(step.event_id)}`, {}, abort),
      get(`/aggregates/${encodeURIComponent(step.aggregate_id)}/events`, { direction: "desc", limit: 1 }, abort),
    ]);
    return { event, version: page.data[0].version };
  }, [step.id]);
  if (error || !value) return html`<${Dialog} title="Append an event" close=${close}>${error ? html`<${Failure} error=${error} retry=${reload} />` : html`<${Loading} />`}<//>`;
  const finish = () => {
    if (!isGivenUp) return done();
    deleteStep(step).then(done, (failure) => {
      // Another user may have deleted the step meanwhile.
      if (failure.status !== 404) complain(failure, "The event is appended, but the step is still parked");
      done();
    });
  };
  const { event, version } = value;
  return html`<${Append} id=${step.aggregate_id} type=${event.aggregate_type} version=${version} begin=${event} close=${close} done=${finish}>
    <p>The plugin <strong>${step.plugin}</strong> failed for version ${event.version}: ${step.message}. It is called for the new event as for any other.</p>
    <label class="check"><input type="checkbox" checked=${isGivenUp} onChange=${(/** @type {any} */ change) => setGivenUp(change.target.checked)} /> then give up the parked step</label><//>`;
}
