// The lists of the insights report: gaps, APIs, errors, feedback.

import { el, link } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { shareBar } from "./chart.js";
import { day, moment, number } from "./format.js";
import { emptyState } from "./panel.js";
import { table } from "./table.js";

const MAX_VISIBLE_ROWS = 10;

export function gaps(rows) {
  if (!rows.length) return emptyState(t("noGaps"), t("noGapsHint"));
  return el("ol", { class: "gaps", role: "list" }, collapsible(rows.map(gap)));
}

function gap({ question, size, wordings, missing, nearest, firstAsked, lastAsked }) {
  const others = wordings.filter((wording) => wording !== question);
  return el(
    "li",
    {},
    el("p", { class: "size" }, el("b", {}, number(size)), " ", el("span", {}, t("asked"))),
    el(
      "div",
      {},
      el("h4", {}, question),
      missing.length > 0 && el("p", { class: "missing" }, t("missing"), " ", missing.flatMap((word) => [el("code", {}, word), " "])),
      nearest && el("p", {}, t("nearestPage"), " ", link(nearest.pageUrl, nearest.title || nearest.pageUrl)),
      el("p", { class: "hint" }, t("askedBetween", { first: day(firstAsked), last: day(lastAsked) })),
      others.length > 0 &&
        el(
          "details",
          {},
          el("summary", {}, t("wordings", { count: number(others.length) })),
          el("ul", {}, others.map((wording) => el("li", {}, wording))),
        ),
    ),
  );
}

export function apis(rows) {
  const totals = [...sumByApi(rows).values()];
  if (!totals.length) return emptyState(t("noApis"));
  const maxQuestions = Math.max(...totals.map(({ questions }) => questions));
  return barTable(t("byApi"), totals, [
    { name: t("api"), head: true, cell: ({ apiName, apiUrl }) => [apiName || apiUrl, apiName && apiUrl && el("code", {}, apiUrl)].filter(Boolean) },
    { name: t("questions"), kind: "numeric", cell: ({ questions }) => [number(questions), shareBar(questions / maxQuestions)] },
    { name: t("unanswered"), kind: "numeric", cell: ({ unanswered }) => (unanswered ? el("span", { class: "bad" }, number(unanswered)) : "0") },
  ]);
}

/** The daily rows summed by API, in order of first appearance. */
function sumByApi(rows) {
  const totals = new Map();
  for (const { apiName, apiUrl, questions, unanswered } of rows) {
    const key = JSON.stringify([apiName, apiUrl]);
    const sum = totals.get(key) ?? { apiName, apiUrl, questions: 0, unanswered: 0 };
    sum.questions += questions;
    sum.unanswered += unanswered;
    totals.set(key, sum);
  }
  return totals;
}

export function errors(rows) {
  if (!rows.length) return emptyState(t("noErrors"));
  const maxQuestions = Math.max(...rows.map(({ questions }) => questions));
  return barTable(t("errors"), rows, [
    { name: t("error"), head: true, cell: ({ error }) => el("code", {}, error) },
    { name: t("questions"), kind: "numeric", cell: ({ questions }) => [number(questions), shareBar(questions / maxQuestions)] },
  ]);
}

export function feedback(rows) {
  if (!rows.length) return emptyState(t("noFeedback"), t("noFeedbackHint"));
  return el("ul", { class: "ratings", role: "list" }, collapsible(rows.map(rating)));
}

function rating({ askedAt, question, confidence, score, comment }) {
  const helped = score > 0;
  return el(
    "li",
    {},
    el("span", { class: helped ? "thumb good" : "thumb bad" }, icon(helped ? "up" : "down"), el("span", { class: "unseen" }, t(helped ? "helped" : "helpedNot"))),
    el(
      "div",
      {},
      el("h4", {}, question),
      comment && el("blockquote", {}, comment),
      el("p", { class: "hint" }, moment(askedAt), confidence && ` · ${t("confidence")} ${t(confidence)}`),
    ),
  );
}

function barTable(label, rows, columns) {
  const tables = [rows.slice(0, MAX_VISIBLE_ROWS), rows.slice(MAX_VISIBLE_ROWS)].filter((part) => part.length).map((part) => table(label, columns, part));
  return el("div", {}, tables[0], tables[1] && el("details", {}, el("summary", {}, t("more", { count: number(rows.length - MAX_VISIBLE_ROWS) })), tables[1]));
}

/** The first items, and a button that shows the others. */
function collapsible(items) {
  if (items.length <= MAX_VISIBLE_ROWS) return items;
  const rest = items.slice(MAX_VISIBLE_ROWS);
  const show = () => {
    row.replaceWith(...rest);
    rest[0].tabIndex = -1;
    rest[0].focus();
  };
  const row = el("li", { class: "more" }, el("button", { type: "button", onclick: show }, t("more", { count: number(rest.length) })));
  return [...items.slice(0, MAX_VISIBLE_ROWS), row];
}
