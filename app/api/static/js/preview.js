// The preview of a source, which is shown while the pointer is over a link or a citation. It is a
// shortcut: the same text is in the dialog that a citation opens.

import { el } from "./dom.js";
import { renderMarkdown } from "./markdown.js";
import { sourceName } from "./source.js";

const SHOW_AFTER_MS = 300;
const HIDE_AFTER_MS = 200;

let shown = null;
let timer = 0;

/** Make `node` show the text of `source` while the mouse pointer is over it. Returns `node`. */
export function withPreview(node, source) {
  node.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && schedule(() => show(node, source), SHOW_AFTER_MS));
  node.addEventListener("pointerleave", () => schedule(hide, HIDE_AFTER_MS));
  node.addEventListener("click", hide);
  return node;
}

function schedule(action, delay) {
  clearTimeout(timer);
  timer = setTimeout(action, delay);
}

function show(node, source) {
  hide();
  if (!node.isConnected) return;
  shown = el(
    "div",
    { class: "preview", "aria-hidden": "true", onpointerenter: () => clearTimeout(timer), onpointerleave: () => schedule(hide, HIDE_AFTER_MS) },
    el("p", { class: "section" }, sourceName(source)),
    el("div", { class: "prose" }, renderMarkdown(source.text)),
  );
  document.body.append(shown);
  place(shown, node.getBoundingClientRect());
}

/** Place the preview above or below its link, wherever there is more room. */
function place(preview, anchor) {
  const above = anchor.top > innerHeight - anchor.bottom;
  const left = Math.max(16, Math.min(anchor.left, innerWidth - preview.offsetWidth - 16));
  preview.style.setProperty("left", `${left}px`);
  preview.style.setProperty(above ? "bottom" : "top", `${above ? innerHeight - anchor.top + 6 : anchor.bottom + 6}px`);
  preview.style.setProperty("max-height", `${Math.min(320, (above ? anchor.top : innerHeight - anchor.bottom) - 16)}px`);
}

function hide() {
  clearTimeout(timer);
  shown?.remove();
  shown = null;
}

addEventListener("keydown", (event) => event.key === "Escape" && hide());
addEventListener("scroll", hide, { passive: true });
