// Copying to the clipboard.

import { el } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";

/** A button that copies the text that `read` returns, and shows whether copying worked. */
export function copyButton(name, read) {
  const label = el("span", {}, t(name));
  const button = el("button", { type: "button", class: "quiet copy" }, icon("copy"), label);
  button.addEventListener("click", async () => {
    const copied = await copy(read()).then(() => true, () => false);
    label.textContent = t(copied ? "copied" : "copyFailed");
    button.querySelector("svg").replaceWith(icon(copied ? "done" : "copy"));
  });
  return button;
}

/** Copy `text`. Without TLS there is no clipboard API, so execCommand is used. Throws on failure. */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("copy");
}
