// The merge of an article that two users changed: both texts, and the text to save.

import { html, useEffect, useState } from "../../vendor/ui.js";
import { merge, mergedText } from "../../state/merge.js";
import { Loading } from "../../parts/basic.js";
import { Dialog } from "../../parts/dialog.js";
import { TextDiff } from "../../parts/diff.js";
import { typedOf } from "./editor.js";

/** @typedef {import("./editor.js").Typed} Typed */
const SHORT = /** @type {const} */ (["title", "slug", "tags"]);

/**
 * @param {{base: Typed, mine: Typed, theirs: any, close: () => void, save: (merged: Typed) => Promise<boolean>}} props
 * `base` is the article that the writer began with, and `theirs` is the current article.
 */
export function Merge({ base, mine, theirs: article, close, save }) {
  const theirs = typedOf(article);
  const [pieces, setPieces] = useState(/** @type {import("../../state/merge.js").Piece[] | null} */ (null));
  const [choices, setChoices] = useState(/** @type {Record<number, any>} */ ({}));
  const [edited, setEdited] = useState(/** @type {string | null} */ (null));
  // A choice creates the merged text again. The text that was typed before can be restored.
  const [replaced, setReplaced] = useState(/** @type {string | null} */ (null));
  const choose = (/** @type {number} */ index, /** @type {string} */ choice) => {
    setChoices({ ...choices, [index]: choice });
    if (edited !== null) setReplaced(edited);
    setEdited(null);
  };
  const [short, setShort] = useState(/** @type {Record<string, string>} */ ({}));
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    import("../../vendor/diff.js").then(({ diffLines }) => setPieces(merge(base.body, mine.body, theirs.body, diffLines)));
  }, []);
  /** The value of a short field: the changed value, or the writer's value if both were changed. @param {typeof SHORT[number]} name */
  const value = (name) => short[name] ?? (mine[name] === base[name] ? theirs[name] : mine[name]);
  const conflicts = (pieces ?? []).flatMap((piece, index) => (piece.kind === "conflict" ? [{ piece, index }] : []));
  const body = edited ?? (pieces ? mergedText(pieces, choices) : "");
  const send = async (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    setBusy(true);
    await save({ title: value("title"), slug: value("slug"), tags: value("tags"), body });
    setBusy(false);
  };
  return html`<${Dialog} title=${`Merge with version ${article.version}`} close=${close} class="wide merge">
    <p>Somebody has saved version ${article.version} since you began. What only one of you changed is merged; nothing is lost until you save.</p>
    ${!pieces ? html`<${Loading} />` : html`<form onSubmit=${send}>
      ${SHORT.map((name) => theirs[name] !== mine[name] && html`<fieldset key=${name}><legend>${name}</legend>
        ${mine[name] !== base[name] && theirs[name] !== base[name] ? html`<label class="check"><input type="radio" name=${name} checked=${value(name) === mine[name]} onChange=${() => setShort({ ...short, [name]: mine[name] })} /> mine: <bdi>${mine[name] || "empty"}</bdi></label>
          <label class="check"><input type="radio" name=${name} checked=${value(name) === theirs[name]} onChange=${() => setShort({ ...short, [name]: theirs[name] })} /> theirs: <bdi>${theirs[name] || "empty"}</bdi></label>`
          : html`<p class="dim">taken from ${mine[name] === base[name] ? "theirs" : "mine"}: <bdi>${value(name) || "empty"}</bdi></p>`}</fieldset>`)}
      ${conflicts.length > 0 && html`<p role="status"><strong>${conflicts.length} ${conflicts.length === 1 ? "place differs" : "places differ"}</strong> in both texts.</p>`}
      ${conflicts.map(({ piece, index }, number) => html`<fieldset key=${index} class="conflict"><legend>Place ${number + 1}</legend>
        <div class="halves"><section><h3>Mine</h3><pre tabindex="0" aria-label="My lines">${piece.mine || "(nothing)"}</pre></section><section><h3>Theirs</h3><pre tabindex="0" aria-label="Their lines">${piece.theirs || "(nothing)"}</pre></section></div>
        ${/** @type {const} */ (["mine", "theirs", "both"]).map((choice) => html`<label key=${choice} class="check"><input type="radio" name=${`place-${index}`} checked=${(choices[index] ?? "mine") === choice} onChange=${() => choose(index, choice)} /> ${choice}</label>`)}
      </fieldset>`)}
      <label>Merged text <textarea class="code" rows="12" dir="auto" value=${body} onInput=${(/** @type {any} */ event) => setEdited(event.target.value)}></textarea></label>
      ${replaced !== null && html`<p class="dim">The choice has replaced what was typed in the merged text. <button type="button" class="quiet" onClick=${() => { setEdited(replaced); setReplaced(null); }}>Bring it back</button></p>`}
      <details><summary>What the merge changes in version ${article.version}</summary><${TextDiff} before=${theirs.body} after=${body} /></details>
      <footer><button type="button" class="quiet" onClick=${close}>Back to my text</button><button class="primary" disabled=${isBusy}>Save the merge</button></footer></form>`}
  <//>`;
}
