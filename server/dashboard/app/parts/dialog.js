// Dialogs: the focus stays inside, Escape closes, and the focus returns to where it was.

import { html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";

/** @param {{title: string, close: () => void, children?: any, class?: string}} props */
export function Dialog({ title, close, children, class: name = "" }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const isGone = useRef(false);
  // Before the next key arrives, which belongs to the dialog already.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const shown = element.current;
    shown?.showModal();
    return () => {
      // Nothing outside an open dialog takes the focus.
      isGone.current = true;
      shown?.close();
      // What had the focus may have left the page with what was decided in the dialog.
      const target = before instanceof HTMLElement && before !== document.body && before.isConnected ? before : document.getElementById("main");
      target?.focus({ preventScroll: true });
    };
  }, []);
  const outside = (/** @type {MouseEvent} */ event) => { if (event.target === element.current) close(); };
  return html`<dialog ref=${element} class=${name} aria-label=${title} onClose=${() => { if (!isGone.current) close(); }} onClick=${outside}>
    <header><h2>${title}</h2><button class="quiet" aria-label="Close" onClick=${close}>×</button></header>
    ${children}
  </dialog>`;
}

/** A question that is answered with a text. @param {{title: string, label: string, action: string, required?: boolean, value?: string, hint?: string, submit: (text: string) => void, close: () => void, input?: string}} props */
export function Ask({ title, label, action, required = false, value = "", hint, submit, close, input }) {
  const [text, setText] = useState(value);
  const write = (/** @type {any} */ event) => setText(event.target.value);
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
