// Dialogs: the focus stays inside, Escape closes, a click outside closes a dialog without a form, the browser asks
// before the page is left with typed text, and the focus returns to the previous element.

import { html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { isLeaving } from "../api/session.js";

/**
 * @param {{title: string, close: () => void, children?: any, class?: string, isKept?: boolean}} props A dialog that is
 * kept, or that has a form, does not close by a click outside.
 */
export function Dialog({ title, close, children, class: name = "", isKept = false }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const isGone = useRef(false);
  const began = useRef(false);
  // Runs before the next key arrives, which already belongs to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const shown = element.current;
    shown?.showModal();
    let isTyped = false;
    const typed = () => { isTyped = true; };
    const warn = (/** @type {Event} */ event) => { if (isTyped && shown?.querySelector("form") && !isLeaving.peek()) event.preventDefault(); };
    shown?.addEventListener("input", typed);
    addEventListener("beforeunload", warn);
    return () => {
      removeEventListener("beforeunload", warn);
      // While a dialog is open, no element outside of the dialog can take the focus.
      isGone.current = true;
      shown?.close();
      // The decision in the dialog may have removed the element that had the focus.
      const target = before instanceof HTMLElement && before !== document.body && before.isConnected ? before : document.getElementById("main");
      target?.focus({ preventScroll: true });
    };
  }, []);
  /** Whether a pointer is outside. The dialog itself is the target both outside and in its padding. @param {MouseEvent} event */
  const isOutside = ({ target, clientX: x, clientY: y }) => {
    const { left, right, top, bottom } = /** @type {HTMLElement} */ (element.current).getBoundingClientRect();
    return target === element.current && (x < left || x > right || y < top || y > bottom);
  };
  // A selection that is dragged from the inside to the outside also ends with a click.
  const begin = (/** @type {MouseEvent} */ event) => { began.current = isOutside(event); };
  const end = (/** @type {MouseEvent} */ event) => { if (began.current && isOutside(event) && !isKept && !element.current?.querySelector("form")) close(); };
  // Escape closes at once: the browser reports a closed dialog only later, and would lose a key that is pressed
  // meanwhile.
  const cancel = (/** @type {Event} */ event) => {
    if (event.target !== element.current) return;
    event.preventDefault();
    close();
  };
  return html`<dialog ref=${element} class=${name} aria-label=${title} onCancel=${cancel} onClose=${() => { if (!isGone.current) close(); }} onPointerDown=${begin} onClick=${end}>
    <header><h2>${title}</h2><button class="quiet" aria-label="Close" onClick=${close}>×</button></header>
    ${children}
  </dialog>`;
}

/** A question that is answered with a text. `keep` receives the typed text. @param {{title: string, label: string, action: string, required?: boolean, value?: string, hint?: string, submit: (text: string) => void, close: () => void, input?: string, keep?: (text: string) => void}} props */
export function Ask({ title, label, action, required = false, value = "", hint, submit, close, input, keep }) {
  const [text, setText] = useState(value);
  const write = (/** @type {any} */ event) => { setText(event.target.value); keep?.(event.target.value); };
  const send = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    close();
    submit(text);
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    /** @type {HTMLElement} */ (event.target).closest("form")?.requestSubmit();
  };
  return html`<${Dialog} title=${title} close=${close}>
    <form onSubmit=${send} onKeyDown=${keys}>
      <label>${label}
        ${input ? html`<input name="text" type=${input} value=${text} onInput=${write} required=${required} autofocus />`
          : html`<textarea name="text" rows="5" required=${required} autofocus value=${text} onInput=${write}></textarea>`}
      </label>
      ${hint && html`<p class="dim">${hint}</p>`}
      <footer><button type="button" class="quiet" onClick=${close}>Cancel</button><button class="primary">${action}</button></footer>
    </form>
  <//>`;
}
