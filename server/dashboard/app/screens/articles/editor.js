// The editor of an article: Markdown beside its preview, publishing, and the merge with the changes that another user
// has saved.

import { html, useEffect, useRef, useState } from "../../vendor/ui.js";
import { call, get, post } from "../../api/client.js";
import { listen } from "../../api/feed.js";
import { isLeaving } from "../../api/session.js";
import { register } from "../../state/keys.js";
import { go, moment, parametersAt, to } from "../../state/route.js";
import { complain, say } from "../../state/toasts.js";
import { Badge, Failure, Link, Loading, Time } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { lazy } from "../../parts/lazy.js";
import { useLoad } from "../../parts/load.js";
import { Markdown } from "../../parts/markdown.js";
import { refusal } from "../../parts/refused.js";
import { isAhead } from "./list.js";

const Merge = lazy(() => import("./merge.js").then((module) => module.Merge));

/** @typedef {{title: string, slug: string, tags: string, body: string}} Typed */

/** Typed texts that are not saved, by article, so that they are not lost on another screen. @type {Map<string, {base: any, typed: Typed}>} */
const unsaved = new Map();
// These texts are lost with the page, so the browser asks before the page is left.
addEventListener("beforeunload", (event) => { if (unsaved.size > 0 && !isLeaving.peek()) event.preventDefault(); });
const EMPTY = { title: "", slug: "", tags: "", body: "" };

/** @param {any} article @returns {Typed} */
export const typedOf = (article) => (article ? { title: article.title ?? "", slug: article.slug ?? "", tags: (article.tags ?? []).join(", "), body: article.body ?? "" } : EMPTY);

/** @param {string} text */
export const tagsOf = (text) => [...new Set(text.split(",").map((tag) => tag.trim()).filter(Boolean))];

/** The fields that differ from the read article, as the operation accepts them. @param {Typed} typed @param {Typed} base */
export function changesOf(typed, base) {
  /** @type {Record<string, any>} */
  const changed = {};
  if (typed.title !== base.title) changed.title = typed.title;
  if (typed.slug !== base.slug && typed.slug) changed.slug = typed.slug;
  if (typed.body !== base.body) changed.body = typed.body;
  if (tagsOf(typed.tags).join() !== tagsOf(base.tags).join()) changed.tags = tagsOf(typed.tags);
  return changed;
}

/** @param {{id: string}} props */
export function Editor({ id }) {
  const isNew = id === "new";
  const now = moment.value;
  const kept = now ? undefined : unsaved.get(id);
  const [base, setBase] = useState(/** @type {any} */ (kept?.base ?? null));
  const [typed, setTyped] = useState(/** @type {Typed} */ (kept?.typed ?? EMPTY));
  const [newer, setNewer] = useState(/** @type {any} */ (null));
  const [merging, setMerging] = useState(/** @type {{base: Typed, mine: Typed, theirs: any} | null} */ (null));
  const [isDeleting, setDeleting] = useState(false);
  const [isGone, setGone] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const path = `/articles/${encodeURIComponent(id)}`;
  const head = useLoad(async (abort) => {
    if (isNew) return null;
    if (!now) return get(path, {}, abort);
    const state = await get(`/aggregates/${encodeURIComponent(id)}`, parametersAt(now), abort);
    return { ...state, version: state._version, updated_at: state._last_event_at, status: state.published_version ? "published" : "draft" };
  }, [id, now]);
  const changed = changesOf(typed, typedOf(base));
  const isChanged = Object.keys(changed).length > 0;
  const isDirty = useRef(false);
  isDirty.current = isChanged;

  useEffect(() => {
    const article = head.value;
    // A read that was in progress during a save is older than the saved article.
    if (!article || (base && article.version < base.version)) return;
    if (!now && base && article.version > base.version && isDirty.current) return setNewer(article);
    if (isDirty.current && !now && base) return;
    setBase(article);
    setTyped(typedOf(article));
    setNewer(null);
  }, [head.value]);
  useEffect(() => (now || isNew ? undefined : listen((event) => {
    if (event.aggregate_id !== id) return;
    if (event.event_type === "article.deleted") setGone(true);
    else head.reload();
  })), [id, now]);
  useEffect(() => { if (!now) isChanged ? unsaved.set(id, { base, typed }) : unsaved.delete(id); }, [typed, base, isChanged]);

  const take = (/** @type {any} */ article) => {
    unsaved.delete(id);
    isDirty.current = false;
    setBase(article);
    setTyped(typedOf(article));
    setNewer(null);
    setError(null);
  };
  /** Sends typed fields on top of a version of the article. @param {Typed} next @param {any} on */
  const save = async (next, on) => {
    setBusy(true);
    setError(null);
    try {
      if (isNew) {
        const made = await post("/articles", { title: next.title, body: next.body, ...(next.slug ? { slug: next.slug } : {}), tags: tagsOf(next.tags) }, { headers: { "Idempotency-Key": crypto.randomUUID() } });
        unsaved.delete(id);
        isDirty.current = false;
        say(`“${made.title}” is saved as a draft`);
        go(to(`/articles/${encodeURIComponent(made.aggregate_id)}`), { replace: true });
        return true;
      }
      const saved = await call("PATCH", path, { body: changesOf(next, typedOf(on)), headers: { "If-Match": `"${on.version}"` } });
      take(saved);
      setMerging(null);
      say(`Saved as version ${saved.version}`);
      return true;
    } catch (/** @type {any} */ failed) {
      if (failed.code === "version_conflict") {
        const theirs = await get(path).catch(() => null);
        // The sent text is based on this version, so this version is the origin of the next merge.
        setBase(on);
        setTyped(next);
        if (theirs) { setNewer(theirs); setMerging({ base: typedOf(on), mine: next, theirs }); } else setError(failed);
      } else setError(failed);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const publish = async (/** @type {boolean} */ on) => {
    setBusy(true);
    try {
      take(await post(`${path}/${on ? "publish" : "unpublish"}`, {}, { headers: { "If-Match": `"${base.version}"` } }));
      say(on ? "Published" : "No longer published");
    } catch (failed) {
      complain(failed, on ? "Not published" : "Still published");
      head.reload();
    }
    setBusy(false);
  };
  const remove = async () => {
    setDeleting(false);
    try {
      await call("DELETE", path, { headers: { "If-Match": `"${base.version}"` } });
      unsaved.delete(id);
      isDirty.current = false;
      say("The article is deleted. Its history stays in the log.");
      go(to("/articles"));
    } catch (failed) {
      complain(failed, "Not deleted");
    }
  };
  const why = (isGone ? "The article is deleted." : refusal()) || undefined;
  const mayWrite = !why;
  // Publishing and unpublishing apply to the saved article, and the response replaces the typed text.
  const whyNot = why ?? (isChanged ? "Save the changes first" : undefined);
  const latest = useRef(() => {});
  latest.current = () => { if (mayWrite && !isBusy && (isNew ? typed.title : isChanged)) save(typed, base); };
  useEffect(() => register([{ key: "ctrl+s", label: "Save the article", run: () => latest.current() }]), []);
  if (head.error && !base) return html`<div class="page"><p><${Link} to="/articles">Articles<//></p><h1><bdi>${id}</bdi></h1><${Failure} error=${head.error} retry=${head.reload} /></div>`;
  if (!base && !isNew) return html`<div class="page"><p><${Link} to="/articles">Articles<//></p><${Loading} /></div>`;
  const write = (/** @type {keyof Typed} */ name) => (/** @type {any} */ event) => setTyped({ ...typed, [name]: event.target.value });
  const isPublished = base?.status === "published";
  return html`<div class="page article-editor">
    <p class="dim"><${Link} to="/articles">Articles<//></p>
    <header class="bar"><h1 dir="auto">${isNew ? "New article" : typed.title || "Untitled"}</h1>
      ${base && html`<${Badge} kind=${base.status} /> ${isAhead(base) && html`<${Badge} kind="ahead">unpublished changes<//>`} <span class="dim"><${Link} to=${`/a/${encodeURIComponent(id)}`} title="The article as an aggregate, with its versions">version ${base.version}<//> · <${Time} at=${base.updated_at} /></span>`}
      <span class="buttons">
        <button class="primary" disabled=${!mayWrite || isBusy || (isNew ? !typed.title : !isChanged)} title=${why ?? "Save (Ctrl S)"} onClick=${() => save(typed, base)}>Save</button>
        ${base && html`<button disabled=${isBusy || whyNot !== undefined} title=${whyNot} onClick=${() => publish(true)}>${isPublished ? "Publish again" : "Publish"}</button>
        ${isPublished && html`<button disabled=${isBusy || whyNot !== undefined} title=${whyNot} onClick=${() => publish(false)}>Unpublish</button>`}
        <button class="quiet" disabled=${!mayWrite || isBusy} title=${why} onClick=${() => setDeleting(true)}>Delete</button>`}
      </span></header>
    ${isGone && html`<p class="banner" role="status">The article is deleted. Its versions are still in the log, and what is typed here stays until you leave.</p>`}
    ${newer && !merging && html`<p class="banner" role="status">Somebody has saved version ${newer.version} while you were writing. <button class="quiet" onClick=${() => setMerging({ base: typedOf(base), mine: typed, theirs: newer })}>Merge both</button> <button class="quiet" onClick=${() => take(newer)}>Discard my text</button></p>`}
    ${head.error && html`<${Failure} error=${head.error} retry=${head.reload} />`}${error && html`<${Failure} error=${error} />`}
    <div class="fields">
      <label>Title <input value=${typed.title} readonly=${!mayWrite || isBusy} dir="auto" required onInput=${write("title")} /></label>
      <label>Slug <input value=${typed.slug} readonly=${!mayWrite || isBusy} placeholder=${isNew ? "derived from the title" : ""} onInput=${write("slug")} /></label>
      <label>Tags <input value=${typed.tags} readonly=${!mayWrite || isBusy} placeholder="separated by commas" onInput=${write("tags")} /></label>
    </div>
    <div class="halves">
      <section><label for="article-body">Text <span class="dim">Markdown</span></label><textarea id="article-body" class="code" rows="22" dir="auto" readonly=${!mayWrite || isBusy} value=${typed.body} onInput=${write("body")}></textarea></section>
      <section aria-label="Preview"><p class="dim">Preview</p><div class="preview"><${Markdown} text=${typed.body} /></div></section>
    </div>
    ${merging && html`<${Merge} key=${merging.theirs.version} ...${merging} close=${() => setMerging(null)} save=${(/** @type {Typed} */ merged) => save(merged, merging.theirs)} />`}
    ${isDeleting && html`<${Dialog} title=${`Delete ${base.title}?`} close=${() => setDeleting(false)}><p>Lists and searches no longer include it, and it is no longer published. Its history stays in the log.</p>
      <footer class="choices"><button class="quiet" onClick=${() => setDeleting(false)}>Cancel</button><button class="primary" autofocus onClick=${remove}>Delete</button></footer><//>`}
  </div>`;
}
