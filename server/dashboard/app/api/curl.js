// A call of the API as a command for the shell.

import { API, told } from "./client.js";
import { stringify } from "./json.js";

/** The call as a command line. @param {{method: string, path: string, body?: unknown, headers?: Record<string, string>, file?: string}} made */
export function curl({ method, path, body, headers = told(), file }) {
  const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ["curl -sS", method === "GET" ? "" : `-X ${method}`, quoted(location.origin + API + path), '-H "Authorization: Bearer $FOLDWORK_TOKEN"', ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)];
  if (body !== undefined) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(stringify(body))}`);
  // Without -g, a bracket in the name of a file would begin a pattern.
  if (file) parts.push(`-g -T ${quoted(file)}`);
  return parts.filter(Boolean).join(" ");
}
