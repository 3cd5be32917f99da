// Places in JSON text that may be unfinished: the place of the cursor, and the range of the value of a path.

/** @typedef {{type: string, from: number, to: number, text: string}} Token */
/** @typedef {{path: (string | number)[], isKey: boolean, inString: Token | null}} Place */

const TOKEN = /"(?:[^"\\\n]|\\.)*"?|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/** @param {string} text @returns {Token[]} */
function tokens(text) {
  return [...text.matchAll(TOKEN)].map((match) => {
    const [written] = match;
    const type = written[0] === '"' ? "string" : "{}[]:,".includes(written) ? written : "literal";
    return { type, from: match.index, to: match.index + written.length, text: type === "string" ? unquoted(written) : written };
  });
}

/** @param {string} written */
function unquoted(written) {
  try { return JSON.parse(written); } catch { return written.slice(1); }
}

/** Returns the place of a cursor. @param {string} text @param {number} position @returns {Place} */
export function placeAt(text, position) {
  /** @type {{list: boolean, key: string | number, isKey: boolean}[]} */
  const stack = [];
  let inString = null;
  for (const token of tokens(text)) {
    if (token.from >= position) break;
    const top = stack.at(-1);
    const isClosed = token.type !== "string" || (token.to - token.from > 1 && text[token.to - 1] === '"');
    if (token.type === "string" && (position < token.to || !isClosed)) { inString = token; break; }
    if (token.type === "{" || token.type === "[") stack.push({ list: token.type === "[", key: 0, isKey: token.type === "{" });
    else if (token.type === "}" || token.type === "]") stack.pop();
    else if (token.type === ":" && top) top.isKey = false;
    else if (token.type === "," && top) { if (top.list) top.key = Number(top.key) + 1; else top.isKey = true; }
    else if (token.type === "string" && top?.isKey) top.key = token.text;
  }
  const top = stack.at(-1);
  const isKey = top?.isKey ?? false;
  const path = stack.map(({ key }) => key);
  return { path: isKey ? path.slice(0, -1) : path, isKey, inString };
}

/**
 * Returns the range of the value of a path, or of its name if the name is an operator or the value is an object or a
 * list. If the text has no such path, returns the range of the nearest path above.
 *
 * @param {string} text @param {string[]} path @returns {{from: number, to: number}}
 */
export function rangeOf(text, path) {
  const all = tokens(text);
  let next = 0;
  let best = { from: all[0]?.from ?? 0, to: all[0]?.to ?? text.length, depth: -1 };
  /** @param {(string | number)[]} here @param {Token | null} name */
  const value = (here, name) => {
    const token = all[next++];
    if (!token) return;
    const depth = here.length;
    const isOnPath = here.every((segment, index) => String(segment) === path[index]);
    const isNested = token.type === "{" || token.type === "[";
    if (isOnPath && depth > best.depth && depth > 0) {
      const marked = name && (isNested || name.text.startsWith("$")) ? name : token;
      best = { from: marked.from, to: marked.to, depth };
    }
    if (!isNested) return;
    for (let index = 0; next < all.length && all[next].type !== "}" && all[next].type !== "]"; index += 1) {
      if (token.type === "[") value([...here, index], null);
      else {
        const key = all[next++];
        if (all[next]?.type === ":") next += 1;
        value([...here, key.text], key);
      }
      if (all[next]?.type === ",") next += 1;
    }
    next += 1;
  };
  value([], null);
  return { from: best.from, to: Math.max(best.to, best.from + 1) };
}
