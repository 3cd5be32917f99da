// The exports of server/dashboard/app/vendor/ui.js. The bundle has no types.
export { h, render, Fragment, createContext } from "preact";
export { useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "@preact/signals";
export type { Signal, ReadonlySignal } from "@preact/signals";
export const html: (strings: TemplateStringsArray, ...values: any[]) => any;
