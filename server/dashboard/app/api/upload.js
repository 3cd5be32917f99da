// Uploads of files as raw bodies, with the share that has been sent, which `fetch` does not report.

import { API, ApiError, record } from "./client.js";
import { parse } from "./json.js";
import { credentials } from "./session.js";

/** The address of a file below the base of the API. @param {string} path */
export const fileAddress = (path) => `/files/${path.split("/").map(encodeURIComponent).join("/")}`;

/**
 * @param {string} path @param {File} file @param {(share: number) => void} progress @param {AbortSignal} abort
 * @returns {Promise<any>}
 */
export function upload(path, file, progress, abort) {
  const target = fileAddress(path);
  const headers = /** @type {Record<string, string>} */ (file.type ? { "Content-Type": file.type } : {});
  record("PUT", target, undefined, headers, file.name);
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open("PUT", API + target);
    for (const [name, value] of Object.entries({ ...credentials(), ...headers })) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => { if (event.lengthComputable) progress(event.loaded / event.total); };
    request.onload = () => {
      let answer = null;
      try { answer = parse(request.responseText); } catch { /* The status is enough. */ }
      if (request.status < 300) done(answer);
      else fail(new ApiError(request.status, answer, target));
    };
    request.onerror = () => fail(new ApiError(0, null, target));
    request.onabort = () => fail(Object.assign(new Error("stopped"), { code: "stopped" }));
    abort.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}
