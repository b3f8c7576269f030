// The steps of an answer: rendered Markdown with citation buttons and marks for unverified facts.

import { el } from "./dom.js";
import { showErrorCards } from "./error-cards.js";
import { t } from "./i18n.js";
import { renderMarkdown } from "./markdown.js";
import { withPreview } from "./preview.js";
import { sourceButton } from "./source.js";

/** A step. `sources` maps citation numbers to sources. If steps are numbered, the number is part of the text. */
export function renderStep({ text, unverified, supported }, sources) {
  const body = renderMarkdown(text, decorator(sources, unverified));
  showErrorCards(body);
  const doubt = supported ? null : el("p", { class: "doubt" }, t("unsupported"));
  return el("div", { class: supported ? "step" : "step unsupported" }, el("div", { class: "prose" }, body), doubt);
}

/** A function that converts text to nodes: facts become marks and, outside code, `[n]` a citation. */
function decorator(sources, facts) {
  const marks = facts.length > 0 ? new RegExp(`(${byLength(facts).map(escaped).join("|")})`) : null;
  return (piece, plain) =>
    (marks ? piece.split(marks) : [piece]).flatMap((part, index) => {
      if (index % 2) return [unverifiedMark(part)];
      return plain ? withCitations(part, sources) : [part];
    });
}

/** Keeps each citation together with the end of the preceding text, so that no line starts with a citation. */
function withCitations(text, sources) {
  const nodes = [];
  text.split(/\[(\d+)\]/).forEach((part, index) => {
    const source = index % 2 ? sources.get(Number(part)) : null;
    if (!source) return nodes.push(index % 2 ? `[${part}]` : part);
    const [, rest, end] = /^(.*?)(\S{0,2} ?)$/s.exec(nodes.pop());
    nodes.push(rest, el("span", { class: "together" }, end, withPreview(sourceButton(source), source)));
  });
  return nodes.filter((node) => node !== "");
}

function unverifiedMark(text) {
  return el("mark", {}, text, el("span", { class: "unseen" }, t("unverifiedMark")));
}

function byLength(facts) {
  return [...facts].sort((a, b) => b.length - a.length);
}

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
