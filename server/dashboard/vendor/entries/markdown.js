// Markdown to tokens. The renderer of the library makes strings of HTML and is left out.
export { Lexer } from "marked";
