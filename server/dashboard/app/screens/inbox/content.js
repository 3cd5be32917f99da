// The tabs of a task: its output, the changes and events of an approval, and its timeline.

import { html } from "../../vendor/ui.js";
import { stringify } from "../../api/json.js";
import { Badge, Empty, label, Link, Time } from "../../parts/basic.js";
import { Difference, StateDiff, TextDiff } from "../../parts/diff.js";
import { Markdown } from "../../parts/markdown.js";
import { Value } from "../../parts/value.js";
import { nameOf } from "./people.js";
import { Sides, sides } from "./sides.js";

/** The versions that no later version replaces. @param {any[]} artifacts */
export const current = (artifacts) => {
  const first = new Map();
  artifacts.forEach((one, index) => first.set(one.id, first.get(one.supersedes) ?? index));
  const newest = artifacts.filter((one) => !artifacts.some((other) => other.supersedes === one.id));
  return newest.sort((one, other) => first.get(one.id) - first.get(other.id));
};

/** The content of an artifact as one text, for comparing versions. @param {any} artifact */
export const textOf = (artifact) => artifact.parts.map((/** @type {any} */ part) => part.text ?? stringify(part.data ?? part, 2)).join("\n\n");

/** @param {{task: any}} props */
export function Output({ task }) {
  const artifacts = current(task.artifacts);
  const last = task.messages.at(-1);
  return html`${last && html`<article class="message"><h3><bdi>${nameOf(last.author)}</bdi> <span class="dim"><${Time} at=${last.created_at} /></span></h3><${Markdown} text=${last.text ?? ""} /></article>`}
    ${artifacts.length === 0 && !last && html`<${Empty}>The task has no output yet.<//>`}
    ${artifacts.map((/** @type {any} */ artifact) => html`<article class="artifact" key=${artifact.id}><h3>${artifact.name} <span class="dim">version ${artifact.version} by <bdi>${nameOf(artifact.created_by)}</bdi></span></h3>
      ${artifact.parts.map((/** @type {any} */ part, /** @type {number} */ index) => html`<div key=${index}>${part.text !== undefined ? html`<${Markdown} text=${part.text} />` : html`<${Value} value=${part.data ?? part.file ?? part} />`}</div>`)}
      ${artifact.patch && html`<details><summary>The edit as a JSON patch</summary><${Value} value=${artifact.patch} /></details>`}</article>`)}`;
}

/** @param {{task: any, effects: any[], before: any[], appended: any[], isPast: boolean}} props */
export function Changes({ task, effects, before, appended, isPast }) {
  const found = sides(task, current(task.artifacts), [...effects, ...appended]);
  const replaced = current(task.artifacts).flatMap((/** @type {any} */ artifact) => {
    const earlier = task.artifacts.find((/** @type {any} */ other) => other.id === artifact.supersedes);
    return earlier ? [{ artifact, earlier }] : [];
  });
  return html`${found.map(({ artifact, proposed, edited, effect, rows }) => html`<article class="artifact" key=${artifact.id}><h3>${artifact.name}${effect && html` <code>${effect.event_type}</code>`}</h3>
      <${Sides} label=${`Proposed, edited and effective: ${artifact.name}`} rows=${rows} heads=${[`Proposed by ${nameOf(proposed.created_by)}`, edited ? `Edited by ${nameOf(edited.created_by)}` : "Edited", appended.length > 0 ? "Appended" : "Would be appended"]} /></article>`)}
    ${isPast && html`<p class="dim">What approval would have changed is not known for the past.</p>`}
    ${effects.map((effect, index) => html`<article class="effect" key=${effect.artifact_id}>
      <h3><${Link} to=${`/a/${encodeURIComponent(effect.aggregate_id)}`}><bdi title=${effect.aggregate_id}>${label(effect.state) || effect.aggregate_id}</bdi><//> <span class="dim">version ${effect.version - 1} now, version ${effect.version} after approval</span></h3>
      ${effect.state ? html`<${StateDiff} before=${before[index] ?? {}} after=${effect.state} none="The event changes no field of the state." />` : html`<p class="dim">The state after the event is too large to show.</p>`}
    </article>`)}
    ${replaced.map(({ artifact, earlier }) => html`<article class="artifact" key=${artifact.id}><h3>${artifact.name} <span class="dim">version ${earlier.version} → ${artifact.version}</span></h3>
      <${TextDiff} before=${textOf(earlier)} after=${textOf(artifact)} /></article>`)}
    ${!isPast && effects.length === 0 && replaced.length === 0 && found.length === 0 && html`<${Empty}>Approval changes no aggregate, and the output has one version.<//>`}`;
}

/** @param {{task: any, effects: any[], isPast: boolean}} props */
export function Effects({ task, effects, isPast }) {
  if (isPast) {
    const carried = current(task.artifacts).filter((/** @type {any} */ artifact) => artifact.effect);
    return carried.length === 0 ? html`<${Empty}>The output had no effects.<//>` : carried.map((/** @type {any} */ artifact) => html`<article class="effect" key=${artifact.id}><h3>${artifact.effect.event_type}</h3><${Value} value=${artifact.effect} /></article>`);
  }
  if (effects.length === 0) return html`<${Empty}>Approval appends nothing but the task's own event.<//>`;
  return effects.map((effect) => html`<article class="effect" key=${effect.artifact_id ?? effect.event_id}>
    <h3>${effect.event_type} → <${Link} to=${`/a/${encodeURIComponent(effect.aggregate_id)}`}><bdi title=${effect.aggregate_id}>${label(effect.state) || effect.aggregate_id}</bdi><//> <span class="dim">${effect.position ? "became" : "becomes"} version ${effect.version}</span></h3>
    ${effect.stale && html`<${Stale} effect=${effect} />`}
    <h4>Payload</h4><${Value} value=${effect.payload} />
    ${effect.state && html`<details><summary>The state after it</summary><${Value} value=${effect.state} /></details>`}
  </article>`);
}

/** The changes of an aggregate since the author of an effect read the aggregate. @param {{effect: any}} props */
export function Stale({ effect }) {
  const { expected_version: expected, current_version: now, difference } = effect.stale;
  return html`<div class="failure" role="note"><p>The author read version ${expected}; <bdi>${effect.aggregate_id}</bdi> is at version ${now} now.${" "}
      <${Link} to=${`/a/${encodeURIComponent(effect.aggregate_id)}`} query=${{ v: now, compare: expected }}>Compare<//></p>
    <dl class="changes">${Object.entries(difference ?? {}).map(([name, change]) => html`<div key=${name}><dt>${name}</dt><dd><${Difference} before=${change.was} after=${change.now} /></dd></div>`)}</dl></div>`;
}

/** @param {{task: any}} props */
export function Timeline({ task }) {
  const messages = new Map(task.messages.map((/** @type {any} */ message) => [message.id, message]));
  const artifacts = new Map(task.artifacts.map((/** @type {any} */ artifact) => [artifact.id, artifact]));
  return html`<ol class="timeline">${task.timeline.map((/** @type {any} */ entry) => html`<li key=${entry.event_id}>
    <p><${Link} to=${`/a/${encodeURIComponent(task.id)}`} query=${{ v: entry.version }}>${entry.event_type.replace("task.", "").replaceAll("_", " ")}<//>
      <span class="dim"><bdi>${nameOf(entry.agent_id ?? entry.user_id) === "nobody" ? entry.actor : nameOf(entry.agent_id ?? entry.user_id)}</bdi> · <${Time} at=${entry.occurred_at} /></span> ${entry.status && html`<${Badge} kind=${entry.status} />`}</p>
    ${entry.messages.map((/** @type {string} */ id) => messages.get(id) && html`<${Markdown} key=${id} text=${messages.get(id).text ?? ""} />`)}
    ${entry.artifacts.map((/** @type {string} */ id) => artifacts.get(id) && html`<p key=${id} class="dim">${artifacts.get(id).name}, version ${artifacts.get(id).version}</p>`)}
    <details><summary class="dim">Details</summary><${Value} value=${entry.detail ?? {}} /></details>
  </li>`)}</ol>`;
}
