// One question and its answer, from the first event to the last.

import { foldsQuotes, outcome, renderDoubt, renderRest } from "./answer.js";
import { el } from "./dom.js";
import { locale, t } from "./i18n.js";
import { renderProblem } from "./problem.js";
import { renderStep } from "./steps.js";
import { StreamedAnswer } from "./streamed-answer.js";

/** Time from the first step until steps are shown. An answer of quotes is usually complete by then, so its doubtful
 *  quotes are collapsed before the user sees them. */
const SHOW_STEPS_AFTER_MS = 400;

let count = 0;

export class Turn {
  #streamed = new StreamedAnswer();
  #title = el("p", { class: "outcome" });
  #progress = el("p", { class: "progress" });
  #doubt = el("div", { class: "doubts" });
  #steps = el("div", { class: "steps" });
  #place = el("div", {}, this.#steps);
  #rest = el("div", { class: "rest" });
  #timer = null;

  /** `onAsk` receives a question that the user chooses below the answer. */
  constructor(question, onAsk) {
    this.question = question;
    this.onAsk = onAsk;
    this.answer = null;
    const id = `question-${++count}`;
    this.#title.hidden = true;
    this.body = el("div", { class: "answer" }, this.#title, this.#doubt, this.#place, this.#progress, this.#rest);
    this.node = el("article", { class: "turn", "aria-labelledby": id }, el("h2", { class: "question", id }, question), this.body);
  }

  /** Show that the answer is in progress. */
  begin() {
    this.#showSteps(new StreamedAnswer());
    this.#doubt.replaceChildren();
    this.#place.replaceChildren(this.#steps);
    this.#rest.replaceChildren();
    this.#steps.hidden = true;
    this.body.setAttribute("aria-busy", "true");
    this.#progress.textContent = t("reading");
    this.#progress.hidden = false;
  }

  /** Show one event of the answer. */
  apply(event) {
    const { name, data } = event;
    this.#streamed.apply(event);
    if (name === "structured") {
      this.#progress.textContent = t("looking");
    } else if (name === "sources") {
      this.#steps.replaceChildren();
      this.#progress.textContent = data.sources.length ? t("writing", { count: data.sources.length }) : "";
    } else if (name === "step") {
      this.#timer ??= setTimeout(() => (this.#steps.hidden = false), SHOW_STEPS_AFTER_MS);
      this.#steps.append(renderStep(data, this.#streamed.sources));
    } else if (name === "answer") {
      this.finish(data);
    }
  }

  /** Show the final answer; steps that are shown already are kept. */
  finish(answer) {
    this.answer = answer;
    this.#end();
    if (!this.#streamed.matches(answer)) this.#showSteps(StreamedAnswer.of(answer));
    const kind = outcome(answer);
    this.body.dataset.outcome = kind;
    this.#steps.lang = locale(answer.language);
    this.#title.hidden = kind !== "uncovered";
    this.#title.textContent = t("uncovered");
    this.#doubt.replaceChildren(...renderDoubt(answer));
    this.#place.replaceChildren(this.#steps);
    if (foldsQuotes(answer)) this.#foldSteps();
    this.#rest.replaceChildren(...renderRest(this.question, answer, this.onAsk));
  }

  /** Show why there is no answer; the steps received so far stay visible. */
  fail(problem, retry) {
    this.#end();
    this.#rest.replaceChildren(renderProblem(problem, problem.retryable && retry));
  }

  /** Show that the user stopped the answer. */
  stop(retry) {
    this.#end();
    const button = el("button", { type: "button", onclick: retry }, t("retry"));
    this.#rest.replaceChildren(el("p", { class: "stopped" }, t("stopped"), " ", button));
  }

  /** Render the answer again in the current language of the page. */
  translate() {
    if (!this.answer) return;
    this.#showSteps(StreamedAnswer.of(this.answer));
    this.finish(this.answer);
  }

  #showSteps(streamed) {
    this.#streamed = streamed;
    this.#steps.replaceChildren(...streamed.steps.map((step) => renderStep(step, streamed.sources)));
  }

  /** Collapse all steps but the first. */
  #foldSteps() {
    const others = [...this.#steps.children].slice(1);
    if (!others.length) return;
    const summary = el("summary", {}, t("quotes", { count: others.length }));
    const steps = el("div", { class: "steps", lang: this.#steps.lang }, ...others);
    this.#place.append(el("details", { class: "quotes" }, summary, steps));
  }

  #end() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.body.removeAttribute("aria-busy");
    this.#steps.hidden = false;
    this.#progress.hidden = true;
  }
}
