// The ingestion runs, the one that goes on as it goes on, and a button that begins one.

import { el } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { beginIngestion, ingestion, ingestions } from "./calls.js";
import { nothing, Panel } from "./panel.js";
import { runningCard, runTable } from "./runs.js";

const PAUSE = 1000;

export class IngestionsView {
  node = el("section", { class: "ingestions", "aria-labelledby": "ingestions-title" });
  #say;
  #shown = false;
  #timer = null;
  #dryRun = false;
  #head = el("header", { class: "head" });
  #refusal = el("div", { role: "alert" });
  #panel = new Panel((runs) => {
    this.#follow();
    return shownRuns(runs);
  });

  /** `say` tells a screen reader. */
  constructor(say) {
    this.#say = say;
    this.node.append(this.#head, this.#refusal, this.#panel.node);
    document.addEventListener("visibilitychange", () => this.#follow());
  }

  show() {
    this.#shown = true;
    this.#panel.load(ingestions);
  }

  hide() {
    this.#shown = false;
    this.#follow();
  }

  translate() {
    const chosen = (event) => (this.#dryRun = event.currentTarget.checked);
    const begin = el("button", { type: "button", class: "primary", onclick: (event) => this.#begin(event.currentTarget) }, icon("again"), t("begin"));
    this.#head.replaceChildren(
      el("div", {}, el("h2", { id: "ingestions-title" }, t("ingestionsTitle")), el("p", {}, t("ingestionsHint"))),
      el(
        "div",
        { class: "choices" },
        el("label", { class: "check" }, el("input", { type: "checkbox", onchange: chosen, checked: this.#dryRun }), t("dryRun")),
        begin,
      ),
    );
    if (this.#panel.data) this.#panel.translate();
  }

  async #begin(button) {
    button.disabled = true;
    this.#refusal.replaceChildren();
    try {
      const run = await beginIngestion({ dryRun: this.#dryRun });
      this.#say(t("begun"));
      this.#panel.show([run, ...(this.#panel.data ?? [])]);
    } catch (problem) {
      this.#refusal.replaceChildren(el("p", { class: "problem" }, problem.message));
      if (problem.status === 409) await this.#panel.load(ingestions);
    }
    button.disabled = false;
  }

  /** Ask for the run that goes on, each second, for as long as somebody looks. */
  #follow() {
    clearTimeout(this.#timer);
    const run = this.#panel.data?.find(({ state }) => state === "running");
    if (run && this.#shown && !document.hidden) this.#timer = setTimeout(() => this.#ask(run.id), PAUSE);
  }

  async #ask(id) {
    try {
      const now = await ingestion(id);
      const runs = this.#panel.data.map((run) => (run.id === id ? now : run));
      if (now.state === "running") this.#goesOn(now, runs);
      else this.#ended(now, runs);
    } catch (problem) {
      this.#panel.fail(problem);
    }
  }

  /** Only the card changes: what a reader opened in the table stays open. */
  #goesOn(run, runs) {
    this.#panel.keep(runs);
    this.node.querySelector(".card.running")?.replaceWith(runningCard(run));
    this.#follow();
  }

  #ended({ state }, runs) {
    this.#panel.show(runs);
    this.#refusal.replaceChildren();
    this.#say(t("ended", { state: t(`state_${state}`) }));
  }
}

function shownRuns(runs) {
  if (!runs.length) return [nothing(t("noRuns"), t("noRunsHint"))];
  const running = runs.find(({ state }) => state === "running");
  const others = runs.filter((run) => run !== running);
  return [running && runningCard(running), others.length > 0 && runTable(others)].filter(Boolean);
}
