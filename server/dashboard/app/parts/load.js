// Reads of a screen: the value, the error, and a new read when what it depends on changes.

import { useEffect, useState } from "../vendor/ui.js";

/**
 * Calls `read` now and whenever a dependency changes. An earlier read that is still under way is aborted.
 *
 * @template T
 * @param {(abort: AbortSignal) => Promise<T>} read @param {any[]} dependencies
 * @returns {{value: T | undefined, error: any, isLoading: boolean, reload: () => void, set: (value: T) => void}}
 */
export function useLoad(read, dependencies) {
  const [state, setState] = useState({ of: /** @type {any[]} */ ([]), value: /** @type {T | undefined} */ (undefined), error: null, isLoading: true });
  const [round, setRound] = useState(0);
  const isOf = (/** @type {any[]} */ known) => known.length === dependencies.length && dependencies.every((value, index) => Object.is(value, known[index]));
  useEffect(() => {
    const abort = new AbortController();
    const of = dependencies;
    // A new subject begins empty; a reload keeps what is shown until the new value is there.
    setState((before) => ({ of, value: isOf(before.of) ? before.value : undefined, error: null, isLoading: true }));
    read(abort.signal).then(
      (value) => { if (!abort.signal.aborted) setState({ of, value, error: null, isLoading: false }); },
      (error) => { if (!abort.signal.aborted) setState((before) => ({ of, value: before.value, error, isLoading: false })); },
    );
    return () => abort.abort();
  }, [...dependencies, round]);
  // The first render of a new subject comes before the effect, and must not combine it with the value of the last one.
  const { value, error, isLoading } = isOf(state.of) ? state : { value: undefined, error: null, isLoading: true };
  return { value, error, isLoading, reload: () => setRound((count) => count + 1), set: (next) => setState({ of: dependencies, value: next, error: null, isLoading: false }) };
}
