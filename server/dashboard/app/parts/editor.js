// The editor of pipelines, payloads and scripts: CodeMirror in a shadow root, loaded when an editor is first shown.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";

/** @typedef {{from: number, to: number, message: string, severity?: "error" | "warning" | "info"}} Mark */
/**
 * @typedef {object} Props
 * @property {string} label the accessible name
 * @property {string} value
 * @property {(text: string) => void} [onChange]
 * @property {"json" | "text"} [language]
 * @property {(state: any) => Mark[]} [marks] the errors to show, for the text of the editor
 * @property {unknown} [marked] shows the errors again when it changes
 * @property {(context: any) => any} [complete] a source of completions
 * @property {() => void} [run] the action of Ctrl+Enter
 * @property {boolean} [readOnly]
 * @property {boolean} [numbers] whether lines are numbered
 * @property {number | null} [line] the line to show and to select
 */

/** @type {Promise<any> | null} */
let loading = null;
const load = () => (loading ??= import("../vendor/editor.js"));

/** An editor of a text. The text stays usable while the editor is loading, or if the editor cannot be loaded. @param {Props} props */
export function Editor(props) {
  const { label, value, onChange, readOnly = false } = props;
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const field = useRef(/** @type {HTMLElement | null} */ (null));
  const hadFocus = useRef(false);
  const view = useRef(/** @type {any} */ (null));
  const latest = useRef(props);
  latest.current = props;
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let isCurrent = true;
    load().then((vendor) => {
      if (!isCurrent || !host.current) return;
      const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
      hadFocus.current = field.current !== null && field.current === document.activeElement;
      view.current = create(vendor, root, latest);
      setReady(true);
    }, () => {});
    return () => { isCurrent = false; view.current?.destroy(); view.current = null; };
  }, []);
  // A user who has begun to type continues in the editor.
  useEffect(() => { if (isReady && hadFocus.current) view.current?.focus(); }, [isReady]);
  useLayoutEffect(() => {
    const editor = view.current;
    if (!editor || editor.state.doc.toString() === value) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value, isReady]);
  useEffect(() => {
    if (!isReady) return;
    load().then((vendor) => {
      const editor = view.current;
      if (!editor) return;
      const found = (latest.current.marks?.(editor.state) ?? []).map((mark) => ({ severity: "error", ...mark }));
      editor.dispatch(vendor.setDiagnostics(editor.state, found));
    });
  }, [props.marked, value, isReady]);
  useEffect(() => { if (isReady && props.line) show(view.current, props.line); }, [props.line, isReady]);
  return html`<div class="editor">
    <div ref=${host} class="code-host" hidden=${!isReady}></div>
    ${!isReady && html`<textarea ref=${field} class="code" aria-label=${label} rows="4" spellcheck=${false} readonly=${readOnly} value=${value}
      onInput=${(/** @type {any} */ event) => onChange?.(event.target.value)}></textarea>`}
  </div>`;
}

/** Shows a line and selects it. @param {any} editor @param {number} number */
function show(editor, number) {
  const line = editor.state.doc.line(Math.min(Math.max(number, 1), editor.state.doc.lines));
  editor.dispatch({ selection: { anchor: line.from, head: line.to } });
  // The coordinates are known after the browser has laid out the editor.
  requestAnimationFrame(() => {
    const { scrollDOM } = editor;
    const block = editor.lineBlockAt(line.from);
    scrollDOM.scrollTop = Math.max(0, block.top - scrollDOM.clientHeight / 3);
  });
}

/** @param {any} vendor @param {ShadowRoot} root @param {{current: Props}} latest */
function create(vendor, root, latest) {
  const { EditorState, EditorView, keymap } = vendor;
  const { language = "json", label, readOnly = false, numbers = false, complete } = latest.current;
  const start = () => { latest.current.run?.(); return latest.current.run !== undefined; };
  const extensions = [
    // Tab is not bound: Tab moves to the next control, as everywhere.
    keymap.of([{ key: "Mod-Enter", run: start }]),
    vendor.history(),
    vendor.bracketMatching(),
    vendor.closeBrackets(),
    keymap.of([...vendor.closeBracketsKeymap, ...vendor.completionKeymap, ...vendor.historyKeymap, ...vendor.defaultKeymap]),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocorrect: "off", tabindex: "0" }),
    EditorView.updateListener.of((/** @type {any} */ update) => { if (update.docChanged) latest.current.onChange?.(update.state.doc.toString()); }),
    EditorState.readOnly.of(readOnly),
    vendor.syntaxHighlighting(colors(vendor)),
    theme(EditorView),
  ];
  if (numbers) extensions.push(vendor.lineNumbers(), vendor.highlightActiveLine());
  if (language === "json") extensions.push(vendor.json());
  if (complete) extensions.push(vendor.autocompletion({ override: [(/** @type {any} */ context) => latest.current.complete?.(context)], icons: false }));
  return new EditorView({ parent: root, root, state: EditorState.create({ doc: latest.current.value, extensions }) });
}

/** @param {any} vendor */
function colors({ HighlightStyle, tags }) {
  return HighlightStyle.define([
    { tag: tags.propertyName, color: "light-dark(#7a3e9d, #c9a2ea)" },
    { tag: tags.string, color: "light-dark(#176a3a, #85d6a3)" },
    { tag: [tags.number, tags.bool, tags.null], color: "light-dark(#9a4a00, #f0b27a)" },
    { tag: tags.invalid, color: "var(--bad)" },
  ]);
}

/** @param {any} EditorView */
function theme(EditorView) {
  return EditorView.theme({
    "&": { color: "var(--text)", backgroundColor: "var(--ground)", border: "1px solid var(--line)", borderRadius: "6px", fontSize: ".9em" },
    "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
    ".cm-scroller": { fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", maxHeight: "var(--editor-height, 24rem)", overflow: "auto" },
    ".cm-content": { caretColor: "var(--text)", padding: "6px 0" },
    ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--dim)", border: "0" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
    "&.cm-focused .cm-activeLine": { backgroundColor: "var(--chosen)" },
    ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--chosen)", outline: "1px solid var(--line)" },
    ".cm-tooltip": { backgroundColor: "var(--ground)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px", overflow: "hidden" },
    ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
    ".cm-tooltip.cm-completionInfo": { padding: "6px 8px", maxWidth: "20rem" },
    ".cm-completionDetail": { color: "inherit", opacity: ".75", fontStyle: "normal" },
    ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
    ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)" },
    ".cm-diagnostic": { borderInlineStart: "4px solid var(--bad)", padding: "4px 8px" },
  });
}
