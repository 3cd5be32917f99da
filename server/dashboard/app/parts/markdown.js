// Markdown as elements. Raw HTML is shown as text, and links lead only to the web and to mail.

import { h, html, useEffect, useState } from "../vendor/ui.js";

/** Above this size, a text is shown without formatting, because its elements would take seconds. */
const MOST = 200_000;
/** The number of characters of a long text that are shown until the reader requests the whole text. */
const SHOWN = 10_000;
const SAFE = /^(https?:|mailto:)/i;

/** @param {{text: string}} props */
export function Markdown({ text }) {
  const [tokens, setTokens] = useState(/** @type {any[] | null} */ (null));
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > 2 * SHOWN;
  const shown = isLong && !isWhole ? `${text.slice(0, SHOWN)}…` : text;
  useEffect(() => {
    let isCurrent = true;
    if (shown.length > MOST) return setTokens(null);
    import("../vendor/markdown.js").then(({ Lexer }) => { if (isCurrent) setTokens(new Lexer().lex(shown)); });
    return () => { isCurrent = false; };
  }, [shown]);
  return html`${tokens ? html`<div class="markdown" dir="auto">${tokens.map(block)}</div>` : html`<div class="text" dir="auto">${shown}</div>`}
    ${isLong && html`<button class="quiet" onClick=${() => setWhole(!isWhole)}>${isWhole ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}</button>`}`;
}

/** Undoes the escapes of the lexer, because elements escape their text themselves. @param {string} text */
const plain = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&#39;", "'").replaceAll("&amp;", "&");

/** @param {any} token @returns {any} */
function block(token) {
  switch (token.type) {
    case "heading": return h(`h${Math.min(token.depth + 1, 6)}`, {}, inline(token.tokens));
    case "paragraph": return html`<p>${inline(token.tokens)}</p>`;
    case "blockquote": return html`<blockquote>${token.tokens.map(block)}</blockquote>`;
    case "code": return html`<pre><code>${token.text}</code></pre>`;
    case "list": return h(token.ordered ? "ol" : "ul", {}, token.items.map((/** @type {any} */ item) => html`<li>${item.tokens.map(block)}</li>`));
    case "table": return html`<table><thead><tr>${token.header.map((/** @type {any} */ cell) => html`<th>${inline(cell.tokens)}</th>`)}</tr></thead>
      <tbody>${token.rows.map((/** @type {any[]} */ row) => html`<tr>${row.map((cell) => html`<td>${inline(cell.tokens)}</td>`)}</tr>`)}</tbody></table>`;
    case "hr": return html`<hr />`;
    case "space": case "def": return null;
    case "text": return token.tokens ? inline(token.tokens) : token.text;
    default: return html`<p>${token.raw}</p>`;
  }
}

/** @param {any[] | undefined} tokens @returns {any} */
function inline(tokens = []) {
  return tokens.map((token) => {
    switch (token.type) {
      case "strong": return html`<strong>${inline(token.tokens)}</strong>`;
      case "em": return html`<em>${inline(token.tokens)}</em>`;
      case "del": return html`<del>${inline(token.tokens)}</del>`;
      case "codespan": return html`<code>${plain(token.text)}</code>`;
      case "br": return html`<br />`;
      case "link": return SAFE.test(token.href) ? html`<a href=${token.href} rel="noopener noreferrer" target="_blank">${inline(token.tokens)}</a>` : html`<span>${token.raw}</span>`;
      // Images of other hosts would reveal the reader to these hosts.
      case "image": return html`<span class="dim">[image: ${token.text}]</span>`;
      case "escape": case "text": return token.tokens ? inline(token.tokens) : plain(token.text);
      default: return token.raw;
    }
  });
}
