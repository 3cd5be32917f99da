// Reads of a screen: the value, the error, and a new read when a dependency changes or the log has grown.

import { useEffect, useRef, useState } from "../vendor/ui.js";
import { listen } from "../api/feed.js";

/** The time until a failed reload is retried, in milliseconds. */
const RETRY_MS = 3_000;

/** Whether an error may be temporary: the server cannot be reached, is overloaded, or failed. @param {any} error */
const isPassing = ({ status = -1 }) => status === 0 || status === 429 || status >= 500;

/** @param {any[]} one @param {any[]} other */
const areSame = (one, other) => one.length === other.length && one.every((value, index) => Object.is(value, other[index]));

/**
 * Calls `read` now and whenever a dependency changes. A change aborts an earlier read that is still in progress. A
 * reload without a change waits for the read in progress, so that frequent reloads do not prevent every read from
 * completing. A reload with a temporary error is retried, because the shown value is not current. `read` gets the shown
 * value if its dependencies are the same.
 *
 * @template T
 * @param {(abort: AbortSignal, shown: T | undefined) => Promise<T>} read @param {any[]} dependencies
 * @returns {{value: T | undefined, error: any, isLoading: boolean, reload: () => void}}
 */
export function useLoad(read, dependencies) {
  const [state, setState] = useState({ of: /** @type {any[]} */ ([]), value: /** @type {T | undefined} */ (undefined), error: /** @type {any} */ (null), isLoading: true });
  // The arguments of the last render, the current state, and the read in progress with whether another read follows.
  const { current: own } = useRef({ read, dependencies, state, abort: /** @type {AbortController | null} */ (null), isReading: false, isAsked: false });
  Object.assign(own, { read, dependencies });
  const show = (/** @type {Partial<typeof state>} */ changes) => { own.state = { ...own.state, ...changes }; setState(own.state); };
  const begin = () => {
    own.abort?.abort();
    const { signal } = own.abort = new AbortController();
    const of = own.dependencies;
    // New dependencies begin without a value. A reload keeps the shown value and its error until the new value arrives.
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
  // The first render with new dependencies comes before the effect, and must not use the value of the old dependencies.
  const { value, error, isLoading } = areSame(state.of, dependencies) ? state : { value: undefined, error: null, isLoading: true };
  return { value, error, isLoading, reload };
}

/**
 * Calls `run` with the number of events that concern the screen, shortly after the first event. While further events
 * arrive, `run` is called repeatedly.
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
