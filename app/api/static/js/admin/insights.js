// What was asked in the last days, and what the documentation does not answer.

import { el } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { insights, insightsFile } from "./calls.js";
import { byType } from "./days.js";
import { number, share } from "./format.js";
import { nothing, Panel } from "./panel.js";
import { apis, errors, feedback, gaps } from "./reports.js";
import { saveFile } from "./save.js";

const CHOICES = [7, 30, 90];

export class InsightsView {
  node = el("section", { class: "insights", "aria-labelledby": "insights-title" });
  #days = 30;
  #panel = new Panel((found) => this.#report(found));
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
    const again = el("button", { type: "button", class: "quiet", "aria-label": t("reload"), title: t("reload"), onclick: () => this.#load() }, icon("again"));
    this.#head.replaceChildren(
      el("div", {}, el("h2", { id: "insights-title" }, t("insightsTitle")), el("p", {}, t("insightsHint"))),
      el("div", { class: "choices", role: "group", "aria-label": t("period") }, CHOICES.map(choice), again),
    );
    if (this.#panel.data) this.#panel.translate();
  }

  async #choose(days) {
    this.#days = days;
    for (const [index, each] of CHOICES.entries()) {
      this.#head.querySelectorAll("[aria-pressed]")[index].setAttribute("aria-pressed", String(each === days));
    }
    await this.#load();
  }

  async #load() {
    const days = this.#days;
    await this.#panel.load(() => insights(days));
  }

  #report(found) {
    const notes = found.notes.map((note) => el("p", { class: "notice" }, note));
    if (found.questions === 0) return [...notes, nothing(t("noQuestions"), t("noQuestionsHint"))];
    const card = (name, content, wide) => reportCard(name, content, found[name].length && found.days, wide);
    return [
      ...notes,
      tiles(found),
      card("byType", byType(found), true),
      card("gaps", gaps(found.gaps), true),
      card("byApi", apis(found.byApi)),
      card("errors", errors(found.errors)),
      card("feedback", feedback(found.feedback), true),
    ];
  }
}

function tiles(found) {
  const tile = (name, value, hint) => el("div", {}, el("dt", {}, t(name)), el("dd", {}, el("b", {}, value), el("span", {}, hint)));
  return el(
    "dl",
    { class: "tiles" },
    tile("questions", number(found.questions), t("questionsHint", { count: number(found.unanswered) })),
    tile("offTopic", share(found.offTopicShare), t("offTopicHint")),
    tile("cached", share(found.cachedShare), t("cachedHint")),
    tile("gapCount", number(found.gaps.length), t("gapCountHint")),
  );
}

/** A part of the report; with `days` it can be had as CSV. */
function reportCard(name, content, days, wide) {
  const id = `card-${name}`;
  const after = el("div", { role: "status" });
  const save = async (event) => {
    event.currentTarget.disabled = true;
    after.replaceChildren();
    await saveFile(() => insightsFile(days, name)).catch((problem) =>
      after.replaceChildren(el("p", { class: "failed" }, `${t("notSaved")}: ${problem.message}`)),
    );
    button.disabled = false;
  };
  const button = el("button", { type: "button", class: "quiet", "aria-label": t("saveLabel", { name: t(name) }), onclick: save }, icon("download"), "CSV");
  return el(
    "section",
    { class: wide ? "card wide" : "card", "aria-labelledby": id },
    el("header", {}, el("h3", { id }, t(name)), days > 0 && button),
    el("p", { class: "hint" }, t(`${name}Hint`)),
    after,
    content,
  );
}
