// The pages of an answer: first the cited pages with their cited sections, then the related pages.

import { el, link } from "./dom.js";
import { t } from "./i18n.js";
import { withPreview } from "./preview.js";
import { sourceButton } from "./source.js";

/** The pages of an answer under the optional `heading`; null if the answer has no pages. */
export function renderPages(heading, { sources = [], relatedUrl = [], relatedPages = [] }) {
  const cited = Map.groupBy(sources, ({ source, documentId, pageUrl }) => [source, documentId || pageUrl].join());
  const related = relatedPages.map(({ title, pageUrl }) => el("li", {}, link(pageUrl, title)));
  const items = [...Array.from(cited.values(), (sections) => citedPage(sections, relatedUrl)), ...related];
  return items.length ? el("section", { class: "pages" }, el("h3", {}, heading), el("ul", {}, ...items)) : null;
}

/** A page with its cited sections. If `pageUrls` contains the URL of the first section without its anchor, the title
 *  of the page links there: to `…/guide`, for example, if the section is `…/guide#errors`. */
function citedPage(sources, pageUrls) {
  const [{ title, pageUrl }] = sources;
  const sections = sources.map((source) =>
    el("li", {}, sourceButton(source), withPreview(link(source.pageUrl, source.section || t("pageStart")), source)),
  );
  const page = pageUrls.find((url) => pageUrl.startsWith(`${url}#`)) ?? pageUrl;
  return el("li", {}, link(page, title), el("ul", { class: "sections" }, ...sections));
}
