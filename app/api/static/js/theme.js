// Light and dark: the system's, until the reader chooses.

import { browser } from "./store.js";

const root = document.documentElement;

/** The other theme than the one that shows, from now on. */
export function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const shown = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = shown === "dark" ? "light" : "dark";
  browser.set("theme", root.dataset.theme);
}
