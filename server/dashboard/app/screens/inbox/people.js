// The names of people and agents, read once for all tasks.

import { signal } from "../../vendor/ui.js";
import { get, getAll } from "../../api/client.js";
import { has } from "../../api/session.js";

/** @typedef {{type: "user" | "agent", id: string, name: string, status: string}} Person */

/** @type {import("../../vendor/ui.js").Signal<Person[]>} */
export const people = signal([]);
/** The id of the user, or an empty text while it is unknown. */
export const me = signal("");
/** @type {Promise<void> | null} */
let reading = null;

/** Reads the names, unless they are known. */
export function readPeople() {
  return (reading ??= load().catch(() => { reading = null; }));
}

async function load() {
  const quietly = (/** @type {Promise<any>} */ page) => page.catch(() => ({ data: [] }));
  const [members, agents, profile] = await Promise.all([
    quietly(getAll("/members")), quietly(get("/agents", { limit: 200 })),
    has("profile:read") ? get("/profile").catch(() => null) : null,
  ]);
  const named = (/** @type {any[]} */ rows, /** @type {"user" | "agent"} */ type) => rows.map((row) => ({ type, id: row.id, name: row.name || row.email || (row.role ? `the ${row.role}` : row.id), status: row.status }));
  me.value = String(profile?.id ?? profile?.user_id ?? (members.data.length === 1 ? members.data[0].id : ""));
  people.value = [...named(members.data, "user"), ...named(agents.data, "agent")];
}

/** The name of a person or an agent. @param {string | null | undefined} id */
export function nameOf(id) {
  if (!id) return "nobody";
  const found = people.value.find((person) => person.id === id);
  if (id === me.value) return found && !found.name.startsWith("the ") ? `${found.name} (you)` : "you";
  return found?.name ?? id;
}
