// JSON without loss: numbers that a double cannot hold keep their text.

/** A number as it was written. `String(number)` is its text. */
export class ExactNumber {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }

  toJSON() {
    return JSON.rawJSON(this.text);
  }
}

/** @param {string} source @param {number} value */
function isExact(source, value) {
  if (!Number.isFinite(value)) return false;
  if (Number.isSafeInteger(value) && /^-?\d+$/.test(source)) return true;
  // A fraction is exact enough if the shortest text of the double has all its digits.
  const digits = (/** @type {string} */ text) => text.replace(/e.*$/i, "").replace(/[-.]/g, "").replace(/^0+/, "").replace(/0+$/, "");
  return digits(source) === digits(String(value));
}

/** @param {string} text @returns {any} */
export function parse(text) {
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && !isExact(context.source, value) ? new ExactNumber(context.source) : value);
}

/** @param {unknown} value @param {number} [indent] */
export function stringify(value, indent) {
  return JSON.stringify(value, null, indent);
}
