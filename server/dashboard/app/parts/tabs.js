// Moving between the tabs of a screen with the arrow keys.

/** Chooses the tab beside the focused one. For `onKeyDown` of each tab. @param {KeyboardEvent} event */
export function arrows(event) {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (by === 0) return;
  event.preventDefault();
  const own = /** @type {HTMLElement} */ (event.currentTarget);
  const tabs = [...(own.closest("[role=tablist]")?.querySelectorAll("[role=tab]") ?? [])];
  const next = /** @type {HTMLElement | undefined} */ (tabs.at((tabs.indexOf(own) + by) % tabs.length));
  next?.focus();
  next?.click();
}
