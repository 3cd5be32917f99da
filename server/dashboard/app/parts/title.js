// The title and the icon of the page: the screen, the installation, and the number of tasks that wait for people.

import { useEffect } from "../vendor/ui.js";
import { waiting } from "../state/waiting.js";

/** @param {string} name */
const setting = (name) => document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";

/** The settings of the server that distinguish this installation from others. Both are empty without settings. */
export const installation = { name: setting("installation-name"), color: setting("installation-color") };

const icon = /** @type {HTMLLinkElement | null} */ (document.querySelector('link[rel="icon"]'));
const plain = icon?.href ?? "";
/** The largest number that can be read in an icon. */
const MOST = 99;

/** The icon with a number. @param {number} count */
function drawn(count) {
  if (count === 0 && !installation.color) return plain;
  const ground = `<rect width="32" height="32" rx="7" fill="${installation.color || "#2f5bd7"}"/>`;
  const lines = '<path d="M8 9h16M8 16h11M8 23h6" stroke="#fff" stroke-width="3" stroke-linecap="round"/>';
  const text = count > MOST ? `${MOST}+` : String(count);
  const number = `<rect y="11" x="${28 - 8 * text.length}" width="${4 + 8 * text.length}" height="21" rx="6" fill="#b3261e"/><text x="${30 - 4 * text.length}" y="27" font-family="sans-serif" font-weight="700" font-size="15" text-anchor="middle" fill="#fff">${text}</text>`;
  return `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${ground}${lines}${count ? number : ""}</svg>`)}`;
}

/** Names the page after a screen. @param {string} screen */
export function useTitle(screen) {
  const count = waiting.value;
  useEffect(() => {
    document.title = `${count ? `(${count.toLocaleString("en")}) ` : ""}${[screen, installation.name || "Foldwork"].filter(Boolean).join(" · ")}`;
    if (icon) icon.href = drawn(count);
  }, [screen, count]);
}
