// The names of people and agents, read once for all tasks, and again before a person or an agent is chosen.

import { computed, signal } from "../../vendor/ui.js";
import { get, getAll } from "../../api/client.js";
import { session } from "../../api/session.js";

/** @typedef {{type: "user" | "agent", id: string, name: string, status: string}} Person */

/** @type {import("../../vendor/ui.js").Signal<Person[]>} */
export const people = signal([]);
/** The id of the user, or an empty text if it is unknown. */
export const me = computed(() => session.value?.whose?.split(" ", 1)[0] ?? "");
/** @type {Promise<void> | null} */
let reading = null;

/** Reads the names, unless they are known. @param {boolean} [again] reads them in any case */
export function readPeople(again = false) {
  if (again) reading = null;
  return (reading ??= load().catch(() => { reading = null; }));
}

async function load() {
  // Names that cannot be read again stay.
  const named = (/** @type {Promise<any>} */ page, /** @type {"user" | "agent"} */ type) => page.then(
    ({ data }) => data.map((/** @type {any} */ row) => ({ type, id: row.id, name: row.name || row.email || (row.role ? `the ${row.role}` : row.id), status: row.status })),
    () => people.peek().filter((person) => person.type === type),
  );
  people.value = (await Promise.all([named(getAll("/members"), "user"), named(get("/agents", { limit: 200 }), "agent")])).flat();
}

/** The name of a person or an agent. @param {string | null | undefined} id */
export function nameOf(id) {
  if (!id) return "nobody";
  const found = people.value.find((person) => person.id === id);
  if (id === me.value) return found && !found.name.startsWith("the ") ? `${found.name} (you)` : "you";
  return found?.name ?? id;
}
