// Styles of single screens, loaded with the screen that needs them.

import { useEffect } from "../vendor/ui.js";

/** Loads `style/<name>.css` once. @param {string} name */
export function loadStyle(name) {
  const href = new URL(`../style/${name}.css`, import.meta.url).href;
  if ([...document.styleSheets].some((sheet) => sheet.href === href) || document.querySelector(`link[href="${href}"]`)) return;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = href;
  document.head.append(link);
}

/** Loads a style when a screen is first shown. @param {string} name */
export function useStyle(name) {
  useEffect(() => loadStyle(name), [name]);
}
