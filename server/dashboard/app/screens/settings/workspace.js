// The workspace, the signed-in user, and the usage of the plan.

import { html } from "../../vendor/ui.js";
import { get, getAll, query } from "../../api/client.js";
import { session } from "../../api/session.js";
import { Badge, Copy, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { bytes, Usage } from "../../parts/size.js";
import { useReturning } from "./shared.js";

/** The effect of each state of a plan. */
const STATES = {
  active: "", trialing: "", past_due: "The plan is not paid. Writing, the tools for models that change something, and licenses are refused until it is.",
  canceled: "The plan is canceled. Writing, the tools for models that change something, and licenses are refused.",
};

/** Whether a plan no longer allows paid operations. @param {Schemas["Plan"]} plan */
const hasLapsed = (plan) => plan.status === "past_due" || plan.status === "canceled" || (plan.status === "trialing" && plan.trial_ends_at !== null && Date.parse(plan.trial_ends_at) < Date.now());

export default function Workspace() {
  const { value, error, reload } = useReturning(async (abort) => {
    const count = (/** @type {string} */ type) => query([{ $match: { aggregate_type: type } }, { $fold: {} }, { $count: "count" }], {}, abort).then((found) => found.results[0]?.count ?? 0);
    const [workspace, profile, storage, devices, projects, agents] = await Promise.all([
      get("/workspace", {}, abort), get("/profile", {}, abort), get("/system/storage", {}, abort), getAll("/license/activations", abort), count("project"), count("agent"),
    ]);
    return { workspace, profile, storage, devices: devices.data.filter((/** @type {any} */ device) => !device.revoked_at).length, projects, agents };
  });
  if (error && !value) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!value) return html`<${Loading} />`;
  const { workspace, profile, storage, devices, projects, agents } = value;
  /** @type {{plan: Schemas["Plan"]}} */
  const { plan } = profile;
  const { limits } = plan;
  return html`${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${workspace.delete_at && html`<p class="banner">An operator deletes this workspace <${Time} at=${workspace.delete_at} />.</p>`}
    <div class="cards">
      <section class="card"><h2>Workspace</h2><dl class="facts">
        <div><dt>Name</dt><dd dir="auto">${workspace.name}</dd></div><div><dt>Slug</dt><dd>${workspace.slug}</dd></div>
        <div><dt>Created</dt><dd><${Time} at=${workspace.created_at} /></dd></div>
        <div><dt>Id</dt><dd><code>${workspace.id}</code> <${Copy} text=${workspace.id} /></dd></div></dl>
        <p><${Link} to="/types">Types of aggregates<//> · <${Link} to="/projects">Projects<//> · <${Link} to="/files">Files<//></p></section>
      <section class="card"><h2>You</h2><dl class="facts">
        <div><dt>Name</dt><dd dir="auto">${profile.name ?? "–"}</dd></div><div><dt>Address</dt><dd>${profile.email ?? "–"}</dd></div>
        <div><dt>Role</dt><dd>${profile.role}</dd></div><div><dt>Id</dt><dd><code>${profile.id}</code> <${Copy} text=${profile.id} /></dd></div></dl>
        <p class="dim">This session may: ${session.value?.scopes.map((scope) => html`<${Badge} kind="trait" key=${scope}>${scope}<//> `)}</p></section>
      <section class="card"><h2>Plan <bdi>${plan.name}</bdi> <${Badge} kind=${hasLapsed(plan) ? "stopped" : plan.status}>${plan.status.replace("_", " ")}<//></h2>
        ${plan.trial_ends_at && html`<p>The trial ${hasLapsed(plan) ? "ended" : "ends"} <${Time} at=${plan.trial_ends_at} />.</p>`}
        ${hasLapsed(plan) && html`<p class="banner">${STATES[plan.status] || "The trial is over. Writing, the tools for models that change something, and licenses are refused."} Reading keeps working.</p>`}
        <${Usage} label="Storage" used=${Number(String(storage.used_bytes))} most=${storage.quota_bytes === null ? null : Number(String(storage.quota_bytes))} text=${bytes} />
        <${Usage} label="Projects" used=${projects} most=${limits.projects ?? null} />
        <${Usage} label="Agents" used=${agents} most=${limits.agents ?? null} />
        <${Usage} label="Devices of yours" used=${devices} most=${limits.activations ?? null} />
        <p class="dim">Operators of the installation assign plans.</p></section>
    </div>`;
}
