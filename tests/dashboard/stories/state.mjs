// Functions of the dashboard that need no browser: merges of texts, comparisons of rows, and the ring of newest events.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createTail, KEPT } from "../../../server/dashboard/app/screens/events/tail.js";
import { compareRows } from "../../../server/dashboard/app/state/compare.js";
import { merge, mergedText } from "../../../server/dashboard/app/state/merge.js";
import { diffLines } from "../../../server/dashboard/app/vendor/diff.js";

/** @param {string} base @param {string} mine @param {string} theirs */
const merged = (base, mine, theirs) => mergedText(merge(base, mine, theirs, diffLines), {});

test("a merge takes what only one side changed, and conflicts where both did", () => {
  const base = "a\nb\nc\nd\n";
  assert.equal(merged(base, "A\nb\nc\nd\n", "a\nb\nc\nD\n"), "A\nb\nc\nD\n");
  assert.equal(merged(base, "a\nc\nd\n", "a\nb\nc\nd\ne\n"), "a\nc\nd\ne\n");
  const kinds = (/** @type {string} */ mine, /** @type {string} */ theirs) => merge(base, mine, theirs, diffLines).map((piece) => piece.kind);
  assert.deepEqual(kinds("a\nB\nc\nd\n", "a\nX\nc\nd\n"), ["same", "conflict", "same"]);
  assert.deepEqual(kinds("a\nB\nc\nd\n", "a\nB\nc\nd\n"), ["same", "both", "same"]);
});

test("no merge loses a line of either side", () => {
  // Uses a fixed sequence, so that a failure can be repeated.
  let seed = 7;
  const random = (/** @type {number} */ below) => { seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648; return seed % below; };
  const text = () => Array.from({ length: random(9) }, () => `${"abc"[random(3)]}\n`).join("");
  for (let round = 0; round < 2_000; round += 1) {
    const [base, mine, theirs] = [text(), text(), text()];
    assert.equal(merged(base, mine, base), mine);
    assert.equal(merged(base, base, theirs), theirs);
    assert.equal(merged(base, mine, mine), mine);
    const pieces = merge(base, mine, theirs, diffLines);
    assert.equal(pieces.map((piece) => piece.mine).join(""), mine, JSON.stringify([base, mine, theirs]));
    assert.equal(pieces.map((piece) => piece.theirs).join(""), theirs, JSON.stringify([base, mine, theirs]));
  }
});

test("rows are compared by key, and bookkeeping alone is no change", () => {
  const before = [{ _id: "a", total: 1, _version: 1 }, { _id: "b", total: 2, _version: 1 }, { _id: "c", total: 3 }];
  const after = [{ _id: "a", total: 1, _version: 2 }, { _id: "b", total: 5, _version: 2 }, { _id: "d", total: 4 }];
  const { added, removed, changed, same } = compareRows(before, after);
  assert.deepEqual([added.map((row) => row._id), removed.map((row) => row._id), changed.map((row) => [row.key, row.fields]), same.map((row) => row._id)], [["d"], ["c"], [['"b"', ["total"]]], ["a"]]);
  // The key of a group may be an object. Rows without a key are compared by their whole content.
  assert.equal(compareRows([{ _id: { day: 1 }, n: 1 }], [{ _id: { day: 1 }, n: 2 }]).changed.length, 1);
  assert.deepEqual(compareRows(["x", "x"], ["x", "y"]).removed, ["x"]);
});

test("a full ring says that it dropped events, and takes only a page that continues it", () => {
  /** @type {import("../../../server/dashboard/app/screens/events/tail.js").View[]} */
  const views = [];
  const tail = createTail((view) => views.push(view));
  const push = (/** @type {number} */ from, /** @type {number} */ to) => { for (let position = from; position <= to; position += 1) tail.push({ position }); };
  tail.begin([{ position: 2 }, { position: 1 }]);
  // A pause shows at once what has arrived.
  push(3, KEPT);
  tail.pause();
  tail.resume();
  assert.deepEqual([views.some(({ isCut }) => isCut), tail.last()], [false, 1]);
  push(KEPT + 1, KEPT + 3);
  tail.pause();
  assert.deepEqual([views.some(({ isCut }) => isCut), tail.last()], [true, 4]);
  assert.equal(tail.extend([], 1), false);
  assert.equal(tail.extend([{ position: 3 }, { position: 2 }, { position: 1 }], 4), true);
  assert.deepEqual(views.at(-1)?.shown.map(({ position }) => position), Array.from({ length: KEPT + 3 }, (_, index) => KEPT + 3 - index));
});

test("a full ring keeps its end while an older page is read, also if the read fails", () => {
  /** @type {import("../../../server/dashboard/app/screens/events/tail.js").View[]} */
  const views = [];
  const tail = createTail((view) => views.push(view));
  let newest = KEPT + 2;
  /** Shows three further events at once, as a pause does. */
  const grow = () => {
    for (const end = newest + 3; newest < end;) tail.push({ position: ++newest });
    tail.pause();
    tail.resume();
  };
  const isCut = () => views.some((view) => view.isCut);
  tail.begin(Array.from({ length: KEPT }, (_, index) => ({ position: KEPT + 2 - index })));
  assert.equal(tail.hold(), 3);
  grow();
  assert.deepEqual([isCut(), tail.last()], [false, 3]);
  assert.equal(tail.extend([{ position: 2 }], 3), true);
  assert.equal(tail.hold(), 2);
  grow();
  tail.release();
  assert.deepEqual([isCut(), tail.last()], [false, 2]);
  grow();
  assert.deepEqual([isCut(), tail.last()], [true, 5]);
});
