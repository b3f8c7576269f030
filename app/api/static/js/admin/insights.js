// The insights report: questions of the last days and gaps of the documentation.

import { el } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { getInsights, getInsightsCsv } from "./calls.js";
import { questionsByDay } from "./days.js";
import { number, share } from "./format.js";
import { emptyState, Panel } from "./panel.js";
import { apis, errors, feedback, gaps } from "./reports.js";
import { saveFile } from "./save.js";

const PERIOD_DAYS = [7, 30, 90];

export class InsightsView {
  node = el("section", { class: "insights", "aria-labelledby": "insights-title" });
  #days = 30;
  #panel = new Panel((report) => this.#render(report));
  #head = el("header", { class: "head" });

  constructor() {
    this.node.append(this.#head, this.#panel.node);
  }

  show() {
    if (this.#panel.data === null) this.#load();
  }

  hide() {}

  translate() {
    const choice = (days) =>
      el(
        "button",
        { type: "button", class: "quiet", "aria-pressed": String(days === this.#days), onclick: () => this.#choose(days) },
        t("lastDays", { days }),
      );
    const reloadButton = el("button", { type: "button", class: "quiet", "aria-label": t("reload"), title: t("reload"), onclick: () => this.#load() }, icon("again"));
    this.#head.replaceChildren(
      el("div", {}, el("h2", { id: "insights-title" }, t("insightsTitle")), el("p", {}, t("insightsHint"))),
      el("div", { class: "choices", role: "group", "aria-label": t("period") }, PERIOD_DAYS.map(choice), reloadButton),
    );
    if (this.#panel.data) this.#panel.translate();
  }

  async #choose(days) {
    this.#days = days;
    for (const [index, each] of PERIOD_DAYS.entries()) {
      this.#head.querySelectorAll("[aria-pressed]")[index].setAttribute("aria-pressed", String(each === days));
    }
    await this.#load();
  }

  async #load() {
    const days = this.#days;
    await this.#panel.load(() => getInsights(days));
  }

  #render(report) {
    const notes = report.notes.map((note) => el("p", { class: "notice" }, note));
    if (report.questions === 0) return [...notes, emptyState(t("noQuestions"), t("noQuestionsHint"))];
    const card = (name, content, wide) => reportCard(name, content, report[name].length && report.days, wide);
    return [
      ...notes,
      tiles(report),
      card("byType", questionsByDay(report), true),
      card("gaps", gaps(report.gaps), true),
      card("byApi", apis(report.byApi)),
      card("errors", errors(report.errors)),
      card("feedback", feedback(report.feedback), true),
    ];
  }
}

function tiles(report) {
  const tile = (name, value, hint) => el("div", {}, el("dt", {}, t(name)), el("dd", {}, el("b", {}, value), el("span", {}, hint)));
  return el(
    "dl",
    { class: "tiles" },
    tile("questions", number(report.questions), t("questionsHint", { count: number(report.unanswered) })),
    tile("offTopic", share(report.offTopicShare), t("offTopicHint")),
    tile("cached", share(report.cachedShare), t("cachedHint")),
    tile("gapCount", number(report.gaps.length), t("gapCountHint")),
  );
}

/** A card of the report. If `days` is given, the card has a button that saves the table as CSV. */
function reportCard(name, content, days, wide) {
  const id = `card-${name}`;
  const result = el("div", { role: "status" });
  const save = async (event) => {
    event.currentTarget.disabled = true;
    result.replaceChildren();
    await saveFile(() => getInsightsCsv(days, name)).catch((problem) =>
      result.replaceChildren(el("p", { class: "failed" }, `${t("notSaved")}: ${problem.message}`)),
    );
    button.disabled = false;
  };
  const button = el("button", { type: "button", class: "quiet", "aria-label": t("saveLabel", { name: t(name) }), onclick: save }, icon("download"), "CSV");
  return el(
    "section",
    { class: wide ? "card wide" : "card", "aria-labelledby": id },
    el("header", {}, el("h3", { id }, t(name)), days > 0 && button),
    el("p", { class: "hint" }, t(`${name}Hint`)),
    result,
    content,
  );
}
