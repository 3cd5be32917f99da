// Rendering: Preact with hooks, signals, and templates without a build step.
import { h } from "preact";
import htm from "htm";

export { h, render, Fragment, createContext } from "preact";
export { useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export const html = htm.bind(h);
