// The places of the nodes of the graph, computed with forces in short slices, so that the page never waits.

/** @typedef {{id: string, x: number, y: number, distance: number, [name: string]: any}} Placed */
/** @typedef {{from: string, to: string}} Line */

/** The duration of a slice in milliseconds. A frame has 16 ms, and drawing needs a part of this time. */
const SLICE_MS = 6;
/** The number of nodes from which only every third slice is drawn, in a frame of its own, because drawing takes longer than computing. */
const MANY = 150;
const LENGTH = 110;
const CHARGE = -420;
const RADIUS = 34;

/**
 * A layout. Nodes keep their places when the graph changes.
 *
 * @param {(places: Map<string, {x: number, y: number}>) => void} moved
 */
export function createLayout(moved) {
  /** @type {Map<string, Placed>} */
  let placed = new Map();
  /** @type {any} */
  let simulation = null;
  let frame = 0;
  let slices = 0;
  let round = 0;
  const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;

  const tell = () => moved(new Map([...placed].map(([id, { x, y }]) => [id, { x, y }])));
  const isDone = () => simulation.alpha() <= simulation.alphaMin();
  const proceed = () => { if (!isDone()) frame = requestAnimationFrame(slice); };
  const draw = () => {
    tell();
    proceed();
  };
  const slice = () => {
    const began = performance.now();
    let now = began, step = 0;
    // The next step is expected to take as long as the step before it.
    while (!isDone() && now - began + step < SLICE_MS) {
      simulation.tick();
      const end = performance.now();
      [step, now] = [end - now, end];
    }
    slices += 1;
    const isDrawn = isDone() || (!isStill && (placed.size < MANY || slices % 3 === 0));
    if (!isDrawn) proceed();
    else if (placed.size < MANY) draw();
    else frame = requestAnimationFrame(draw);
  };

  return {
    /** @param {{id: string, distance: number}[]} nodes @param {Line[]} edges */
    async set(nodes, edges) {
      const mine = ++round;
      const { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } = await import("../../vendor/force.js");
      if (mine !== round) return;
      cancelAnimationFrame(frame);
      const before = placed;
      placed = new Map(nodes.map((node, index) => {
        const known = before.get(node.id);
        const neighbor = edges.map(({ from, to }) => (from === node.id ? to : to === node.id ? from : "")).map((id) => before.get(id)).find(Boolean);
        // New nodes begin beside a neighbor, on a spiral that is the same each time.
        const angle = index * 2.4;
        const reach = node.distance === 0 ? 0 : 40 + node.distance * 60;
        return [node.id, { ...node, x: known?.x ?? (neighbor?.x ?? 0) + Math.cos(angle) * reach, y: known?.y ?? (neighbor?.y ?? 0) + Math.sin(angle) * reach }];
      }));
      const all = [...placed.values()];
      for (const node of all) if (node.distance === 0) { node.fx = 0; node.fy = 0; }
      const isSame = all.length === before.size && all.every(({ id }) => before.has(id));
      simulation = forceSimulation(all).stop().alpha(isSame ? 0.25 : 1).alphaDecay(0.035)
        .force("link", forceLink(edges.map(({ from, to }) => ({ source: from, target: to }))).id((/** @type {Placed} */ node) => node.id).distance(LENGTH))
        .force("charge", forceManyBody().strength(CHARGE)).force("collide", forceCollide(RADIUS))
        .force("x", forceX(0).strength(0.04)).force("y", forceY(0).strength(0.06));
      slice();
    },
    stop() {
      round += 1;
      cancelAnimationFrame(frame);
    },
  };
}

/** The rectangle that contains all places, with space for labels. @param {Map<string, {x: number, y: number}>} places */
export function bounds(places) {
  const all = [...places.values()];
  const xs = all.map(({ x }) => x), ys = all.map(({ y }) => y);
  const left = Math.min(...xs, -160) - 90, right = Math.max(...xs, 160) + 90;
  const top = Math.min(...ys, -110) - 40, bottom = Math.max(...ys, 110) + 50;
  return { left, top, width: right - left, height: bottom - top };
}

const DIRECTIONS = /** @type {Record<string, [number, number]>} */ ({ ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] });

/** The nearest node in the direction of an arrow key. @param {Map<string, {x: number, y: number}>} places @param {string} id @param {string} key */
export function towards(places, id, key) {
  const direction = DIRECTIONS[key];
  const here = places.get(id);
  if (!direction || !here) return null;
  let best = { id: "", cost: Infinity };
  for (const [other, place] of places) {
    const x = place.x - here.x, y = place.y - here.y;
    const along = x * direction[0] + y * direction[1];
    const aside = Math.abs(x * direction[1]) + Math.abs(y * direction[0]);
    if (other !== id && along > 1 && along + aside * 2 < best.cost) best = { id: other, cost: along + aside * 2 };
  }
  return best.id || null;
}
