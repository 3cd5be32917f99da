// Reads of a screen: the value, the error, and a new read when what it depends on changes or the log has grown.

import { useEffect, useRef, useState } from "../vendor/ui.js";
import { listen } from "../api/feed.js";

/** The time until a read is tried again that could not replace what is shown. */
const RETRY_MS = 3_000;

/** Whether an error may be gone after a while: the server cannot be reached, has no time, or failed. @param {any} error */
const isPassing = ({ status = -1 }) => status === 0 || status === 429 || status >= 500;

/** @param {any[]} one @param {any[]} other */
const areSame = (one, other) => one.length === other.length && one.every((value, index) => Object.is(value, other[index]));

/**
 * Calls `read` now and whenever a dependency changes. An earlier read that is still under way is then aborted. A reload
 * without a change waits for the read under way, so that frequent reloads do not keep every read from its end. A reload
 * that fails for a while is tried again, since what is shown meanwhile is not current. `read` gets the value that is
 * shown, if it is of the same dependencies.
 *
 * @template T
 * @param {(abort: AbortSignal, shown: T | undefined) => Promise<T>} read @param {any[]} dependencies
 * @returns {{value: T | undefined, error: any, isLoading: boolean, reload: () => void}}
 */
export function useLoad(read, dependencies) {
  const [state, setState] = useState({ of: /** @type {any[]} */ ([]), value: /** @type {T | undefined} */ (undefined), error: /** @type {any} */ (null), isLoading: true });
  // What the last render asks for, the state at once, and the read under way with whether another one follows it.
  const { current: own } = useRef({ read, dependencies, state, abort: /** @type {AbortController | null} */ (null), isReading: false, isAsked: false });
  Object.assign(own, { read, dependencies });
  const show = (/** @type {Partial<typeof state>} */ changes) => { own.state = { ...own.state, ...changes }; setState(own.state); };
  const begin = () => {
    own.abort?.abort();
    const { signal } = own.abort = new AbortController();
    const of = own.dependencies;
    // A new subject begins empty; a reload keeps what is shown, and why it is not current, until the new value is there.
    const shown = areSame(own.state.of, of) ? own.state.value : undefined;
    Object.assign(own, { isReading: true, isAsked: false });
    show({ of, value: shown, error: shown === undefined ? null : own.state.error, isLoading: true });
    const end = (/** @type {Partial<typeof state>} */ changes) => {
      if (signal.aborted) return;
      own.isReading = false;
      show({ ...changes, isLoading: false });
      if (own.isAsked) return begin();
      if (!changes.error || own.state.value === undefined || !isPassing(changes.error)) return;
      const timer = setTimeout(reload, RETRY_MS);
      signal.addEventListener("abort", () => clearTimeout(timer));
    };
    own.read(signal, shown).then((value) => end({ value, error: null }), (error) => end({ error }));
  };
  useEffect(() => { begin(); return () => own.abort?.abort(); }, dependencies);
  const reload = () => {
    if (!own.abort || own.abort.signal.aborted) return;
    if (own.isReading) own.isAsked = true;
    else begin();
  };
  // The first render of a new subject comes before the effect, and must not combine it with the value of the last one.
  const { value, error, isLoading } = areSame(state.of, dependencies) ? state : { value: undefined, error: null, isLoading: true };
  return { value, error, isLoading, reload };
}

/**
 * Calls `run` with the number of events that concern the screen, a little after the first of them. While further ones
 * come, it is called again and again.
 *
 * @param {(count: number) => void} run @param {((event: any) => boolean) | null} concerns null while nothing updates @param {number} wait in milliseconds
 */
export function useLive(run, concerns, wait) {
  const latest = useRef({ run, concerns });
  latest.current = { run, concerns };
  const isOff = concerns === null;
  useEffect(() => {
    if (isOff) return;
    let count = 0;
    /** @type {number | undefined} */
    let timer;
    const tell = () => {
      const told = count;
      timer = undefined;
      count = 0;
      latest.current.run(told);
    };
    const stop = listen((event) => {
      if (!latest.current.concerns?.(event)) return;
      count += 1;
      timer ??= setTimeout(tell, wait);
    });
    return () => { clearTimeout(timer); stop(); };
  }, [isOff]);
}
