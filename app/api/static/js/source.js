// A quoted source, in a dialog.

import { el, link } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";
import { renderMarkdown } from "./markdown.js";

/** What a source is called: its page and the section there. */
export function sourceName({ title, section }) {
  return section ? `${title} › ${section}` : title;
}

/** Show the quoted text with its page. Closing gives the focus back to where it was. */
export function openSource(source) {
  const dialog = el(
    "dialog",
    {
      class: "source",
      "aria-labelledby": "source-title",
      onclose: () => dialog.remove(),
      onclick: (event) => event.target === dialog && dialog.close(),
    },
    el(
      "div",
      { class: "sheet" },
      el(
        "header",
        {},
        el("span", { class: "number", "aria-hidden": "true" }, String(source.number)),
        el(
          "div",
          {},
          el("h2", { id: "source-title" }, source.title),
          source.section && el("p", { class: "section" }, source.section),
        ),
        el("button", { type: "button", class: "quiet", "aria-label": t("close"), onclick: () => dialog.close() }, icon("close")),
      ),
      el("div", { class: "quote prose", tabindex: "0" }, renderMarkdown(source.text)),
      page(source),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

function page({ pageUrl, apiUrl }) {
  return el(
    "footer",
    {},
    apiUrl && el("code", {}, apiUrl),
    pageUrl && link(pageUrl, t("openPage"), icon("outside")),
  );
}
