// Two changed versions of a text merged line by line, with their common origin.

/** @typedef {{kind: "same" | "mine" | "theirs" | "both" | "conflict", mine: string, theirs: string}} Piece */

/**
 * The changes of one version to the origin: for each replaced range of the origin's lines, the new lines.
 *
 * @param {{value: string, count: number, added?: boolean, removed?: boolean}[]} parts of `diffLines`
 */
function edits(parts) {
  /** @type {{from: number, until: number, text: string}[]} */
  const found = [];
  let line = 0;
  let isOpen = false;
  for (const { value, count, added, removed } of parts) {
    if (!added && !removed) { line += count; isOpen = false; continue; }
    if (!isOpen) found.push({ from: line, until: line, text: "" });
    isOpen = true;
    const last = found[found.length - 1];
    if (removed) { line += count; last.until = line; } else last.text += value;
  }
  return found;
}

/** Whether two edits touch the same lines, or insert at the same place. @param {{from: number, until: number}} one @param {{from: number, until: number}} other */
const touch = (one, other) => one.from < other.until && other.from < one.until || one.from === other.from || (one.from === one.until && one.from > other.from && one.from < other.until);

/**
 * Merges two versions of a text. If only one version differs from the origin, the piece has this version. If both
 * versions differ in different ways, the piece is a conflict.
 *
 * @param {string} base @param {string} mine @param {string} theirs @param {(one: string, other: string) => any[]} diffLines
 * @returns {Piece[]}
 */
export function merge(base, mine, theirs, diffLines) {
  const lines = base.match(/[^\n]*\n|[^\n]+/g) ?? [];
  const own = edits(diffLines(base, mine));
  const other = edits(diffLines(base, theirs));
  /** @type {Piece[]} */
  const pieces = [];
  const same = (/** @type {number} */ from, /** @type {number} */ until) => {
    const text = lines.slice(from, until).join("");
    if (text) pieces.push({ kind: "same", mine: text, theirs: text });
  };
  let line = 0;
  while (own.length > 0 || other.length > 0) {
    const group = { from: Math.min(own[0]?.from ?? Infinity, other[0]?.from ?? Infinity), until: 0 };
    group.until = group.from;
    /** @type {typeof own} */
    const left = [];
    /** @type {typeof own} */
    const right = [];
    for (let isGrowing = true; isGrowing;) {
      isGrowing = false;
      for (const [edits, taken] of /** @type {const} */ ([[own, left], [other, right]])) {
        while (edits.length > 0 && (edits[0].from === group.from && left.length + right.length === 0 || touch(edits[0], group))) {
          const edit = /** @type {typeof own[number]} */ (edits.shift());
          taken.push(edit);
          group.until = Math.max(group.until, edit.until);
          isGrowing = true;
        }
      }
    }
    same(line, group.from);
    const [ours, others] = [applied(lines, group, left), applied(lines, group, right)];
    if (left.length === 0) pieces.push({ kind: "theirs", mine: ours, theirs: others });
    else if (right.length === 0) pieces.push({ kind: "mine", mine: ours, theirs: others });
    else pieces.push({ kind: ours === others ? "both" : "conflict", mine: ours, theirs: others });
    line = group.until;
  }
  same(line, lines.length);
  return pieces;
}

/** The lines of a range after edits. @param {string[]} lines @param {{from: number, until: number}} range @param {{from: number, until: number, text: string}[]} edits */
function applied(lines, range, edits) {
  let text = "";
  let line = range.from;
  for (const edit of edits) {
    text += lines.slice(line, edit.from).join("") + edit.text;
    line = edit.until;
  }
  return text + lines.slice(line, range.until).join("");
}

/** The text of a merge with a choice for each conflict. @param {Piece[]} pieces @param {Record<number, "mine" | "theirs" | "both">} choices */
export function mergedText(pieces, choices) {
  const ended = (/** @type {string} */ text) => (text === "" || text.endsWith("\n") ? text : `${text}\n`);
  return pieces.map((piece, index) => {
    if (piece.kind === "theirs") return piece.theirs;
    if (piece.kind !== "conflict") return piece.mine;
    const choice = choices[index] ?? "mine";
    return choice === "both" ? ended(piece.mine) + piece.theirs : piece[choice];
  }).join("");
}
