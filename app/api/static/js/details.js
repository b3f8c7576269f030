// The details of an answer: the structured question, the model that answered, and the time taken.

import { el } from "./dom.js";
import { t } from "./i18n.js";
import { footerFields } from "./text.js";

const QUESTION_FIELDS = ["apiName", "apiUrl", "requestParam", "response", "error", "searchTerms", "traceId"];

/** The footer fields that are shown elsewhere on the page. */
const SHOWN_ELSEWHERE = ["confidence", "type"];

/** The `<details>` element of an answer. */
export function renderDetails(answer) {
  return el(
    "details",
    { class: "details" },
    el("summary", {}, t("details")),
    el("h3", {}, t("understood")),
    definitions([["type", !isUncovered(answer) && t(answer.type)], ...QUESTION_FIELDS.map((name) => [name, formatValue(answer.structured[name])])]),
    answer.rounds.length > 0 && el("h3", {}, t("lookedUp")),
    answer.rounds.length > 0 && el("ul", {}, ...answer.rounds.map(toolCall)),
    el("hr"),
    definitions([
      ["confidence", answer.sources.length > 0 && t(answer.confidence)],
      ...footerFields.filter((name) => !SHOWN_ELSEWHERE.includes(name)).map((name) => [name, formatValue(answer[name])]),
      ["time", formatTimings(answer.timings)],
      ["answerId", answer.id],
    ]),
  );
}

/** Whether the documents do not cover an on-topic question. Its type, `unknown`, would be shown as "off topic". */
function isUncovered(answer) {
  return answer.type === "unknown" && answer.nearest.length > 0;
}

function definitions(pairs) {
  const present = pairs.filter(([, value]) => value);
  return el("dl", {}, ...present.flatMap(([name, value]) => [el("dt", {}, t(name)), el("dd", {}, value)]));
}

/** A value of the structured question or of the footer; null for an empty value. */
function formatValue(value) {
  if (value === null || value === undefined || value === "") return null;
  if (Array.isArray(value)) return value.join(" · ");
  if (typeof value !== "object") return String(value);
  return Object.keys(value).length ? el("pre", {}, el("code", {}, JSON.stringify(value, null, 2))) : null;
}

function toolCall({ tool, arguments: args, results, error }) {
  return el("li", {}, el("code", {}, `${tool}(${JSON.stringify(args)})`), ` → ${error ?? results}`);
}

function formatTimings({ total, ...steps }) {
  const each = Object.entries(steps).map(([name, count]) => `${name} ${count}`);
  return [t("milliseconds", { count: total }), each.length ? `(${each.join(", ")})` : ""].join(" ");
}
