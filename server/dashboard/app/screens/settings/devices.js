// Devices on which an app with a license is activated, and the number of devices that the plan allows.

import { html, useState } from "../../vendor/ui.js";
import { call, get, getAll } from "../../api/client.js";
import { say } from "../../state/toasts.js";
import { Badge, Empty, Failure, Loading, Time } from "../../parts/basic.js";
import { Confirm } from "../../parts/confirm.js";
import { Act, Reason, refusal } from "../../parts/refused.js";
import { Table } from "../../parts/table.js";
import { useReturning } from "./shared.js";

export default function Devices() {
  const { value, error, reload, removed, list } = useReturning(async (abort) => {
    const [devices, profile] = await Promise.all([getAll("/license/activations", abort), get("/profile", {}, abort)]);
    return { devices: /** @type {Schemas["Activation"][]} */ (devices.data), most: profile.plan.limits.activations };
  });
  const [revoked, setRevoked] = useState(/** @type {Schemas["Activation"] | null} */ (null));
  const refused = refusal();
  if (error && !value) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<${Loading} />`;
  const { devices, most } = value;
  const active = devices.filter((device) => !device.revoked_at).length;
  const named = (/** @type {Schemas["Activation"]} */ device) => device.name || device.instance_id;
  return html`<p role="status"><strong>${active}</strong> ${most === null ? `${active === 1 ? "device is" : "devices are"} active. The plan has no limit.` : `of ${most} places are used.`}</p>
    ${most !== null && active >= most && html`<p class="banner">No further device can be activated. Revoke one, or choose a larger plan.</p>`}
    <${Reason} refused=${refused} />${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${devices.length === 0 ? html`<${Empty}>No device is activated. An app does it with <code>POST /functions/v1/validate-license</code>.<//>` : html`<${Table} label="Devices" count=${devices.length} width="46rem" scroll=${list}
      head=${html`<th class="wide">Device</th><th>Platform</th><th>App</th><th class="when">Validated</th><th class="when">Activated</th><th class="act">Actions</th>`}
      row=${(/** @type {number} */ index) => {
        const device = devices[index];
        return html`<tr key=${device.id} aria-rowindex=${index + 2} class=${device.revoked_at ? "dim" : ""}>
          <td title=${device.instance_id}><bdi>${named(device)}</bdi> ${device.name && html`<code class="dim">${device.instance_id}</code>`}</td><td><bdi>${device.platform}</bdi></td><td><bdi>${device.app_version}</bdi></td>
          <td class="dim"><${Time} at=${device.last_validated_at} /></td><td class="dim"><${Time} at=${device.activated_at} /></td>
          <td class="act">${device.revoked_at ? html`<${Badge} kind="stopped">revoked<//>` : html`<${Act} class="quiet" refused=${refused} aria-label=${`Revoke ${named(device)}`} onClick=${() => setRevoked(device)}>revoke<//>`}</td></tr>`;
      }} />`}
    ${revoked && html`<${Confirm} title=${`Revoke ${named(revoked)}?`} action="Revoke" close=${() => setRevoked(null)} submit=${async () => {
      await call("DELETE", `/license/activations/${revoked.id}`);
      say(`${named(revoked)} is revoked`);
      removed();
    }}>
      <p>The device receives <code>DEVICE_REVOKED</code> at its next validation. A device that is offline may work until its last validation expires.</p>
      <p>Its place is free at once. It can be activated again only under another id.</p><//>`}`;
}
