// Not a module: it runs before the first paint, so that a chosen theme does not flash.
try {
  const theme = localStorage.getItem("apidesk.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // A frame of another site may be kept from storage: the system's theme it is.
}
