// An answer as Markdown, and copying to the clipboard.

import { httpUrl } from "./dom.js";
import { t } from "./i18n.js";
import { sourceName } from "./source.js";

/** The question, the numbered steps, the numbered sources and the related pages as Markdown. */
export function asMarkdown(question, answer) {
  const several = answer.answer.length > 1;
  const steps = answer.answer.map((step, index) => (several ? `${index + 1}. ${indent(step)}` : step));
  const sources = answer.sources.map((source) => `- [${source.number}] ${markdownLink(sourceName(source), source.pageUrl)}`);
  return [
    `## ${question.replace(/\s+/g, " ")}`,
    steps.join("\n"),
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

function indent(step) {
  return step.replaceAll("\n", "\n   ");
}

function markdownLink(name, url) {
  const label = name.replace(/[[\]\\]/g, "\\$&");
  return httpUrl(url) ? `[${label}](<${url}>)` : label;
}

/** Copy `text`. Without TLS there is no clipboard API, so execCommand is used. Throws on failure. */
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("copy");
}
