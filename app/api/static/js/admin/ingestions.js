// The ingestion runs with live progress, and a button that starts a run.

import { el } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { getIngestion, listIngestions, startIngestion } from "./calls.js";
import { emptyState, Panel } from "./panel.js";
import { runningCard, runTable } from "./runs.js";

const POLL_INTERVAL_MS = 1000;

export class IngestionsView {
  node = el("section", { class: "ingestions", "aria-labelledby": "ingestions-title" });
  #announce;
  #shown = false;
  #timer = null;
  #dryRun = false;
  #head = el("header", { class: "head" });
  #error = el("div", { role: "alert" });
  #panel = new Panel((runs) => {
    this.#schedulePoll();
    return renderRuns(runs);
  });

  /** `announce` informs screen readers. */
  constructor(announce) {
    this.#announce = announce;
    this.node.append(this.#head, this.#error, this.#panel.node);
    document.addEventListener("visibilitychange", () => this.#schedulePoll());
  }

  show() {
    this.#shown = true;
    this.#panel.load(listIngestions);
  }

  hide() {
    this.#shown = false;
    this.#schedulePoll();
  }

  translate() {
    const chosen = (event) => (this.#dryRun = event.currentTarget.checked);
    const startButton = el("button", { type: "button", class: "primary", onclick: (event) => this.#start(event.currentTarget) }, icon("again"), t("begin"));
    this.#head.replaceChildren(
      el("div", {}, el("h2", { id: "ingestions-title" }, t("ingestionsTitle")), el("p", {}, t("ingestionsHint"))),
      el(
        "div",
        { class: "choices" },
        el("label", { class: "check" }, el("input", { type: "checkbox", onchange: chosen, checked: this.#dryRun }), t("dryRun")),
        startButton,
      ),
    );
    if (this.#panel.data) this.#panel.translate();
  }

  async #start(button) {
    button.disabled = true;
    this.#error.replaceChildren();
    try {
      const run = await startIngestion({ dryRun: this.#dryRun });
      const runs = [run, ...(this.#panel.data ?? [])];
      if (run.state === "running") {
        this.#announce(t("begun"));
        this.#panel.show(runs);
      } else this.#showEnd(run, runs); // a short run ends before the response
    } catch (problem) {
      this.#error.replaceChildren(el("p", { class: "problem" }, problem.message));
      if (problem.status === 409) await this.#panel.load(listIngestions);
    }
    button.disabled = false;
  }

  /** Poll the current run each second while the view is visible. */
  #schedulePoll() {
    clearTimeout(this.#timer);
    const run = this.#panel.data?.find(({ state }) => state === "running");
    if (run && this.#shown && !document.hidden) this.#timer = setTimeout(() => this.#poll(run.id), POLL_INTERVAL_MS);
  }

  async #poll(id) {
    try {
      const current = await getIngestion(id);
      const runs = this.#panel.data.map((run) => (run.id === id ? current : run));
      if (current.state === "running") this.#updateProgress(current, runs);
      else this.#showEnd(current, runs);
    } catch (problem) {
      this.#panel.fail(problem);
    }
  }

  /** Replace only the card, so that expanded rows of the table stay open. */
  #updateProgress(run, runs) {
    this.#panel.replaceData(runs);
    this.node.querySelector(".card.running")?.replaceWith(runningCard(run));
    this.#schedulePoll();
  }

  #showEnd({ state }, runs) {
    this.#panel.show(runs);
    this.#error.replaceChildren();
    this.#announce(t("ended", { state: t(`state_${state}`) }));
  }
}

function renderRuns(runs) {
  if (!runs.length) return [emptyState(t("noRuns"), t("noRunsHint"))];
  const running = runs.find(({ state }) => state === "running");
  const others = runs.filter((run) => run !== running);
  return [running && runningCard(running), others.length > 0 && runTable(others)].filter(Boolean);
}
