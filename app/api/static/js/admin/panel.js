// A panel that loads data and shows progress, the data, or an error.

import { Problem } from "../api.js";
import { el } from "../dom.js";
import { icon } from "../icons.js";
import { t } from "../i18n.js";
import { renderProblem } from "../problem.js";
import { tab } from "../store.js";
import { changeKey } from "./calls.js";

export class Panel {
  node = el("div", { class: "panel" });
  #render;
  #load = null;
  #data = null;
  #problem = null;

  /** `render` returns the nodes for the data; `idle`, if given, returns the nodes before anything is loaded. */
  constructor(render, idle = () => []) {
    this.#render = render;
    this.idle = idle;
  }

  get data() {
    return this.#data;
  }

  /** Load and show data; of several overlapping loads, only the last one counts. Errors are shown with a retry button. */
  async load(load) {
    this.#load = load;
    this.#problem = null;
    this.node.setAttribute("aria-busy", "true");
    if (this.#data === null) this.node.replaceChildren(el("p", { class: "progress" }, t("loading")));
    try {
      const data = await load();
      if (this.#load === load) this.show(data);
    } catch (error) {
      if (this.#load === load) this.fail(error);
    }
  }

  show(data) {
    this.#data = data;
    this.#problem = null;
    this.translate();
  }

  /** Replace the data without rendering: the caller has updated the page. */
  replaceData(data) {
    this.#data = data;
  }

  fail(error) {
    if (!(error instanceof Problem)) console.error(error);
    this.#problem = error instanceof Problem ? error : new Problem({ detail: t("unreadable") });
    this.translate();
  }

  /** Render again in the current language of the page. */
  translate() {
    this.node.removeAttribute("aria-busy");
    if (this.#problem) this.node.replaceChildren(this.#errorNotice());
    else this.node.replaceChildren(...(this.#data === null ? this.idle() : this.#render(this.#data)));
  }

  #errorNotice() {
    const retry = () => this.load(this.#load);
    const notice = renderProblem(this.#problem, retry, t("notShown"));
    if (this.#problem.status === 403 && tab.get("key")) notice.append(changeKeyButton(this.#problem.message, retry));
    return notice;
  }
}

function changeKeyButton(reason, retry) {
  const change = async () => (await changeKey(reason)) && retry();
  return el("button", { type: "button", onclick: change }, t("otherKey"));
}

/** The placeholder for missing data, with a hint. */
export function emptyState(title, hint) {
  return el("div", { class: "empty-state" }, icon("empty"), el("p", {}, el("strong", {}, title)), hint && el("p", {}, hint));
}
