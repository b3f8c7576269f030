// One question and its answer, from the first event to the last.

import { outcome, renderRest } from "./answer.js";
import { el } from "./dom.js";
import { t } from "./i18n.js";
import { renderProblem } from "./problem.js";
import { renderStep } from "./steps.js";

let count = 0;

export class Turn {
  #sources = new Map();
  #texts = [];
  #title = el("p", { class: "outcome" });
  #progress = el("p", { class: "progress" });
  #steps = el("ol", { class: "steps", role: "list" });
  #rest = el("div", { class: "rest" });

  constructor(question) {
    this.question = question;
    this.answer = null;
    const id = `question-${++count}`;
    this.#title.hidden = true;
    this.body = el("div", { class: "answer" }, this.#title, this.#steps, this.#progress, this.#rest);
    this.node = el("article", { class: "turn", "aria-labelledby": id }, el("h2", { class: "question", id }, question), this.body);
  }

  /** Show that an answer is under way. */
  begin() {
    this.#forgetSteps();
    this.#rest.replaceChildren();
    this.body.setAttribute("aria-busy", "true");
    this.#progress.textContent = t("reading");
    this.#progress.hidden = false;
  }

  /** Take in one event of the answer. */
  take({ name, data }) {
    if (name === "structured") this.#progress.textContent = t("looking");
    else if (name === "sources") this.#beginSteps(data.sources);
    else if (name === "step") this.#addStep(data);
    else if (name === "answer") this.finish(data);
  }

  /** Show the whole answer; steps that stand there as they should are left alone. */
  finish(answer) {
    this.answer = answer;
    this.#end();
    if (answer.answer.join("\n") !== this.#texts.join("\n")) {
      this.#beginSteps(answer.sources);
      stepsOf(answer).forEach((step) => this.#addStep(step));
    }
    const kind = outcome(answer);
    this.body.dataset.outcome = kind;
    this.#steps.lang = answer.language === "zh" ? "zh-CN" : "en";
    this.#title.hidden = kind !== "uncovered";
    this.#title.textContent = t("uncovered");
    this.#rest.replaceChildren(...renderRest(this.question, answer));
  }

  /** Show why there is no answer; what has come so far stays. */
  fail(problem, retry) {
    this.#end();
    this.#rest.replaceChildren(renderProblem(problem, retry));
  }

  /** Show that the asker wanted no more. */
  stop(retry) {
    this.#end();
    const again = el("button", { type: "button", onclick: retry }, t("retry"));
    this.#rest.replaceChildren(el("p", { class: "stopped" }, t("stopped"), " ", again));
  }

  /** Say everything again, in the language that is the page's now. */
  renew() {
    if (!this.answer) return;
    this.#forgetSteps();
    this.finish(this.answer);
  }

  #beginSteps(sources) {
    this.#forgetSteps();
    this.#sources = new Map(sources.map((source) => [source.number, source]));
    this.#progress.textContent = sources.length ? t("writing", { count: sources.length }) : "";
  }

  #addStep(step) {
    this.#texts.push(step.text);
    this.#steps.append(renderStep(step, this.#sources));
  }

  #forgetSteps() {
    this.#texts = [];
    this.#steps.replaceChildren();
  }

  #end() {
    this.body.removeAttribute("aria-busy");
    this.#progress.hidden = true;
  }
}

/** The steps of a finished answer, as the events would have told them. */
function stepsOf(answer) {
  return answer.answer.map((text, index) => ({
    text,
    unverified: answer.unverified.filter((fact) => text.includes(fact)),
    supported: !answer.unsupported.includes(index + 1),
  }));
}
