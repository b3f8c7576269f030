// The lists of the report: gaps, APIs, errors, feedback.

import { el, link } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { shareBar } from "./chart.js";
import { day, moment, number } from "./format.js";
import { nothing } from "./panel.js";
import { table } from "./table.js";

const SHOWN = 10;

export function gaps(found) {
  if (!found.length) return nothing(t("noGaps"), t("noGapsHint"));
  return el("ol", { class: "gaps", role: "list" }, more(found.map(gap)));
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
  const found = [...merged(rows).values()];
  if (!found.length) return nothing(t("noApis"));
  const most = Math.max(...found.map(({ questions }) => questions));
  return barTable(t("byApi"), found, [
    { name: t("api"), head: true, cell: ({ apiName, apiUrl }) => [apiName || apiUrl, apiName && apiUrl && el("code", {}, apiUrl)].filter(Boolean) },
    { name: t("questions"), kind: "numeric", cell: ({ questions }) => [number(questions), shareBar(questions / most)] },
    { name: t("unanswered"), kind: "numeric", cell: ({ unanswered }) => (unanswered ? el("span", { class: "bad" }, number(unanswered)) : "0") },
  ]);
}

/** The rows of each day put together by API, in the order that they come in. */
function merged(rows) {
  const found = new Map();
  for (const { apiName, apiUrl, questions, unanswered } of rows) {
    const key = JSON.stringify([apiName, apiUrl]);
    const sum = found.get(key) ?? { apiName, apiUrl, questions: 0, unanswered: 0 };
    sum.questions += questions;
    sum.unanswered += unanswered;
    found.set(key, sum);
  }
  return found;
}

export function errors(found) {
  if (!found.length) return nothing(t("noErrors"));
  const most = Math.max(...found.map(({ questions }) => questions));
  return barTable(t("errors"), found, [
    { name: t("error"), head: true, cell: ({ error }) => el("code", {}, error) },
    { name: t("questions"), kind: "numeric", cell: ({ questions }) => [number(questions), shareBar(questions / most)] },
  ]);
}

export function feedback(found) {
  if (!found.length) return nothing(t("noFeedback"), t("noFeedbackHint"));
  return el("ul", { class: "ratings", role: "list" }, more(found.map(rated)));
}

function rated({ askedAt, question, confidence, score, comment }) {
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
  const tables = [rows.slice(0, SHOWN), rows.slice(SHOWN)].filter((part) => part.length).map((part) => table(label, columns, part));
  return el("div", {}, tables[0], tables[1] && el("details", {}, el("summary", {}, t("more", { count: number(rows.length - SHOWN) })), tables[1]));
}

/** The first items, and a button that shows the others. */
function more(items) {
  if (items.length <= SHOWN) return items;
  const rest = items.slice(SHOWN);
  const show = () => {
    row.replaceWith(...rest);
    rest[0].tabIndex = -1;
    rest[0].focus();
  };
  const row = el("li", { class: "more" }, el("button", { type: "button", onclick: show }, t("more", { count: number(rest.length) })));
  return [...items.slice(0, SHOWN), row];
}
