// Pipelines: stage by stage with the rows after each, now or over the past, explained, saved and shared.

import { html, useEffect, useMemo, useRef, useSignal, useState } from "../vendor/ui.js";
import { query as run } from "../api/client.js";
import { curl } from "../api/curl.js";
import { listen } from "../api/feed.js";
import { parse, stringify } from "../api/json.js";
import { isLeaving } from "../api/session.js";
import { register } from "../state/keys.js";
import { change, earlier, go, isCompared, moment, to } from "../state/route.js";
import { complain } from "../state/toasts.js";
import { Copy, Failure, Loading } from "../parts/basic.js";
import { Editor } from "../parts/editor.js";
import { lazy } from "../parts/lazy.js";
import { useLoad } from "../parts/load.js";
import { loadStyle } from "../parts/style.js";
import { Add } from "./pipelines/add.js";
import { StageCard } from "./pipelines/card.js";
import { build, card, faultOf, FIRST, opened, shared, syntax, whole } from "./pipelines/model.js";
import { notesOf, Plan } from "./pipelines/plan.js";
import { Results } from "./pipelines/results.js";
import { readView, Views } from "./pipelines/views.js";

loadStyle("pipelines");
const Code = lazy(() => import("./pipelines/code.js").then((module) => module.Code));
const PREVIEW = 3;
const PAGE = 200;
const QUIET_MS = 500;

/** @typedef {import("./pipelines/model.js").Card} Card */
/** @typedef {{cards: Card[], text: string | null}} Written the cards, or the text of the whole pipeline while it is edited as text */

/** The written pipelines that were not run, by the address of the bench, so that they are not lost on another screen. @type {Map<string, Written>} */
const unrun = new Map();
// These pipelines are lost with the page, so the browser asks before the page is left.
addEventListener("beforeunload", (event) => { if (unrun.size > 0 && !isLeaving.peek()) event.preventDefault(); });

/** @param {{path: string[], query: URLSearchParams}} props */
export default function Pipelines({ path: [id], query }) {
  const version = query.get("version");
  const view = useLoad(async (abort) => (id ? readView(id, version, abort) : null), [id, version, id ? moment.value : null]);
  const key = `${id ?? ""} ${version ?? ""}`;
  // While a view is read as of another moment, the bench keeps the written text.
  const kept = useRef({ key: "", view: /** @type {any} */ (undefined) });
  if (view.value !== undefined) kept.current = { key, view: view.value };
  const shown = kept.current.key === key ? kept.current.view : undefined;
  if (shown === undefined) return html`<div class="page"><h1>Pipelines</h1>${view.error ? html`<${Failure} error=${view.error} retry=${view.reload} />` : html`<${Loading} />`}</div>`;
  return html`<${Bench} key=${key} view=${shown ?? undefined} error=${view.error} query=${query} reload=${view.reload} />`;
}

/** @param {any} view @param {URLSearchParams} query @returns {Card[]} */
function begin(view, query) {
  const q = query.get("q");
  if (q) {
    try { return opened(q, query.get("off") ?? ""); } catch (error) { complain(error, "The address has no pipeline"); }
  }
  return (view?.pipeline ?? FIRST).map((/** @type {any} */ stage) => card(stage));
}

/** The unedited text of a view. @param {any} view */
const textOf = (view) => (view ? whole((view.pipeline ?? FIRST).map((/** @type {any} */ stage) => card(stage))) : null);

/** Whether neither the address nor the view has the written pipeline. @param {Written} written @param {any} view @param {URLSearchParams} query */
function isUnrun({ cards, text }, view, query) {
  let known = shared(cards);
  if (text !== null && text !== whole(cards)) {
    try { known = { q: stringify(parse(text)), off: null }; } catch { return true; }
  }
  const stored = stringify(view?.pipeline ?? FIRST);
  const isStored = known?.q === stored && known.off === null;
  return !isStored && (known === null || known.q !== (query.get("q") ?? stored) || known.off !== (query.get("off") || null));
}

/** @param {{view: any, error: any, query: URLSearchParams, reload: () => void}} props */
function Bench({ view, error, query, reload }) {
  // Signals change immediately, so that a run right after a keystroke uses the new text.
  const cardsNow = useSignal(/** @type {Card[]} */ ([]));
  const textNow = useSignal(/** @type {string | null} */ (null));
  const place = [view?._id, query.get("version"), query.get("q"), query.get("off")].join(" ");
  useMemo(() => {
    const kept = unrun.get(place);
    cardsNow.value = kept?.cards ?? begin(view, query);
    textNow.value = kept?.text ?? null;
    unrun.delete(place);
  }, []);
  const cards = cardsNow.value;
  const text = textNow.value;
  const setCards = (/** @type {Card[]} */ next) => { cardsNow.value = next; };
  const setText = (/** @type {string | null} */ next) => { textNow.value = next; };
  const [outcome, setOutcome] = useState(/** @type {any} */ (null));
  const [fault, setFault] = useState(/** @type {any} */ (null));
  const [isBusy, setBusy] = useState(false);
  const [isExplained, setExplained] = useState(false);
  const [newer, setNewer] = useState(0);
  const [code, setCode] = useState(/** @type {any[] | null} */ (null));
  const [adding, setAdding] = useState(/** @type {number | null} */ (null));
  const running = useRef(/** @type {AbortController | null} */ (null));
  const shown = useRef(query.get("q"));
  const now = moment.value;
  const before = earlier.value;
  const isStored = useRef(false);
  const latest = useRef({ place, view, query });
  latest.current = { place, view, query };
  useEffect(() => {
    const written = () => ({ cards: cardsNow.peek(), text: textNow.peek() });
    const isLost = () => isUnrun(written(), latest.current.view, latest.current.query);
    const warn = (/** @type {Event} */ event) => { if (isLost() && !isLeaving.peek()) event.preventDefault(); };
    addEventListener("beforeunload", warn);
    return () => {
      removeEventListener("beforeunload", warn);
      if (isLost() && !isStored.current) unrun.set(latest.current.place, written());
    };
  }, []);
  // Another pipeline in the address, such as from a link of this application, replaces the cards.
  const asked = query.get("q");
  useEffect(() => {
    if (!asked || asked === shown.current) return;
    shown.current = asked;
    setText(null);
    setOutcome(null);
    setCards(begin(view, query));
  }, [asked]);

  /** The cards, from the text of the whole pipeline if that is being edited. */
  const current = () => {
    const written = textNow.peek();
    if (written === null) return cardsNow.peek();
    const stages = parse(written);
    if (!Array.isArray(stages)) throw new Error("A pipeline is a list of stages.");
    return stages.map((stage) => card(stage));
  };
  /** The written cards, or the last cards that could be parsed. */
  const readable = () => { try { return current(); } catch { return cardsNow.peek(); } };
  const start = async () => {
    let known;
    try { known = current(); } catch (/** @type {any} */ error) { return setFault({ ...syntax(error), card: null, path: [] }); }
    const written = textNow.peek();
    if (written !== null) setCards(known);
    const { built, fault: unread } = build(known, now);
    if (!built) return setFault(unread);
    running.current?.abort();
    const abort = (running.current = new AbortController()).signal;
    const address = shared(known);
    if (address) { shown.current = address.q; change({ ...address, version: null }, { replace: true }); }
    setBusy(true);
    setFault(null);
    const began = performance.now();
    try {
      const earlierRun = isCompared.value ? run(build(known, before).built?.pipeline ?? [], {}, abort) : null;
      const result = await run(built.pipeline, { limit: isCompared.value ? undefined : PAGE, explain: true, preview: PREVIEW }, abort);
      const past = earlierRun ? (await earlierRun).results : null;
      setOutcome({ result, rows: result.results, next: result.next_cursor, before: past, built, ms: performance.now() - began, text: whole(known), written, ran: began, of: [now, before] });
    } catch (/** @type {any} */ error) {
      if (abort.aborted) return;
      setFault(faultOf(error, built));
    }
    setBusy(false);
  };
  const page = (/** @type {string} */ cursor) => run(outcome.built.pipeline, { limit: PAGE, cursor }).then((/** @type {any} */ found) => ({ rows: found.results, next: found.next_cursor }));
  const more = () => {
    const { next } = outcome;
    if (!next || isBusy) return;
    const own = running.current;
    setBusy(true);
    // A run that began meanwhile has its own rows.
    page(next).then((found) => { if (own === running.current) setOutcome({ ...outcome, rows: [...outcome.rows, ...found.rows], next: found.next }); }, complain)
      .finally(() => { if (own === running.current) setBusy(false); });
  };
  useEffect(() => { if (query.get("q") || view) start(); return () => running.current?.abort(); }, [now, before]);
  // The view of another moment replaces the cards, unless the user has edited the cards.
  const known = useRef(view);
  useEffect(() => {
    const [was, is] = [known.current, view].map(textOf);
    known.current = view;
    const written = textNow.peek();
    if (was === is || (written ?? whole(cardsNow.peek())) !== was) return;
    setCards(begin(view, new URLSearchParams()));
    if (written !== null) setText(is);
    start();
  }, [view]);
  // Counts the events that were appended since the run. Another run shows these events.
  const hasOutcome = outcome !== null && !now;
  useEffect(() => {
    if (!hasOutcome) return;
    setNewer(0);
    let count = 0;
    /** @type {number | undefined} */
    let timer;
    const stop = listen(() => { count += 1; timer ??= setTimeout(() => { timer = undefined; setNewer(count); }, QUIET_MS); });
    return () => { clearTimeout(timer); stop(); };
  }, [hasOutcome, outcome?.ran]);
  useEffect(() => register([
    { key: "ctrl+enter", label: "Run the pipeline", run: start },
    { key: "e", label: "Explain", run: () => setExplained(!isExplained) },
    { key: "n", label: "Add a stage", run: () => setAdding(cards.length) },
  ]));
  const replace = (/** @type {number} */ id, /** @type {object} */ changed) => setCards(cardsNow.peek().map((one) => (one.id === id ? { ...one, ...changed } : one)));
  const move = (/** @type {number} */ index, /** @type {number} */ by) => {
    const moved = [...cardsNow.peek()];
    const [taken] = moved.splice(index, 1);
    moved.splice(index + by, 0, taken);
    setCards(moved);
  };
  const insert = (/** @type {any} */ stage) => { const at = adding ?? cards.length; setAdding(null); setCards([...cards.slice(0, at), card(stage), ...cards.slice(at)]); };
  const toggleText = () => {
    if (text === null) return setText(whole(cards));
    try { if (text !== whole(cards)) setCards(current()); setText(null); setFault(null); } catch (/** @type {any} */ error) { setFault({ ...syntax(error), card: null, path: [] }); }
  };
  const pipeline = () => { try { return current().filter(({ isOn }) => isOn).map((one) => parse(one.text)); } catch { return null; } };
  const sent = () => (isStale ? null : outcome?.built.pipeline) ?? build(readable(), now).built?.pipeline ?? [];
  const command = () => curl({ method: "POST", path: "/aggregates/query", body: { pipeline: sent() } });
  const notes = outcome ? notesOf(outcome.result.explain, outcome.built) : new Map();
  const isStale = outcome !== null && (![outcome.text, outcome.written].includes(text ?? whole(cards)) || outcome.of[0] !== now || outcome.of[1] !== before);
  const stages = new Map((outcome?.result.stages ?? []).map((/** @type {any} */ stage) => [outcome.built.cards[stage.index], stage]));
  return html`<div class="page pipelines">
    <header class="bar"><h1>${view ? html`<bdi>${view.name}</bdi>` : "Pipelines"}</h1>
      <button class="primary" disabled=${isBusy} onClick=${start} title="Run (Ctrl Enter)">Run</button>
      <button aria-pressed=${isExplained} onClick=${() => setExplained(!isExplained)} title="Explain (e)">Explain</button>
      <button aria-pressed=${text !== null} onClick=${toggleText}>As text</button>
      <${Copy} text=${command}>curl<//><button class="quiet" title="The pipeline as a program" onClick=${() => setCode(sent())}>code</button><${Copy} text=${() => shareable(readable(), query)}>link<//>
      <${Views} view=${view} pipeline=${pipeline} saved=${reload} stored=${() => { isStored.current = true; }} />
      ${view && html`<button class="quiet" onClick=${() => go(to("/pipelines"))}>New</button>`}
      <a href="/docs/operators" target="_blank" rel="noopener">operators</a></header>
    ${error && html`<${Failure} error=${error} retry=${reload} />`}
    ${fault && fault.card === null && html`<${Failure} error=${fault} />${fault.hint && html`<p>${fault.hint}</p>`}`}
    ${text !== null && cards.some(({ isOn }) => !isOn) && html`<p class="dim">Stages that are off are not a part of the text.</p>`}
    ${text !== null ? html`<${Editor} label="Pipeline" value=${text} numbers onChange=${setText} run=${start} />` : html`
      <ol class="stages plain" aria-label="Stages">${cards.map((one, index) => html`<${StageCard} key=${one.id} card=${one} index=${index} count=${cards.length}
        fault=${fault?.card === one.id ? fault : null} outcome=${stages.get(one.id)} notes=${notes.get(one.id) ?? null} isStale=${isStale} run=${start}
        change=${(/** @type {object} */ changed) => replace(one.id, changed)} move=${(/** @type {number} */ by) => move(index, by)}
        remove=${() => setCards(cardsNow.peek().filter(({ id }) => id !== one.id))} add=${() => setAdding(index + 1)} />`)}</ol>
      <p><button onClick=${() => setAdding(cards.length)} title="Add a stage (n)">Add a stage</button></p>`}
    ${isExplained && (outcome?.result.explain ? html`<${Plan} explain=${outcome.result.explain} />` : html`<p class="dim">The plan is shown after a run.</p>`)}
    ${newer > 0 && html`<p class="banner" role="status">${newer.toLocaleString("en")} ${newer === 1 ? "event was" : "events were"} appended since this run. <button class="quiet" onClick=${start}>Run again</button></p>`}
    ${outcome && html`<${Results} result=${outcome.result} rows=${outcome.rows} before=${outcome.before} ms=${outcome.ms} more=${outcome.next ? more : null} isStale=${isStale}
      query=${query} name=${view?.name ?? "rows"} cursor=${outcome.next ?? null} page=${page} />`}
    ${code && html`<${Code} pipeline=${code} close=${() => setCode(null)} />`}
    ${adding !== null && html`<${Add} close=${() => setAdding(null)} add=${insert} />`}
  </div>`;
}

/** The whole address of a pipeline, with the form of its results. @param {Card[]} cards @param {URLSearchParams} query */
const shareable = (cards, query) => location.origin + to("/pipelines", { .../** @type {any} */ (shared(cards)), as: query.get("as"), x: query.get("x"), y: query.get("y") });
