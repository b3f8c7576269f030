// What stands behind an answer, on demand: the structured question, who answered, how long it took.

import { el } from "./dom.js";
import { t } from "./i18n.js";

const FIELDS = ["apiName", "apiUrl", "requestParam", "response", "error", "searchTerms", "traceId"];

/** The answer's `<details>`. */
export function renderDetails(answer) {
  return el(
    "details",
    { class: "details" },
    el("summary", {}, t("details")),
    el("h3", {}, t("understood")),
    definitions([["type", t(answer.type)], ...FIELDS.map((name) => [name, shown(answer.structured[name])])]),
    answer.rounds.length > 0 && el("h3", {}, t("lookedUp")),
    answer.rounds.length > 0 && el("ul", {}, ...answer.rounds.map(round)),
    el("hr"),
    definitions([
      ["answeredBy", answer.answeredBy],
      ["time", times(answer.timings)],
      ["answerId", answer.id],
    ]),
  );
}

function definitions(pairs) {
  const said = pairs.filter(([, value]) => value);
  return el("dl", {}, ...said.flatMap(([name, value]) => [el("dt", {}, t(name)), el("dd", {}, value)]));
}

/** A value of the structured question; null for what says nothing. */
function shown(value) {
  if (value === null || value === undefined || value === "") return null;
  if (Array.isArray(value)) return value.join(" · ");
  if (typeof value !== "object") return String(value);
  return Object.keys(value).length ? el("pre", {}, el("code", {}, JSON.stringify(value, null, 2))) : null;
}

function round({ tool, arguments: given, results, error }) {
  return el("li", {}, el("code", {}, `${tool}(${JSON.stringify(given)})`), ` → ${error ?? results}`);
}

function times({ total, ...steps }) {
  const each = Object.entries(steps).map(([name, count]) => `${name} ${count}`);
  return [t("milliseconds", { count: total }), each.length ? `(${each.join(", ")})` : ""].join(" ");
}
