// The parts of a complete answer besides its steps.

import { asMarkdown } from "./answer-markdown.js";
import { copyButton } from "./copy.js";
import { renderDetails } from "./details.js";
import { el } from "./dom.js";
import { renderFeedback } from "./feedback.js";
import { followUps } from "./follow-ups.js";
import { has, t } from "./i18n.js";
import { renderPages } from "./pages.js";

/** `refused` (off topic), `uncovered` (not covered by the documentation) or `answered`. */
export function outcome(answer) {
  if (answer.type === "unknown" && !answer.nearest.length) return "refused";
  return answer.sources.length ? "answered" : "uncovered";
}

/** Whether to collapse all steps but the first. Quotes with low confidence are often about something else. */
export function foldsQuotes(answer) {
  return outcome(answer) === "answered" && answer.confidence === "low" && answer.answeredBy === "extractive";
}

/** The notice above the steps, for medium and low confidence. */
export function renderDoubt(answer) {
  if (outcome(answer) !== "answered" || answer.confidence === "high") return [];
  return [el("p", { class: "notice doubtful" }, t(`doubt_${answer.confidence}`))];
}

/** The parts below the steps; empty parts are left out. `onAsk` receives a follow-up question that was clicked. */
export function renderRest(question, answer, onAsk) {
  const feedback = renderFeedback(answer.id);
  return [
    unverified(answer.unverified),
    degraded(answer.degraded),
    pagesOf(answer),
    el("div", { class: "actions" }, copyButton("copy", () => asMarkdown(question, answer)), ...feedback.buttons),
    feedback.result,
    renderDetails(answer),
    followUps(answer, onAsk),
  ].filter(Boolean);
}

function pagesOf(answer) {
  if (!answer.sources.length) return renderPages(t("nearest"), { relatedPages: answer.nearest });
  return renderPages(t("pages"), answer);
}

function unverified(facts) {
  if (!facts.length) return null;
  const codes = facts.map((fact) => el("li", {}, el("code", {}, fact)));
  return el("div", { class: "notice doubtful" }, el("p", {}, t("unverified")), el("ul", {}, ...codes));
}

/** The notice of a degraded answer: the sentence for a known reason code, otherwise the code itself. */
function degraded(reason) {
  if (!reason) return null;
  const name = `degraded_${reason}`;
  return el("p", { class: "notice" }, el("strong", {}, t("degraded")), ` ${has(name) ? t(name) : reason}`);
}
