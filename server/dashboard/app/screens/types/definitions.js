// The history of a type's definition: each definition with its differences from the previous definition.

import { html } from "../../vendor/ui.js";
import { get } from "../../api/client.js";
import { moment } from "../../state/route.js";
import { Badge, Empty, Failure, Link, Loading } from "../../parts/basic.js";
import { StateDiff } from "../../parts/diff.js";
import { useLoad } from "../../parts/load.js";
import { beginning } from "../events/filter.js";
import { Raw } from "../../parts/value.js";

const PAGE = 200;

/** The definitions of one type. The operation lists the definitions of all types, oldest first. @param {string} type @param {AbortSignal} abort */
export async function definitionsOf(type, abort) {
  const found = [];
  /** @type {string | null} */
  let cursor = null;
  do {
    const page = /** @type {any} */ (await get("/aggregate-types/definitions", { limit: PAGE, cursor }, abort));
    found.push(...page.data.filter((/** @type {any} */ one) => one.type_name === type));
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}

/** The last position of a moment. @param {import("../../state/route.js").Moment} when @param {AbortSignal} abort */
export async function positionAt(when, abort) {
  if (!when) return Infinity;
  return "position" in when ? when.position : Number(await beginning(when.time, abort)) - 1;
}

/**
 * The schema of a type with the definition that was valid at a moment. Types that are built in and not extended have
 * the current schema.
 *
 * @param {string} type @param {any} schema the schema of now @param {import("../../state/route.js").Moment} when @param {AbortSignal} abort
 */
export async function schemaAt(type, schema, when, abort) {
  const [definitions, position] = await Promise.all([definitionsOf(type, abort), positionAt(when, abort)]);
  if (definitions.length === 0) return { ...schema, since: 0 };
  const valid = definitions.findLast((one) => one.position <= position);
  if (!valid) return schema.builtin ? { ...schema, since: 0 } : { ...schema, fields: [], traits: [], searched: [], since: null };
  const { fields = [], traits = [], display_name: name } = valid.definition;
  return { ...schema, fields, traits, display_name: name ?? "", searched: [], since: valid.position };
}

/** The fields of a definition by their names, so that a changed field is found. @param {any} definition */
function comparable(definition) {
  if (!definition) return {};
  const { fields = [], type_name: name, ...rest } = definition;
  return { ...rest, ...Object.fromEntries(fields.map((/** @type {any} */ field) => [`field ${field.name}`, field])) };
}

/** @param {{type: string}} props */
export function Definitions({ type }) {
  const now = moment.value;
  const { value: loaded, error, reload } = useLoad(async (abort) => ({ all: await definitionsOf(type, abort), position: await positionAt(now, abort) }), [type, now]);
  if (error) return html`<${Failure} error=${error} retry=${reload} />`;
  if (!loaded) return html`<${Loading} />`;
  const { all: value, position } = loaded;
  if (value.length === 0) return html`<${Empty}>The type is built in, and nobody has extended it.<//>`;
  const isCurrent = (/** @type {number} */ index) => value[index].position <= position && (value[index + 1]?.position ?? Infinity) > position;
  return html`<ol class="plain definitions">${value.map((one, index) => html`<li key=${one.position} class="card"><header class="bar"><h2>Definition ${index + 1}</h2>
      <${Link} to=${`/types/${encodeURIComponent(type)}`} query=${{ at: `@${one.position}` }} title="Look at this moment">position ${one.position.toLocaleString("en")}<//>${isCurrent(index) && html` <${Badge} kind="current">${now ? "valid then" : "valid now"}<//>`}</header>
    ${index === 0 ? html`<p class="dim">Fields: ${(one.definition.fields ?? []).map((/** @type {any} */ field) => field.name).join(", ") || "none"}</p>`
      : html`<${StateDiff} before=${comparable(value[index - 1].definition)} after=${comparable(one.definition)} none="The definition was repeated without a change." />`}
    <details><summary>Definition as JSON</summary><${Raw} value=${one.definition} /></details></li>`).toReversed()}</ol>`;
}
