// An answer as Markdown, for copying.

import { httpUrl } from "./dom.js";
import { t } from "./i18n.js";
import { sourceName } from "./source.js";

/** The question, the steps, the numbered sources and the related pages as Markdown. */
export function asMarkdown(question, answer) {
  const sources = answer.sources.map((source) => `- [${source.number}] ${markdownLink(sourceName(source), source.pageUrl)}`);
  return [
    `## ${question.replace(/\s+/g, " ")}`,
    ...answer.answer,
    section(t("sources"), sources),
    section(t("related"), answer.relatedUrl.filter(httpUrl).map((url) => `- <${url}>`)),
    section(t("nearest"), answer.nearest.map((page) => `- ${markdownLink(page.title, page.pageUrl)}`)),
    answer.unverified.length > 0 && `${t("unverified")} ${answer.unverified.map((fact) => `\`${fact}\``).join(", ")}`,
  ]
    .filter(Boolean)
    .join("\n\n")
    .concat("\n");
}

function section(heading, items) {
  return items.length ? `### ${heading}\n\n${items.join("\n")}` : null;
}

function markdownLink(name, url) {
  const label = name.replace(/[[\]\\]/g, "\\$&");
  return httpUrl(url) ? `[${label}](<${url}>)` : label;
}
