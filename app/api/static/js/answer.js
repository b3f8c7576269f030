// The parts of a complete answer besides its steps.

import { asMarkdown, copy } from "./clipboard.js";
import { renderDetails } from "./details.js";
import { el, link } from "./dom.js";
import { renderFeedback } from "./feedback.js";
import { icon } from "./icons.js";
import { has, t } from "./i18n.js";
import { openSource, sourceName } from "./source.js";

/** `refused` (off topic), `uncovered` (not covered by the documentation) or `answered`. */
export function outcome(answer) {
  if (answer.type === "unknown") return "refused";
  return answer.sources.length ? "answered" : "uncovered";
}

/** The parts below the steps that the answer has. */
export function renderRest(question, answer) {
  const kind = outcome(answer);
  const feedback = renderFeedback(answer.id);
  return [
    unverified(answer.unverified),
    degraded(answer.degraded),
    sources(answer.sources),
    pages(t("related"), answer.relatedUrl.map((url) => ({ title: pageTitle(url, answer), pageUrl: url }))),
    pages(t("nearest"), answer.nearest),
    el(
      "div",
      { class: "foot" },
      kind === "answered" && confidence(answer.confidence),
      el("div", { class: "actions" }, copyButton(question, answer), ...feedback.buttons),
    ),
    feedback.result,
    renderDetails(answer),
  ].filter(Boolean);
}

function unverified(facts) {
  if (!facts.length) return null;
  const codes = facts.map((fact) => el("li", {}, el("code", {}, fact)));
  return el("div", { class: "notice doubtful" }, el("p", {}, t("unverified")), el("ul", {}, ...codes));
}

/** The notice of a degraded answer: the sentence for a known code, any other text as it is. */
function degraded(reason) {
  if (!reason) return null;
  const name = `degraded_${reason}`;
  return el("p", { class: "notice" }, el("strong", {}, t("degraded")), ` ${has(name) ? t(name) : reason}`);
}

function sources(list) {
  if (!list.length) return null;
  const items = list.map((source) =>
    el(
      "li",
      {},
      el(
        "button",
        { type: "button", class: "source-button", "aria-haspopup": "dialog", onclick: () => openSource(source) },
        el("span", { class: "number" }, String(source.number)),
        el("span", { class: "source-name" }, sourceName(source)),
      ),
    ),
  );
  return el("section", { class: "sources" }, el("h3", {}, t("sources")), el("ul", {}, ...items));
}

function pages(heading, list) {
  if (!list.length) return null;
  const items = list.map(({ title, pageUrl }) => el("li", {}, link(pageUrl, title)));
  return el("section", { class: "pages" }, el("h3", {}, heading), el("ul", {}, ...items));
}

/** The title of the page at `url` if it is a source of the answer, else the URL. */
function pageTitle(url, answer) {
  return answer.sources.find((source) => source.pageUrl === url)?.title ?? url;
}

function confidence(level) {
  const explanation = t({ high: "whyHigh", medium: "whyMedium", low: "whyLow" }[level]);
  return el(
    "details",
    { class: `confidence ${level}` },
    el("summary", {}, `${t("confidence")} `, el("strong", {}, t(level))),
    el("p", {}, explanation),
  );
}

function copyButton(question, answer) {
  const label = el("span", {}, t("copy"));
  const button = el("button", { type: "button", class: "quiet" }, icon("copy"), label);
  button.addEventListener("click", async () => {
    const copied = await copy(asMarkdown(question, answer)).then(() => true, () => false);
    label.textContent = t(copied ? "copied" : "copyFailed");
    button.querySelector("svg").replaceWith(icon(copied ? "done" : "copy"));
  });
  return button;
}
