// Icons, drawn as strokes on a 24 by 24 grid.

import { svg } from "./dom.js";

const PATHS = {
  ask: "M12 19V5M5.5 11.5 12 5l6.5 6.5",
  stop: "M7 7h10v10H7z",
  up: "M7 11v9H4v-9zM7 11l4-8c1.7 0 2.6 1.2 2.3 2.7L12.6 9H18a2 2 0 0 1 2 2.4l-1.3 6.9A2 2 0 0 1 16.7 20H7",
  down: "M17 13V4h3v9zM17 13l-4 8c-1.7 0-2.6-1.2-2.3-2.7l.7-3.3H6a2 2 0 0 1-2-2.4l1.3-6.9A2 2 0 0 1 7.3 4H17",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  done: "M5 12.5 10 17.5 19.5 7",
  again: "M20 12a8 8 0 1 1-2.3-5.7M20 3v4.5h-4.5",
  close: "M6 6l12 12M18 6 6 18",
  begin: "M12 5v14M5 12h14",
  theme: "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z",
  download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  empty: "M4 13l2.5-8h11L20 13v6H4zM4 13h5l1 2.5h4l1-2.5h5",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.2 15.2 20.5 20.5",
  question: "M4 5h16v11H11l-5 4v-4H4zM8.5 10.5h7",
  outside: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
};

/** The icon called `name`. It is hidden from screen readers: a label next to it gives its meaning. */
export function icon(name) {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}
