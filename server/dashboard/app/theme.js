// Chooses the colors before the first paint. A module would run after the first paint.
const theme = localStorage.getItem("foldwork.theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
// Over plain HTTP under a name other than localhost, browsers do not provide `randomUUID`.
crypto.randomUUID ??= () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const text = [...bytes.with(6, (bytes[6] & 0x0f) | 0x40).with(8, (bytes[8] & 0x3f) | 0x80)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return /** @type {any} */ (text.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"));
};
