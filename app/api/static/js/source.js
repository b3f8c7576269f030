// The dialog that shows a source.

import { el, link } from "./dom.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";
import { renderMarkdown } from "./markdown.js";

/** The display name of a source: the titles of the page and the section. */
export function sourceName({ title, section }) {
  return section ? `${title} › ${section}` : title;
}

/** A button with the number of a source, which shows the text of the source. */
export function sourceButton(source) {
  return el(
    "button",
    {
      type: "button",
      class: "citation",
      "aria-haspopup": "dialog",
      "aria-label": t("source", { number: source.number, title: sourceName(source) }),
      onclick: () => openSource(source),
    },
    String(source.number),
  );
}

/** Show the text of a source with a link to its page. Closing restores the focus. */
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
