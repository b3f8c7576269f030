// An answer as Markdown, and the way to the clipboard.

import { webAddress } from "./dom.js";
import { t } from "./i18n.js";
import { sourceName } from "./source.js";

/** The question, the numbered steps, the sources under their numbers and the related pages. */
export function asMarkdown(question, answer) {
  const several = answer.answer.length > 1;
  const steps = answer.answer.map((step, index) => (several ? `${index + 1}. ${indented(step)}` : step));
  const sources = answer.sources.map((source) => `- [${source.number}] ${linked(sourceName(source), source.pageUrl)}`);
  return [
    `## ${question.replace(/\s+/g, " ")}`,
    steps.join("\n"),
    listed(t("sources"), sources),
    listed(t("related"), answer.relatedUrl.filter(webAddress).map((url) => `- <${url}>`)),
    listed(t("nearest"), answer.nearest.map((page) => `- ${linked(page.title, page.pageUrl)}`)),
    answer.unverified.length > 0 && `${t("unverified")} ${answer.unverified.map((fact) => `\`${fact}\``).join(", ")}`,
  ]
    .filter(Boolean)
    .join("\n\n")
    .concat("\n");
}

function listed(heading, items) {
  return items.length ? `### ${heading}\n\n${items.join("\n")}` : null;
}

function indented(step) {
  return step.replaceAll("\n", "\n   ");
}

function linked(name, url) {
  const label = name.replace(/[[\]\\]/g, "\\$&");
  return webAddress(url) ? `[${label}](<${url}>)` : label;
}

/** Copy `text`. Pages without TLS have no clipboard API; the old way is left to them. Throws. */
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
