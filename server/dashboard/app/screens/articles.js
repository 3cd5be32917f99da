// The articles of the workspace: a list, and an editor for each.

import { html } from "../vendor/ui.js";
import { moment, writeMoment } from "../state/route.js";
import { lazy } from "../parts/lazy.js";
import { loadStyle } from "../parts/style.js";
import { List } from "./articles/list.js";

loadStyle("articles");

const Editor = lazy(() => import("./articles/editor.js").then((module) => module.Editor));

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Articles({ path: [id], query }) {
  return id ? html`<${Editor} key=${`${id} ${writeMoment(moment.value) || "now"}`} id=${id} />` : html`<${List} query=${query} />`;
}
