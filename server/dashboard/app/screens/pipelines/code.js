// A pipeline as a program that runs it, in languages that need no library.

import { html } from "../../vendor/ui.js";
import { API } from "../../api/client.js";
import { ExactNumber } from "../../api/json.js";
import { Copy } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { loadStyle } from "../../parts/style.js";

loadStyle("call");

/** The width up to which an object stays on one line. */
const LINE = 80;

/** @typedef {{name: (key: string) => string, word: (value: boolean | null) => string, number: (text: string) => string}} Style */

/** @type {Style} */
const SCRIPT = {
  name: (key) => (/^[A-Za-z_$][\w$]*$/.test(key) && key !== "__proto__" ? key : `[${JSON.stringify(key)}]`), word: String,
  // Numbers that a double cannot represent are written as Extended JSON.
  number: (text) => `{ ${/[.e]/i.test(text) ? "$numberDecimal" : "$numberLong"}: "${text}" }`,
};
/** @type {Style} */
const PYTHON = { name: JSON.stringify, word: (value) => (value === null ? "None" : value ? "True" : "False"), number: (text) => (/[.e]/i.test(text) ? `{ "$numberDecimal": "${text}" }` : text) };

/** @param {any} value @param {Style} style @param {string} [indent] @returns {string} */
function literal(value, style, indent = "") {
  if (value instanceof ExactNumber) return style.number(value.text);
  if (value === null || typeof value === "boolean") return style.word(value);
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  const isList = Array.isArray(value);
  const parts = (/** @type {string} */ deeper) => (isList ? value.map((item) => literal(item, style, deeper)) : Object.entries(value).map(([key, item]) => `${style.name(key)}: ${literal(item, style, deeper)}`));
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  const flat = parts(indent);
  if (flat.length === 0) return open + close;
  const line = isList ? `[${flat.join(", ")}]` : `{ ${flat.join(", ")} }`;
  if (indent.length + line.length <= LINE && !line.includes("\n")) return line;
  return `${open}\n${parts(inner).map((part) => `${inner}${part},\n`).join("")}${indent}${close}`;
}

/** A module for Node and other runtimes with `fetch`. @param {any[]} pipeline */
export const script = (pipeline) => `const pipeline = ${literal(pipeline, SCRIPT)};

const response = await fetch("${location.origin}${API}/aggregates/query", {
  method: "POST",
  headers: { "Authorization": \`Bearer \${process.env.FOLDWORK_TOKEN}\`, "Content-Type": "application/json" },
  body: JSON.stringify({ pipeline }),
});
const answer = await response.json();
if (!response.ok) throw new Error(answer.error);
for (const row of answer.results) console.log(JSON.stringify(row));
`;

/** @param {any[]} pipeline */
export const python = (pipeline) => `import json
import os
import urllib.request

pipeline = ${literal(pipeline, PYTHON)}

request = urllib.request.Request(
    "${location.origin}${API}/aggregates/query",
    data=json.dumps({"pipeline": pipeline}).encode(),
    headers={"Authorization": "Bearer " + os.environ["FOLDWORK_TOKEN"], "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    for row in json.load(response)["results"]:
        print(json.dumps(row))
`;

/** @param {{pipeline: any[], close: () => void}} props */
export function Code({ pipeline, close }) {
  const shown = [["TypeScript", script(pipeline)], ["Python", python(pipeline)]];
  return html`<${Dialog} title="The pipeline as a program" class="wide" close=${close}>
    <p>Each reads a key from the variable <code>FOLDWORK_TOKEN</code>. <a href="/docs" target="_blank" rel="noopener">The documentation</a> has the document from which clients are generated.</p>
    ${shown.map(([name, text]) => html`<section class="taught" aria-label=${name}><h3>${name}</h3><div class="call"><pre tabindex="0"><code>${text}</code></pre><${Copy} text=${text}>copy ${name}<//></div></section>`)}
  <//>`;
}
