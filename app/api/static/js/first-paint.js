// Not a module: it runs before the first paint, so that the page does not flash in another theme.
try {
  const theme = localStorage.getItem("apidesk.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage can be blocked in frames on other sites: the system theme applies.
}
