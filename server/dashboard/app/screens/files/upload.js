// Uploads of files: their destination, the files that they replace, and the progress of each file.

import { html, useEffect, useRef, useState } from "../../vendor/ui.js";
import { call, query } from "../../api/client.js";
import { upload } from "../../api/upload.js";
import { say } from "../../state/toasts.js";
import { Confirm } from "../../parts/confirm.js";
import { bytes } from "../../parts/size.js";

const NONE = "_";

/**
 * @param {{given: File[], prefix: string, workspace: string, projects: Schemas["Project"][], close: () => void, done: () => void}} props
 * `given` are files that were dropped. Without such files, the user chooses files in a field.
 */
export function Upload({ given, prefix, workspace, projects, close, done }) {
  const [, project = "", , aggregate = ""] = prefix.split("/").map((part) => (part === NONE ? "" : part));
  const [files, setFiles] = useState(given);
  const [replaced, setReplaced] = useState(/** @type {string[]} */ ([]));
  const [isSending, setSending] = useState(false);
  const [shares, setShares] = useState(/** @type {Record<string, number>} */ ({}));
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  const submit = async (/** @type {FormData} */ fields) => {
    if (files.length === 0) throw Object.assign(new Error("choose at least one file"), { code: "" });
    const folder = await place(String(fields.get("aggregate") ?? "").trim(), String(fields.get("type") ?? "").trim(), String(fields.get("project") ?? ""), workspace);
    const paths = files.map((file) => `${folder}/${file.name}`);
    if (replaced.join() !== paths.join()) {
      const { results } = await query([{ $match: { aggregate_type: "file" } }, { $fold: {} }, { $match: { path: { $in: paths } } }, { $project: { path: 1 } }]);
      if (results.length > 0) {
        setReplaced(paths);
        throw Object.assign(new Error(`${results.length === 1 ? "a file" : `${results.length} files`} with this name ${results.length === 1 ? "is" : "are"} stored there. Upload again to replace ${results.length === 1 ? "it" : "them"}: the old bytes are gone then.`), { code: "" });
      }
    }
    setSending(true);
    try {
      for (const [index, file] of files.entries()) {
        await upload(paths[index], file, (share) => setShares((before) => ({ ...before, [file.name]: share })), abort.current.signal);
        setShares((before) => ({ ...before, [file.name]: 1 }));
      }
    } finally { setSending(false); }
    say(files.length === 1 ? `${files[0].name} is stored` : `${files.length} files are stored`);
    done();
  };
  return html`<${Confirm} title="Upload files" action=${isSending ? "Uploading…" : replaced.length > 0 ? "Upload and replace" : "Upload"} submit=${submit} close=${close}>
    <label>Files <input type="file" multiple autofocus onChange=${(/** @type {any} */ event) => { setFiles([...event.target.files]); setReplaced([]); }} /></label>
    ${files.length > 0 && html`<ul class="plain">${files.slice(0, 20).map((file) => html`<li key=${file.name}><bdi>${file.name}</bdi> <span class="dim">${bytes(file.size)}</span>
      ${file.name in shares && html` <progress aria-label=${`Sent of ${file.name}`} max="1" value=${shares[file.name]}></progress>`}</li>`)}${files.length > 20 && html`<li>and ${files.length - 20} more</li>`}</ul>`}
    <label>Project <select name="project"><option value="">none, or that of the aggregate</option>${projects.map((known) => html`<option key=${known.id} value=${known.id} selected=${known.id === project}>${known.name}</option>`)}</select></label>
    <label>Id of the aggregate that the files belong to (optional) <input name="aggregate" defaultValue=${aggregate} spellcheck=${false} autocomplete="off" /></label>
    <label>Its type, if it does not exist yet (optional) <input name="type" spellcheck=${false} autocomplete="off" /></label>
  <//>`;
}

/** The path below which files are stored. An existing aggregate determines the type and the project. @param {string} aggregate @param {string} type @param {string} project @param {string} workspace */
async function place(aggregate, type, project, workspace) {
  if (!aggregate) return [workspace, project || NONE, type || NONE, NONE].join("/");
  if (type) return [workspace, project || NONE, type, aggregate].join("/");
  const state = await call("GET", `/aggregates/${encodeURIComponent(aggregate)}`);
  return [workspace, state.project_id ?? NONE, state.aggregate_type, aggregate].join("/");
}
