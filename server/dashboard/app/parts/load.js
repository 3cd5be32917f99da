// Reads of a screen: the value, the error, and a new read when what it depends on changes.

import { useEffect, useRef, useState } from "../vendor/ui.js";

/**
 * Calls `read` now and whenever a dependency changes. An earlier read that is still under way is aborted.
 *
 * @template T
 * @param {(abort: AbortSignal) => Promise<T>} read @param {any[]} dependencies
 * @returns {{value: T | undefined, error: any, isLoading: boolean, reload: () => void, set: (value: T) => void}}
 */
export function useLoad(read, dependencies) {
  const [state, setState] = useState({ value: /** @type {T | undefined} */ (undefined), error: null, isLoading: true });
  const [round, setRound] = useState(0);
  const shown = useRef(/** @type {any[]} */ ([]));
  useEffect(() => {
    const abort = new AbortController();
    // A new subject begins empty; a reload keeps what is shown until the new value is there.
    const isSame = dependencies.every((value, index) => Object.is(value, shown.current[index]));
    shown.current = dependencies;
    setState((before) => ({ value: isSame ? before.value : undefined, error: null, isLoading: true }));
    read(abort.signal).then(
      (value) => { if (!abort.signal.aborted) setState({ value, error: null, isLoading: false }); },
      (error) => { if (!abort.signal.aborted) setState((before) => ({ value: before.value, error, isLoading: false })); },
    );
    return () => abort.abort();
  }, [...dependencies, round]);
  return { ...state, reload: () => setRound((count) => count + 1), set: (value) => setState({ value, error: null, isLoading: false }) };
}
