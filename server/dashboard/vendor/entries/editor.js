// The editor of pipelines and payloads.
export { EditorState, Compartment, StateEffect, StateField } from "@codemirror/state";
export { EditorView, keymap, lineNumbers, highlightActiveLine, drawSelection, placeholder } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { json, jsonParseLinter } from "@codemirror/lang-json";
export { autocompletion, completionKeymap, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
export { linter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { bracketMatching, foldGutter, foldKeymap, HighlightStyle, syntaxHighlighting, syntaxTree } from "@codemirror/language";
export { tags } from "@lezer/highlight";
