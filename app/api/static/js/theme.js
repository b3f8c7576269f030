// The theme, light or dark. The system theme applies until the user chooses one.

import { browser } from "./store.js";

const root = document.documentElement;

/** Switch to the other theme and remember the choice. */
export function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const shown = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = shown === "dark" ? "light" : "dark";
  browser.set("theme", root.dataset.theme);
}
