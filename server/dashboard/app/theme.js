// Chooses the colours before the first paint. A module would run after it.
const theme = localStorage.getItem("foldwork.theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
